# Two commands do everything: 'make reproduce' and 'make test'. Bare 'make' lists all of them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help install reproduce test test-network lint format benchmark clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

reproduce: $(VENV)/core ## run every synthetic experiment of the paper and compare
	$(BIN)/featavg reproduce

install: $(VENV)/core ## install featavg into .venv

test: $(VENV)/dev ## run the tests
	$(BIN)/python -m pytest

test-network: $(VENV)/dev ## fetch the real data sets and check them
	$(BIN)/python -m pytest -m network tests/test_datasets.py

lint: $(VENV)/dev ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: $(VENV)/dev ## time the engine against what people use today
	$(BIN)/python benchmarks/descent.py
	$(BIN)/python benchmarks/robustness.py
	$(BIN)/python benchmarks/regime.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/estimators.py --speed

clean: ## remove the environment and caches; 'runs' stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

# A stamp file for each set of dependencies: made again when what it depends on changes.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("featavg needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/core
