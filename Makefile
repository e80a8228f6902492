# Everything from a bare clone: a Python of 3.11 or later on the PATH is all that must be there.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
VENV := .venv
BIN := $(VENV)/bin
export DIR ?= .
export PROMPT ?= What is in this folder? Survey it, read what was changed last, and report.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help run test check lint typecheck diagrams bench soak mutate dist install links clean

run: $(VENV)/run.stamp ## Survey DIR=folder (this one) with the embedded model; LIVE=1 asks the API, with your key
ifneq ($(filter-out 0,$(LIVE)),)
	@$(BIN)/looplatch run "$$PROMPT" --dir "$$DIR"
else
	@$(BIN)/looplatch demo --dir "$$DIR"
endif

test: $(VENV)/test.stamp ## Run the tests, on all cores (ARGS="-n0 tests/test_x.py": one file, in this process)
	$(BIN)/python -Im pytest -q --numprocesses=auto --maxprocesses=8 --dist=worksteal $(ARGS)

check: lint typecheck test ## Lint, types and tests

lint: $(VENV)/dev.stamp ## Check style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

typecheck: $(VENV)/dev.stamp links ## Check types with mypy and pyright
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

diagrams: $(VENV)/run.stamp ## Draw the rendered files in diagrams/ and the README's diagram anew
	$(BIN)/python -Im looplatch.diagrams diagrams

bench: $(VENV)/test.stamp ## Measure a turn, beside the hand-written loop over the SDK
	$(BIN)/python tests/benchmarks $(ARGS)

soak: $(VENV)/test.stamp ## Leave 10,000 runs in every way, prove drawn ones and hostile ones (SCRIPTS=100 HOSTILE=100 SEED=1: others), cut tales
	$(BIN)/python tests/soak/runs.py $(ARGS)
	$(BIN)/python tests/soak/scripts.py $(or $(SCRIPTS),10000) $(or $(SEED),0)
	$(BIN)/python tests/soak/hostile.py $(or $(HOSTILE),2000) $(or $(SEED),0)
	LOOPLATCH_WHOLE=1 $(BIN)/python -Im pytest -q --numprocesses=auto --dist=worksteal \
	  tests/test_resume_cuts.py tests/test_recovery_corpus.py

mutate: $(VENV)/test.stamp ## Change each guard in every small way, and look whether a test of behaviour sees it
	$(BIN)/python tests/mutation $(ARGS)

dist: $(VENV)/dev.stamp ## Build the sdist, and the wheel from it
	rm -rf build/lib dist
	$(BIN)/python -m build

install: $(VENV)/dev.stamp ## Install the package, editable, with all that development needs, in .venv

links: ## Lay the symlinks through which type checkers find the import names
	@rm -rf build/links
	@mkdir -p build/links/looplatch
	@ln -s $(CURDIR)/engine/* $(CURDIR)/states $(CURDIR)/recovery $(CURDIR)/diagrams build/links/looplatch/

clean: ## Remove what was built and installed
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1	\2/p' Makefile | while IFS='	' read -r name about; do \
		printf '  %-10s %s\n' "$$name" "$$about"; done

# Each stamp says what is installed; a change of pyproject.toml makes it stale.
$(VENV)/base.stamp: pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python of 3.11 or later was found; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "make: installing into $(VENV), once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(VENV)/run.stamp: $(VENV)/base.stamp
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/test.stamp: $(VENV)/run.stamp
	$(BIN)/python -m pip install --quiet --editable . --group test
	@touch $@

$(VENV)/dev.stamp: $(VENV)/test.stamp
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@
