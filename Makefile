# Two commands do all: `make reproduce` and `make test`. Both build their environment first.
PYTHON ?= python3
VENV ?= .venv
# For another torch build, for example: make reproduce PIP_ARGS='--index-url <index of that build>'
PIP_ARGS ?=
# Where results go, and further arguments for the main job.
OUT ?= results
JOBS ?= 2
# For example: make mutants MUTANTS='--all theory/verdict/limits.py'
MUTANTS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: reproduce test mutants lint types docs env clean
.DEFAULT_GOAL := reproduce

reproduce: $(STAMP)
	$(BIN)/oversmoothing reproduce --out $(OUT)

test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS)

# Resumable: what is known of an unchanged module is kept in .mutants/.
mutants: $(VENV)/.mutants
	$(BIN)/python -m tests.mutants $(MUTANTS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# The book; a warning is an error.
docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html

env: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ": make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/.mutants: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e '.[mutants]'
	touch $@

clean:
	rm -rf $(VENV) .mutants docs/_build docs/gallery build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
