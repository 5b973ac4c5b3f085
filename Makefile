# Two commands do everything: 'make reproduce' and 'make test'. Bare 'make' lists all of them.
PYTHON ?= python3
VENV   := .venv
LOWEST := .venv-lowest
AUDIT  := .venv-audit
BIN    := $(VENV)/bin
# Where the documentation finds its numbers, and what it runs (a minute) if it is not there yet.
RUNS      ?= runs
DOCS_RUNS ?= figure1 figure2-synthetic figure3-synthetic
FAST   := not browser and not cluster and not faults and not long and not network and not slow and not vision
# One worker for each core, each with one thread and no processes that it is not asked for: more of
# them than cores make everything slower.
PYTEST := OMP_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help install reproduce play test test-fast test-lowest test-random test-long test-wheel test-network test-faults lint lock audit install-locked format docs benchmark debian clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

reproduce: $(VENV)/core ## run every synthetic experiment of the paper and compare
	$(BIN)/featavg reproduce

install: $(VENV)/core ## install featavg into .venv

play: $(VENV)/play ## open the playground in the browser
	$(BIN)/featavg play

test: $(VENV)/dev debian ## run the tests
	$(PYTEST)

test-fast: $(VENV)/test ## run the quick tests of the core: no PyTorch, Dask or browser
	$(PYTEST) -m '$(FAST)'

test-lowest: $(LOWEST)/test ## run the quick tests with the lowest versions that are allowed
	$(subst $(BIN),$(LOWEST)/bin,$(PYTEST)) -m '$(FAST)'

test-random: $(VENV)/dev debian ## run the tests in a random order, or that of SEED=n
	$(PIP) install 'pytest-random-order>=1.2,<2'
	$(PYTEST) --random-order-bucket=module $(if $(SEED),--random-order-seed=$(SEED),--random-order)

test-long: $(VENV)/dev ## run the tests that 'make test' leaves out because they take a minute each
	$(PYTEST) -m long

test-wheel: $(VENV)/bin/python ## build the wheel, and use it in an environment of its own outside the checkout
	PYTHON='$(abspath $(BIN))/python' tools/test-wheel

lock: $(VENV)/dev ## write lock.txt: the hashes of what constraints.txt pins
	$(BIN)/python tools/lock.py

audit: $(VENV)/dev ## check the lock, licences, and (with a network; STRICT=1 insists) known vulnerabilities
	$(BIN)/python tools/lock.py --check
	test -x $(AUDIT)/bin/pip-audit || $(PYTHON) -m venv $(AUDIT)
	-$(subst $(BIN),$(AUDIT)/bin,$(PIP)) install 'pip-audit>=2.9,<3'
	$(BIN)/python tools/dependencies.py --pip-audit $(AUDIT)/bin/pip-audit $(if $(STRICT),--strict)

install-locked: $(VENV)/bin/python ## install what the tests need, and accept only files with known hashes (but PyTorch's)
	$(PIP) install --require-hashes --no-deps -r lock.txt
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $(VENV)/core $(VENV)/play $(VENV)/test $(VENV)/docs $(VENV)/dev

test-network: $(VENV)/test ## fetch the real data sets and check them
	$(BIN)/python -m pytest -m network tests/datasets

test-faults: $(VENV)/dev ## kill runs, trainings, sweeps, workers and schedulers, 20 rounds; flip 500 bits of each saved file
	FEATAVG_FAULT_ROUNDS=20 FEATAVG_BIT_FLIPS=500 $(BIN)/python -m pytest -m faults tests

lint: $(VENV)/dev ## check style, types and the layers of the package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/docs ## build the documentation into docs/_build/html
	@for id in $(DOCS_RUNS); do \
	  $(BIN)/featavg run $$id --out $(RUNS) >/dev/null || echo "docs: 'featavg run $$id' did not end well; see it for why." >&2; \
	done
	@$(BIN)/python docs/mathjax.py || test $$? = 1
	FEATAVG_RUNS=$(RUNS) $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

benchmark: $(VENV)/dev ## time the engine against what people use today
	$(BIN)/python benchmarks/descent.py
	$(BIN)/python benchmarks/robustness.py
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/regime.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/playground.py
	$(BIN)/python benchmarks/playground_load.py
	$(BIN)/python benchmarks/sweeps.py
	$(BIN)/python benchmarks/estimators.py --speed

clean: ## remove the environment and caches; 'runs' stays
	rm -rf $(VENV) $(LOWEST) $(AUDIT) docs/_build docs/_vendor docs/reference/generated artefacts .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist

# A stamp file for each set of dependencies: made again when what it depends on changes.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("featavg needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/play: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[play]'
	@touch $@ $(VENV)/core

$(VENV)/test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[test]'
	@touch $@ $(VENV)/core $(VENV)/play

$(LOWEST)/test: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(subst $(BIN),$(LOWEST)/bin,$(PIP)) install -c constraints-lowest.txt -e '.[test]'
	@touch $@

$(VENV)/docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@ $(VENV)/core

$(VENV)/dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/core $(VENV)/play $(VENV)/test $(VENV)/docs

# What the tests need of Debian: a browser to drive, and the published WordNet, which two of them read.
debian:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && browser=$$name; done; \
	test "$$browser" || wanted="chromium fonts-dejavu-core"; \
	test -e /usr/share/wordnet/data.noun || wanted="$$wanted wordnet-base"; \
	test "$$wanted" || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends $$wanted >/dev/null; \
	elif [ ! "$$browser" ]; then \
	  echo "The tests need a Chromium: sudo apt-get install $$wanted" >&2; exit 1; \
	else \
	  echo "Two tests are skipped without WordNet: sudo apt-get install $$wanted" >&2; \
	fi
