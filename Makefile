# Two commands do all: `make reproduce` and `make test`. Both build their environment first.
PYTHON ?= python3
VENV ?= .venv
# For another torch build, for example: make reproduce PIP_ARGS='--index-url <index of that build>'
PIP_ARGS ?=
# Where results go, and further arguments for the main job.
OUT ?= results
JOBS ?= 2
# For example: make mutants MUTANTS='--all theory/verdict/limits.py', make nights NIGHTS='--only oracle'
BENCH ?=
MUTANTS ?=
NIGHTS ?=
CONSTRAINTS ?= constraints.txt

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: reproduce bench gpu test test-slow test-all test-costs test-lowest test-newest test-python locked mutants nights formal lint types docs env clean
.DEFAULT_GOAL := reproduce

reproduce: $(STAMP)
	$(BIN)/oversmoothing reproduce --out $(OUT)

# Quick tests. A file is one worker's: what its tests share is made once.
test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m 'not slow'

# The others, with the shapes in the signatures held to.
test-slow: $(STAMP)
	OVERSMOOTHING_SHAPES=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m slow

# Every test, with the shapes in the signatures held to.
test-all: $(STAMP)
	OVERSMOOTHING_SHAPES=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile

# Speed and accuracy as ratios in one run; for example: make bench BENCH='--only watcher'
bench: $(STAMP)
	$(BIN)/python -m benchmarks $(BENCH)

# What depends on the device, on the card that is there: benchmarks/gpu-DATE.json.
gpu: $(STAMP)
	$(BIN)/python -m benchmarks.gpu

# Which tests are slow: all of them, one process, some 40 minutes (tests/costs.py).
test-costs: $(STAMP)
	OVERSMOOTHING_COSTS=.test-costs $(BIN)/python -m pytest -q
	$(BIN)/python -m tests.costs .test-costs

# The same with the lowest versions that pyproject.toml allows, in an environment of its own.
test-lowest:
	$(MAKE) test-all VENV=.venv-lowest CONSTRAINTS=constraints-lowest.txt

# The same with the newest versions that there are.
test-newest:
	$(MAKE) test-all VENV=.venv-newest CONSTRAINTS=/dev/null

# The same with another Python: make test-python PYTHON=python3.13
test-python:
	$(MAKE) test-all VENV=.venv-$(notdir $(PYTHON))

# An environment each of whose files has the hash that constraints-hashes.txt says (files of PyPI:
# torch is the one for CUDA on Linux), and in it the quick tests.
locked: .venv-locked/.installed
	.venv-locked/bin/python -m pytest -n $(JOBS) -m 'not slow'

.venv-locked/.installed: constraints-hashes.txt
	$(PYTHON) -m venv .venv-locked
	.venv-locked/bin/python -m pip install --disable-pip-version-check --require-hashes -r $<
	.venv-locked/bin/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Resumable: what is known of an unchanged module is kept in .mutants/.
mutants: $(VENV)/.mutants
	$(BIN)/python -m tests.mutants $(MUTANTS)

# Every comparison that draws its cases, some hours; the seed is the date. Resumable (tests/nights.py).
nights: $(VENV)/.mutants
	$(BIN)/python -m tests.nights --jobs $(JOBS) $(NIGHTS)

# What Coq's kernel checks of the theory; needs Coq (theory/formal/README.md).
formal: $(STAMP)
	$(BIN)/python -m oversmoothing.theory.proofs.ledger

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# The book; a warning is an error.
docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html

env: $(STAMP)

$(STAMP): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ": make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	@echo "Building $(VENV): about 2.5 GB on disk (torch is most of it) and one to six minutes, once."
	@echo "pip names each package as it comes; nothing outside $(VENV) is changed."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_ARGS) -c $(CONSTRAINTS) -e '.[dev]'
	touch $@

$(VENV)/.mutants: $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check $(PIP_ARGS) -c $(CONSTRAINTS) -e '.[mutants]'
	touch $@

clean:
	rm -rf $(VENV) .venv-* .mutants .nights .test-costs docs/_build build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
