PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test portable base check format docs benchmark benchmark-smoke gpu chaos gallery pictures screenshots clean

run: .venv/installed  ## the main job on embedded data
	$(BIN)/gosta run

test: .venv/test-tools  ## all tests, in two processes
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

portable: .venv/installed  ## the tests of numbers as on other processors and with one core: what differs there is not pinned
	$(BIN)/python tests/support/portable.py

base:  ## the base install without extras, on each Python from 3.11 to 3.13 that is here: half a minute each
	@for python in python3.11 python3.12 python3.13; do \
	  $$python -c "" 2> /dev/null || { echo "$$python is not here"; continue; }; \
	  $$python -m venv .venv-base/$$python && .venv-base/$$python/bin/python -m pip install --quiet . pytest && \
	  .venv-base/$$python/bin/python -m pytest --noconftest tests/system/test_light_install.py || exit 1; \
	done

check: .venv/installed  ## format, lint, types; changes nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/docs-tools  ## the documentation site, into docs/_build/html: every page's code is run, every link checked
	$(BIN)/sphinx-build -q -b html -d docs/_build/doctrees -j 2 -n -W --keep-going docs docs/_build/html
	@echo "open docs/_build/html/index.html"

benchmark: .venv/installed  ## speed, as ratios measured side by side
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/simulate.py
	$(BIN)/python benchmarks/end_to_end.py
	$(BIN)/python benchmarks/theory.py
	$(BIN)/python benchmarks/network.py
	$(BIN)/python benchmarks/private.py
	$(BIN)/python benchmarks/dropouts.py
	$(BIN)/python benchmarks/epsilon_audit.py

benchmark-smoke: .venv/installed  ## every benchmark on tiny sizes: answers checked, times mean nothing
	$(BIN)/python -m pytest tests/repository/test_benchmarks.py

gpu: .venv/installed  ## bits and speed of the GPU engine, on a machine with a GPU: 6 minutes
	$(BIN)/python -m pip install --quiet --editable '.[gpu]'
	$(BIN)/python benchmarks/gpu.py

chaos: .venv/installed  ## more faults than the tests have time for: half an hour
	GOSTA_SCHEDULES=30000 $(BIN)/python -m pytest tests/net/protocol/test_faults.py tests/net/protocol/test_private_sums.py
	$(BIN)/python tests/support/chaos.py --nodes 16 --seconds 90

gallery: .venv/installed  ## the paper in full, into docs/reference/gallery.md
	rm -rf docs/gallery
	$(BIN)/gosta reproduce --out docs/gallery
	$(BIN)/python docs/_tools/gallery_page.py docs/gallery

pictures: .venv/installed  ## the pictures of networks and runs, into docs
	$(BIN)/gosta run --plot docs/images/run.png
	$(BIN)/gosta run iris --statistic variance --columns 'petal length' --graph torus --log --plot none --animate docs/images/run.gif
	$(BIN)/gosta graph geometric --n 300 --seed 3 --plot docs/images/bottleneck.png
	$(BIN)/python docs/_tools/small_images.py docs/images/run.png docs/images/bottleneck.png

screenshots: .venv/test-tools  ## the pictures of the live page, into docs: half a minute
	PYTHONPATH=tests/support $(BIN)/python tests/support/screenshots.py

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gosta needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[all,dev]'
	@touch $@

.venv/docs-tools: .venv/installed
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

# What some tests need, which are skipped without it: a browser, network namespaces, a checker of systemd's units.
.venv/test-tools: .venv/installed
	@{ command -v chromium && command -v ip && command -v systemd-analyze; } > /dev/null || [ "$$(id -u)" != 0 ] || \
	  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
	  chromium iproute2 systemd; } > /dev/null 2>&1 || echo "some tests are skipped: they need chromium, iproute2, systemd"
	@touch $@

clean:
	rm -rf .venv .venv-base dist .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/examples docs/reference/api/names
