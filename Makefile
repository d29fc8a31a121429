# Every target does its own set-up: a fresh machine needs Python >= 3.11, make, git and the package registry.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready
SHELL   = /bin/bash
.SHELLFLAGS = -eu -o pipefail -c
.DEFAULT_GOAL := help

.PHONY: help demo test check bench fuzz client browser test-vllm clean setup types lint

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## the development environment in .venv

$(READY): pyproject.toml $(shell find tests/simulated_card/backend -name '*.py' -o -name '*.toml' 2>/dev/null | grep -v '/build/')
	@echo "set-up: development environment in $(VENV) (torch is about 200 MB, once)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall ./tests/simulated_card/backend
	touch $@

demo: $(READY) ## the whole loop on the simulated card; prints the paths of the finished logs
	$(BIN)/debug-spyre demo

test: $(READY) ## all tests
	$(BIN)/python -m pytest tests

check: $(READY) ## ruff, mypy strict, architecture
	$(BIN)/ruff check scripts tests
	$(BIN)/ruff format --check scripts tests
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

bench: $(READY) ## budgets of the design as benchmarks (ratios, medians)
	$(BIN)/python -m tests.bench

fuzz: $(READY) ## the property tests for longer
	DEBUG_SPYRE_FUZZ=20 $(BIN)/python -m pytest tests -k "property or fuzz" -q

clean: ## remove what the targets made here
	rm -rf $(VENV) dist build .work
