"""Settings of the documentation site; `make docs` builds it. CONTRIBUTING.md says where a page
goes.
"""

import hashlib
import shutil
import sys
from pathlib import Path

import gosta

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_tools"))

project = "gosta"
author = "The gosta developers"
version = release = gosta.__version__
language = "en"
smartquotes = False  # they would turn --help into –help

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "embedded_run",
    "generated_pages",
    "repository_documents",
    "built_links",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery", "examples/*.ipynb"]
default_role = "py:obj"  # `name` in a docstring links to the page of that name, if there is one
nitpicky = True
# Types of other packages have no page here, and their inventories would have to be downloaded.
nitpick_ignore_regex = [(r"py:.*", r"(?!gosta\.).*")]

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4  # anchors as a forge makes them, so that links work there too

# Cells of tutorials, and examples, run at build. What they showed, and what pages say of the
# package, is kept until they or the package change.
_digest = hashlib.sha256()
for _path in sorted((ROOT / "src" / "gosta").rglob("*.py")):
    _digest.update(_path.read_bytes())
_package = ROOT / "docs" / "_build" / f"package-{_digest.hexdigest()[:16]}"
if not _package.exists():
    _old = [ROOT / "docs" / name for name in ("examples", "reference/api/names", "_build/doctrees")]
    for _folder in [*_old, *_package.parent.glob("package-*")]:
        shutil.rmtree(_folder, ignore_errors=True)
    _package.mkdir(parents=True)
nb_execution_mode = "cache"
nb_execution_cache_path = str(_package)
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_ipywidgets_js: dict[str, object] = {}  # would be loaded from the web

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.position",
    "abort_on_example_error": True,
    "parallel": 2,
    "doc_module": ("gosta",),
    "reference_url": {"gosta": None},
    "backreferences_dir": "examples/uses",
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "thumbnail_size": (400, 280),
    "matplotlib_animations": False,
}
autosummary_generate = True
# Two names that differ in case only would be one file on some systems.
autosummary_filename_map = {
    "gosta.statistic": "gosta.statistic-decorator",
    "gosta.private.release": "gosta.private.make-release",
    "gosta.theory.bottleneck": "gosta.theory.find-bottleneck",
}
autodoc_typehints = "signature"
autodoc_type_aliases = dict.fromkeys(["Booleans", "Edges", "Floats", "Integers"], "numpy.ndarray")
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "gosta"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # a browser does not fetch pages that are opened as files
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
html_theme_options = {
    "logo": {"text": "gosta"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_nav_level": 1,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
copyright = "the gosta developers; Apache License 2.0"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
