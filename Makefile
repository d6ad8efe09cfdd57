# Two commands do everything: `make demo` and `make test`. They need Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
QUIETLY = @$(PYTHON) release/quietly.py
# Python compiles what is imported when it is; compiling every module of torch beforehand takes 20 s. It has to keep what it
# compiled: where it is told not to, as in many containers, every process compiles torch again.
unexport PYTHONDONTWRITEBYTECODE
SETUP = $(VENV)/setup.log $(PIP) install --no-input --no-compile --progress-bar off --editable
NPM := cd frontend && PATH="$(abspath $(BIN)):$$PATH" npm --silent
PAGE_SOURCES := hatch_build.py $(shell find frontend -type f -not -path '*/node_modules/*')

LOWER_HALF := $(addprefix tests/,tasks model training interventions subspaces measures theory test_intervals.py test_schema.py test_public_api.py)

LINT := lint-types lint-page lint-imports lint-style
TOGETHER := $(MAKE) --no-print-directory --jobs=2

MINUTES ?= 3
CASES ?= 10000
SEED ?= 0

LOCK := requirements.lock
PYTHONS ?= $(foreach version,3.11 3.12 3.13 3.14,$(shell python$(version) -c 'import sys; print(sys.executable)' 2>/dev/null))
ARCHIVE ?= dist/*.whl

.PHONY: demo test bench mutants faults cluster load fuzz release lock locked evidence check lint $(LINT) test-page test-lower format docs site types clean help

help:  ## what each target does
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## open the lab on the shipped runs and watch a small model learn in it
	$(BIN)/bindscope demo

test: $(VENV)/.installed-test $(VENV)/.browser  ## everything that is checked: style, types, import directions, tests
	@$(TOGETHER) $(LINT) test-page
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations=10

cluster: $(VENV)/.installed-cluster  ## two Ray nodes of which one is lost: every run and measure once, and as here (not part of make test)
	$(BIN)/python -m pytest --durations=10 --timeout=1200 tests/cluster tests/runs/test_cluster.py

faults: $(VENV)/.installed-test  ## hundreds of kills, full disks and damaged files: takes many minutes; OPTIONS="--seed 1 --kills 600"
	cd tests && PYTHONPATH=. $(abspath $(BIN))/python -m faults $(OPTIONS)

check: $(VENV)/.installed-test  ## the daily check, two minutes: style, types, import directions, tests of the lower half
	@$(TOGETHER) lint-types lint-imports lint-style test-lower

lint: $(VENV)/.installed-test  ## style, types and import directions
	@$(TOGETHER) $(LINT)

# The parts of these, two at a time; the longest first.
lint-types:
	$(BIN)/mypy

lint-page:
	$(NPM) run check

lint-imports:
	$(BIN)/lint-imports

lint-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

test-page:
	$(NPM) run test

test-lower:
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow" $(LOWER_HALF)

format: $(VENV)/.installed-test  ## rewrite the code in the common style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

mutants: $(VENV)/.installed-test  ## small wrong changes to the core that some test should notice; OPTIONS="--packages runs --n 50"
	$(PIP) install --quiet coverage pytest-cov
	cd tests && PYTHONPATH=. $(abspath $(BIN))/python -m mutants $(OPTIONS)

bench: $(VENV)/.installed-test  ## every benchmark, alone on the machine for half an hour; writes docs/benchmarks.md; OPTIONS="--only patching"
	$(BIN)/python benchmarks/page.py $(OPTIONS)

load: $(VENV)/.installed  ## a real server under 200 readers, live patches and abusive clients for MINUTES=3; fails on a 5xx or growing memory
	$(BIN)/python benchmarks/server_load.py --minutes $(MINUTES)

fuzz: $(VENV)/.installed-test  ## hostile input: CASES=10000 of each kind by SEED=0; each must end in success or in one sentence
	$(BIN)/python tests/fuzz/many.py --cases $(CASES) --seed $(SEED)
	FUZZ_CASES=$(CASES) FUZZ_SEED=$(SEED) $(SHELL) -c '$(NPM) run test -- src/state/fuzz.test.ts'

release: $(VENV)/.installed-test  ## the archives, the same bytes twice, in dist/; each of PYTHONS installs the wheel into an empty environment and tries every command
	rm -rf dist
	$(BIN)/python release/build.py dist
	@for python in $(PYTHONS); do $$python release/install.py $(ARCHIVE) --bill dist/bindscope.cdx.json || exit 1; done

lock: | $(BIN)/python  ## write requirements.lock again: every version and hash for 'make test' on any system and Python from 3.11 on
	$(PIP) install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra test --extra interop --universal --python-version 3.11 --generate-hashes \
	  --quiet --upgrade --custom-compile-command 'make lock' --output-file $(LOCK)

locked: | $(BIN)/python  ## install exactly what requirements.lock names, by its hashes; 'make test' then uses it
	$(PIP) install --quiet --require-hashes --requirement $(LOCK)
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	$(PIP) check
	@touch $(VENV)/.installed $(VENV)/.installed-test

evidence: $(VENV)/.installed  ## train what the verdicts still rest on too little of: days on one core; OPTIONS="--hours 8" bounds it
	$(BIN)/bindscope evidence --train $(OPTIONS)

docs: $(VENV)/.installed  ## rewrite the generated pages in docs/
	$(BIN)/python -m bindscope.cli.reference

site: $(VENV)/.installed-test build/notebooks/.run  ## run the notebooks and build the documentation as a site, strictly, into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo build/site/index.html

build/notebooks/.run: $(wildcard notebooks/*.ipynb) | $(VENV)/.installed-test
	$(BIN)/python release/run_notebooks.py
	@touch $@

types: $(VENV)/.installed-test  ## rewrite the page's types and its table of questions from the API
	$(BIN)/python -m bindscope.web.describe frontend/openapi.json
	$(BIN)/python -m bindscope.questions.table frontend/src/api/questions.json
	$(NPM) run types

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) frontend/node_modules src/bindscope/web/static .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist

# The virtual environment is made once; it is installed again only when pyproject.toml or the page's sources change.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Bindscope needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo missing)." \
	       "Name another with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 2; }

$(VENV)/.installed: pyproject.toml $(PAGE_SOURCES) | $(BIN)/python
	$(QUIETLY) 'installing Bindscope' $(SETUP) .
	@touch $@

$(VENV)/.installed-test: pyproject.toml $(PAGE_SOURCES) | $(BIN)/python
	$(QUIETLY) 'installing Bindscope and what its tests need' $(SETUP) '.[test,interop]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-cluster: $(VENV)/.installed-test
	$(QUIETLY) 'installing Ray' $(SETUP) '.[test,interop,cluster]'
	@touch $@

# Browser tests drive Chromium: the one that is there, or Debian's package where it may be installed.
$(VENV)/.browser: | $(BIN)/python
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  echo "installing chromium for the browser tests"; \
	  if [ "$$(id -u)" = 0 ]; then become=; else become="sudo -n"; fi; \
	  { $$become apt-get update -qq && \
	    $$become env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null || \
	  echo "no chromium could be installed: the browser tests will be skipped" >&2; }
	@touch $@
