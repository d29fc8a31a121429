# Every target does its own set-up: a fresh machine needs Python >= 3.11, make, git and the package registry.
PYTHON ?= python3
PYTEST_FLAGS ?=
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready
SHELL   = /bin/bash
.SHELLFLAGS = -eu -o pipefail -c
.DEFAULT_GOAL := help

.PHONY: help demo sample test test-slow test-long release-check real check bench facts fuzz stress draws client browser test-vllm clean setup types lint

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## the development environment in .venv

$(READY): pyproject.toml $(shell find tests/simulated_card/backend -name '*.py' -o -name '*.toml' 2>/dev/null | grep -v '/build/')
	@echo "set-up: development environment in $(VENV) (torch is about 200 MB, once)"
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit(f"Python {v.major}.{v.minor} is too old: make PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall ./tests/simulated_card/backend
	touch $@

demo: $(READY) ## the whole loop on the simulated card; prints the paths of the finished logs
	$(BIN)/debug-spyre demo

# Several files at a time, since many tests wait; every test has its own card, lock, home and folders.
SEVERAL = -n 4 --dist loadfile --no-loadscope-reorder
test: $(READY) ## the tests of every rule
	$(BIN)/python -m pytest tests -m "not long and not slow" $(SEVERAL) $(PYTEST_FLAGS)

test-slow: $(READY) ## whole sessions: the demo, the client in every mode, each process killed, several cards
	$(BIN)/python -m pytest tests -m "slow and not long" $(SEVERAL) $(PYTEST_FLAGS)

test-long: $(READY) ## the rest: every kind of fault drawn, proofs elsewhere, long properties
	$(BIN)/python -m pytest tests -m long $(SEVERAL) $(PYTEST_FLAGS)

# PY: a Python in which the real torch_spyre is installed (tests/real_card/README.md). Without it the line says what is not proved.
real: $(READY) ## on the real torch_spyre: make real PY=INTERPRETER [PLUGIN=spyre-inference] [TREE=torch-spyre] [EVERY=N]
	$(BIN)/python -m tests.real_card.prove $(if $(PY),--python "$(PY)") $(if $(PLUGIN),--plugin "$(PLUGIN)") \
	  $(if $(TREE),--tree "$(TREE)") $(if $(EVERY),--every "$(EVERY)")

check: $(READY) ## ruff, mypy strict, architecture
	$(BIN)/ruff check scripts tests
	$(BIN)/ruff format --check scripts tests
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

bench: $(READY) ## budgets of the design as benchmarks (ratios, medians)
	$(BIN)/python -m tests.bench

client: $(READY) ## the real client from npm: 60 spellings of our command in five modes, hooks, plugin
	DEBUG_SPYRE_CLIENT_ALL=1 $(BIN)/python -m pytest tests/agent -m client $(PYTEST_FLAGS)

facts: $(READY) ## dated facts against a tree at hand: make facts TREE=torch-spyre [PLUGIN=spyre-inference]
	$(BIN)/python tests/surface/check_facts.py $(TREE) $(PLUGIN)

fuzz: $(READY) ## the property tests for longer
	DEBUG_SPYRE_FUZZ=20 $(BIN)/python -m pytest tests -k "property or fuzz" -q

sample: $(READY) ## docs/sample anew: the pages of the demo and the bundle that it hands over
	$(BIN)/python tests/demo/make_sample.py

stress: $(READY) ## 2,000 logs drawn at random: real pytest runs, carried, cut, joined; each read as it is true
	$(BIN)/python tests/triage/drawn_logs.py 2000

draws: $(READY) ## faults drawn at random: does shadow name the op, the search the condition, repro the smallest script, bisect the commit?
	$(BIN)/python -W ignore tests/examine/drawn_faults.py 100
	$(BIN)/python -W ignore tests/examine/drawn_conditions.py 100
	$(BIN)/python -W ignore tests/repro/drawn_repros.py 5
	$(BIN)/python tests/fleet/drawn_bisections.py 100

VLLM       = .work/vllm
VLLM_READY = $(VLLM)/.ready-0.27.1

$(VLLM_READY): $(READY)
	@echo "set-up: vLLM 0.27.1 for the empty device in $(VLLM) (about a minute)"
	test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy jinja2 pytest pytest-timeout hypothesis \
	  'setuptools>=77.0.3,<81' setuptools_scm setuptools_rust wheel cmake ninja packaging
	VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=0.27.1 $(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation --no-binary vllm vllm==0.27.1
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check regex cachetools psutil requests tqdm blake3 py-cpuinfo \
	  'transformers>=5.5.3' 'tokenizers>=0.21.1' safetensors protobuf pydantic cloudpickle pyyaml msgspec pyzmq einops pillow cbor2 \
	  aiohttp openai-harmony openai pybase64 uvloop prometheus_client
	touch $@

test-vllm: $(VLLM_READY) ## repros and one layer under a real vLLM (built for the empty device)
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall ./tests/simulated_card/backend
	$(VLLM)/bin/python -m pytest tests/vllm $(PYTEST_FLAGS)

release-check: $(READY) ## sdist and wheel from a clone and from each other; install and demo from the wheel in a new environment
	$(BIN)/python tests/release_check.py

clean: ## remove what the targets made here
	rm -rf $(VENV) dist build .work
