"""Settings of the documentation site; `make docs` builds it. CONTRIBUTING.md says where a page goes."""

import hashlib
import sys
from pathlib import Path

import gosta

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_tools"))

project = "gosta"
author = "The gosta developers"
version = release = gosta.__version__
language = "en"

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "repository_documents",
    "built_links",
]
exclude_patterns = ["_build", "gallery"]
nitpicky = True
# Types of other packages have no page here, and their inventories would have to be downloaded.
nitpick_ignore_regex = [(r"py:.*", r"(?!gosta\.).*")]

myst_enable_tools = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4  # anchors as a forge makes them, so that links work there too

# Cells of tutorials run at build, each page in a folder of its own. What a page showed is kept until its cells or the
# package change.
_package = hashlib.sha256()
for _path in sorted((ROOT / "src" / "gosta").rglob("*.py")):
    _package.update(_path.read_bytes())
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "docs" / "_build" / "cells" / _package.hexdigest()[:16])
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_ipywidgets_js: dict[str, object] = {}  # would be loaded from the web

autosummary_generate = True
autodoc_typehints = "signature"
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
