# Needs Python 3.11 or newer (with its venv module), gcc and make; everything else comes from PyPI into .venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Tests start hundreds of processes, each of which would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
# The package alone, and with all that the tests need.
PACKAGE := $(VENV)/.package
INSTALLED := $(VENV)/.installed
# The engines to compare with, gigabytes of them, in an environment of their own.
BENCH_VENV := .venv-bench
BENCH := $(BENCH_VENV)/.installed
BENCH_ARGS ?=
# The tools that make the networks of the zoo, gigabytes as well.
ZOO_VENV := .venv-zoo
ZOO := $(ZOO_VENV)/.installed
ZOO_ARGS ?=
# Ray with what its tests need, half a gigabyte.
RAY_VENV := .venv-ray
RAY := $(RAY_VENV)/.installed
# An emulator of x86 CPUs, twenty megabytes.
EMULATOR := .emulator/bochs
RECORD_ARGS ?=
EVIDENCE_ARGS ?=
N ?= 200
FUZZ_PROFILE ?= long

# The first Python that is new enough and can make virtual environments.
FIND_PYTHON = for python in "$${PYTHON:-}" python3 python3.11 python3.12 python3.13 python3.14; do \
	[ -n "$$python" ] && "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done || { echo "no Python >= 3.11 with the venv module found; set PYTHON" >&2; exit 1; }

.PHONY: help setup demo bench record zoo test lint types names docs docs-check site explorer-pictures lit unit wheel-check release-check \
	ray-check engines-check check-emulated evidence models fuzz fuzz-graphs fuzz-tflite fuzz-torch fuzz-programs \
	fuzz-values fuzz-models fuzz-operators fuzz-files clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## Create .venv and install the pinned dependencies and the package (once)

# A stamp is as old as the pinned set it stands for, so a second run installs nothing.
$(PACKAGE): pyproject.toml
	@python=$$($(FIND_PYTHON)); echo "making $(VENV) with $$("$$python" --version)"; "$$python" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(INSTALLED): $(PACKAGE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

demo: $(PACKAGE) ## Show what the compiler does, on real layers and a real network
	@$(BIN)/python -m tools.demo

$(BENCH): pyproject.toml
	@python=$$($(FIND_PYTHON)); "$$python" -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@CMAKE_ARGS=-DGGML_LLAMAFILE=ON $(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[bench-ggml]' || echo "no C++ compiler for ggml, which is not measured" >&2
	@touch $@

bench: $(BENCH) ## Measure against other engines, write benchmarks/ (BENCH_ARGS: options of qdialect-bench)
	@$(BENCH_VENV)/bin/qdialect-bench --output-dir benchmarks $(BENCH_ARGS)

record: $(BENCH) ## Record frameworks for the tests (RECORD_ARGS: families, --check)
	@$(BENCH_VENV)/bin/python -m tools.record $(RECORD_ARGS)

$(ZOO): pyproject.toml
	@python=$$($(FIND_PYTHON)); "$$python" -m venv $(ZOO_VENV)
	$(ZOO_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[zoo]'
	@touch $@

zoo: $(ZOO) ## Quantize networks as users do, run them, write benchmarks/ZOO.md (ZOO_ARGS: options of tools/zoo)
	@$(ZOO_VENV)/bin/python -m tools.zoo $(ZOO_ARGS)

# Those that use one core are made two at a time, each with its output in one piece; lit and pytest use all cores.
test: $(INSTALLED) ## Everything CI checks
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target types wheel-check site docs-check lint names
	@$(MAKE) --no-print-directory lit
	@$(MAKE) --no-print-directory unit

lint: $(INSTALLED) ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED) ## basedpyright, strict
	$(BIN)/basedpyright --pythonpath $(BIN)/python

names: $(INSTALLED) ## Names, file sizes and the form of lit tests
	$(BIN)/python tools/check_names.py

docs: $(INSTALLED) ## Write the generated pages of docs/
	$(BIN)/python tools/gen_docs.py

docs-check: $(INSTALLED) ## Fail when a generated page is stale
	$(BIN)/python tools/gen_docs.py --check

site: $(INSTALLED) ## Write the documentation as a site into build/site, and check its links
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "build/site: python -m http.server --directory build/site shows it"

explorer-pictures: $(INSTALLED) ## Draw the pages of qdialect-explore in docs/, with Chromium
	$(BIN)/python tools/explorer_pictures.py

lit: $(INSTALLED) ## FileCheck tests of test/lit
	$(BIN)/lit -sv test/lit

unit: $(INSTALLED) ## pytest: unit, reference, end-to-end and short fuzz tests
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

wheel-check: $(INSTALLED) ## Build the wheel, install it alone in a fresh environment and use it there
	$(BIN)/python tools/check_wheel.py

release-check: $(INSTALLED) ## The wheel, made from the checkout and from the sdist, with every Python that is here
	$(BIN)/python tools/check_release.py

$(RAY): pyproject.toml
	@python=$$($(FIND_PYTHON)); "$$python" -m venv $(RAY_VENV)
	$(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[ray-test]'
	@touch $@

ray-check: $(RAY) ## The examples that need Ray, on a cluster of this machine
	$(RAY_VENV)/bin/python -m pytest test/cluster

# Fetched where this is a Debian with a mirror; without it the tests say why they are skipped.
$(EMULATOR):
	@$(BIN)/python -m tools.emulator.install $(@D) || true

engines-check: $(INSTALLED) $(BENCH) ## The examples of docs/ that show other engines, with these
	$(BIN)/python -m pytest test/tools/test_docs.py -k coming-from-others

check-emulated: $(INSTALLED) $(EMULATOR) ## Run kernels on emulated CPUs, those with matrix tiles too (fetches Bochs)
	QDIALECT_EMULATED=1 $(BIN)/python -m pytest test/emulated -rs

evidence: $(INSTALLED) ## Compare operators with their frameworks, write docs/evidence (EVIDENCE_ARGS: sources, --check)
	$(BIN)/python -m tools.evidence $(EVIDENCE_ARGS)

fuzz-graphs fuzz-operators fuzz-tflite fuzz-torch fuzz-programs fuzz-values fuzz-models fuzz-files: $(INSTALLED) ## Campaigns from seeds, counted in docs/testing.md (N: how many seeds)
	$(BIN)/python -m tools.evidence --campaign $(@:fuzz-%=%) --number $(N)
	$(BIN)/python tools/gen_docs.py

models: $(PACKAGE) ## Download the test models that are missing, and check them
	$(BIN)/python -m tools.models

fuzz: $(INSTALLED) ## Longer random campaigns (FUZZ_PROFILE=long)
	$(BIN)/python -m pytest test/fuzz --hypothesis-profile=$(FUZZ_PROFILE)

clean: ## Remove .venv and everything that was built
	rm -rf $(VENV) $(BENCH_VENV) $(ZOO_VENV) $(RAY_VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
