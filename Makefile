# The commands that people use; everything behind them is scripts/, CMake and pytest. Each is safe to run again, and
# says what it installs before it does. A part adds what test-programs, soak and bench run as an executable of its own:
# tests/PART/run-programs, tests/PART/run-soak, bench/PART/run.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.PHONY: help setup build demo check test test-programs soak bench bench-fidelity results lint docs aarch64 windows dotnet wheel packages clean distclean

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

setup: ## install what building needs: Debian packages, and .venv
	@scripts/install-packages build lab
	@scripts/setup-npm
	@scripts/setup-venv

build: setup ## build/release, and the command line: .venv/bin/blockyard
	@scripts/build release -DBLOCKYARD_TESTS=OFF

everything = $(filter-out 0,$(ALL))
demo: ## replay a real game on five allocators (AGAIN=1, ALL=1)
	@scripts/install-packages build lab
	@$(MAKE) --no-print-directory -j2 demo-venv demo-build
	@.venv/bin/blockyard demo $(if $(filter-out 0,$(AGAIN)),--again) $(if $(everything),--all)
# pip mostly waits for the network.
.PHONY: demo-venv demo-build
demo-venv:
	@scripts/setup-venv
demo-build:
	@scripts/build release -DBLOCKYARD_TESTS=OFF --target blockyard-demo $(if $(everything),blockyard-crates)

check: ## the tests of what changed, in three minutes (BASE=main)
	@scripts/install-packages build lab test
	@scripts/setup-venv
	@scripts/run-check $(BASE)

test: ## all tests that gate, sanitizers and short fuzzing included
	@scripts/run-tests

test-programs: ## real programs under the preloads, for longer
	@scripts/install-packages build lab test programs
	@scripts/setup-venv
	@scripts/build release -DBLOCKYARD_TESTS=ON
	@scripts/run-each 'tests/*/run-programs'

soak: ## long random work, for hours
	@scripts/install-packages build lab test
	@scripts/setup-venv
	@scripts/build release -DBLOCKYARD_TESTS=ON
	@scripts/run-each 'tests/*/run-soak'

bench: ## ratios to peers (PARTS=heap: only that)
	@scripts/install-packages build lab test bench engines
	@scripts/setup-npm
	@scripts/setup-venv
	@scripts/build bench
	@BLOCKYARD_BUILD="$(CURDIR)/build/bench" scripts/run-each 'bench/*/run'

bench-fidelity: ## real programs beside the replays of their journals
	@scripts/install-packages build lab bench programs
	@scripts/setup-venv
	@scripts/build bench
	@BLOCKYARD_BUILD="$(CURDIR)/build/bench" bench/fidelity/run $(PROGRAMS)

results: ## write docs/results (COLLECT=1: from the last measurements)
	@scripts/setup-venv
	@bench/results/make $(if $(filter-out 0,$(COLLECT)),--collect)

lint: ## formatting, linters, dependency rule, pages
	@scripts/install-packages build lab test lint
	@scripts/setup-npm
	@scripts/setup-venv
	@scripts/setup-docs
	@scripts/run-lint

docs: build ## the documents as a searchable site in build/site, checked
	@scripts/setup-docs
	@scripts/build-docs

aarch64: ## cross-compile for 64-bit Arm, run the C++ tests in qemu
	@scripts/install-packages build aarch64
	@scripts/build aarch64
	@scripts/run-aarch64-tests

windows: ## compile the library for Windows, test it in Wine
	@scripts/install-packages build test windows
	@tests/windows/run

dotnet: ## build and test the C# library
	@scripts/install-packages dotnet
	@dotnet/run-tests

wheel: setup ## the Python wheel, native parts included, into dist/
	@scripts/build-wheel dist
	@ls dist/*.whl

packages: ## build, check and try the Conan and Debian packages
	@scripts/install-packages build lab packages
	@scripts/run-each 'packaging/*/run'

clean: ## remove what was built and measured, keep .venv
	rm -rf build dist demo try

distclean: clean ## remove .venv too
	rm -rf .venv
