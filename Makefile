# `make demo`: embeddings of Cora and a report. `make test`: every check. Both set themselves up.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
OTHER  ?= .venv-$(notdir $(PYTHON))
# make clears nothing it did not make: a broken set-up is mended by removing $(VENV)
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-all test-python fuzz kills mutants check format docs results locked clean

demo: $(VENV)/.base
	$(BIN)/muxgcl run cora --out runs/demo --overwrite

test: check
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not slow"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# also what takes minutes: every method on PubMed under a memory limit, every command killed at every write, full disks
test-all: check
	$(BIN)/python -m pytest -q

# the tests under another Python, in an environment of its own: make test-python PYTHON=python3.13
test-python:
	$(MAKE) VENV=$(OTHER) PYTHON=$(PYTHON) $(OTHER)/.dev
	$(OTHER)/bin/python -W error -m compileall -qf src tests tools benchmarks examples
	$(OTHER)/bin/python -m pytest -n 2 -q -m "not slow"

# every command killed at every write, and on disks that fill up; what came of it is recorded
kills: $(VENV)/.dev
	$(BIN)/python tests/kill_matrix.py --record records/kills.jsonl

# 10,000 changed files, studies, records, presets, options and dataset files; what came of them is recorded
fuzz: $(VENV)/.dev
	$(BIN)/python tests/fuzz/fuzz_run.py --mutations 10000 --record records/fuzz.jsonl

# 50 small changes to each area of tools/mutants.toml, half an hour: at least 85 % should make a test fail
mutants: $(VENV)/.dev
	$(BIN)/python tools/mutants.py --sample 50 --seed 1 --record records/mutants.jsonl

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.dev
	$(BIN)/mkdocs serve

# README.md, docs/results.md and docs/figures from records/, without training
results: $(VENV)/.dev
	$(BIN)/muxgcl reproduce all --render-only --out build/results
	$(BIN)/python tools/write_results.py

$(VENV)/.base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) torch
	$(INSTALL) -e '.[io]'
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(INSTALL) -e '.[dev]'
	touch $@

# a new $(VENV) in which every file but torch's was compared with its sha256 (Linux x86-64, Python 3.11)
locked:
	test ! -e $(VENV) || { echo "$(VENV) is there: what is installed already would not be compared; make clean"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r constraints-hashed.txt
	$(INSTALL) torch
	$(INSTALL) --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip check
	touch $(VENV)/.base $(VENV)/.dev

clean:
	rm -rf $(VENV) .venv-* site build dist
