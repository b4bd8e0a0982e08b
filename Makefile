# Two commands do everything on a fresh machine:
#   make demo   install what the demo needs, fit a model on the packaged reviews (kept for next time), open the app
#   make test   install everything and run the tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_MODEL := .demo/model
PORT ?=

.PHONY: demo model setup test lint format types newest-jax clean help

help:
	@sed -n 's/^#  *//p' Makefile | head -3

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "textkernels needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A full installation serves the demo too.
$(VENV)/.installed-demo: pyproject.toml constraints.txt | $(BIN)/python
	@test -e $(VENV)/.installed-all || $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[app,demo]'
	@touch $@

$(VENV)/.installed-all: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all,dev]'
	@touch $@ $(VENV)/.installed-demo

setup: $(VENV)/.installed-all

# config.json is written last, so it is proof of a finished fit.
$(DEMO_MODEL)/config.json: | $(VENV)/.installed-demo
	$(BIN)/textkernels fit bundled:imdb --embedding word2vec --scale none --limit 12500 --model $(DEMO_MODEL)

model: $(DEMO_MODEL)/config.json

demo: $(DEMO_MODEL)/config.json
	$(BIN)/textkernels app --model $(DEMO_MODEL) $(if $(PORT),--port $(PORT))

test: setup
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# The core must not depend on the old JAX that neural-tangents needs.
newest-jax: | $(BIN)/python
	$(PYTHON) -m venv $(VENV)-newest-jax
	$(VENV)-newest-jax/bin/python -m pip install --quiet --upgrade --editable '.[demo]' pytest jax
	$(VENV)-newest-jax/bin/python -m pytest tests/test_pairs_jax.py tests/test_kernels.py tests/test_classifier.py

clean:
	rm -rf $(VENV) $(VENV)-newest-jax .demo build *.egg-info .pytest_cache .mypy_cache .ruff_cache
