# Two commands do everything: `make demo` and `make test`. They need Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test lint format docs clean help

help:  ## what each target does
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## open the shipped run's report, then watch a small model learn
	$(BIN)/bindscope demo

test: lint  ## everything that is checked: style, types, import directions, tests
	$(BIN)/python -m pytest

lint: $(VENV)/.installed-test  ## style, types and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-test  ## rewrite the code in the common style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed  ## rewrite the generated pages in docs/
	$(BIN)/python -m bindscope.cli.reference

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist

# The virtual environment is made once; packages are installed again only when pyproject.toml changes.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Bindscope needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo missing)." \
	       "Name another with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 2; }

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable '.[test,interop]'
	@touch $@ $(VENV)/.installed
