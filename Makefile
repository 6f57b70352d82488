# Each target sets up by itself what it needs: packages, configuration, build.
.DEFAULT_GOAL := help
.PHONY: help demo test test-page test-python wheel build lint format asan asan-parsers tsan fuzz clang arm64 \
  docs bench clean

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 0

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: build ## train three translators of a built-in language in demo/ and show them; run again to resume
	build/release/fovea demo --out demo

test: packages ## build and run every test
	@scripts/configure release
	@echo "fovea: building the tests in build/release"
	@cmake --build build/release -j $(JOBS)
	@ctest --test-dir build/release --output-on-failure -j $(JOBS) -LE browser

test-page: build ## open the pages in a headless browser and use them
	@scripts/packages scripts/packages-page.txt
	@cmake --build build/release -j $(JOBS) --target test_explain_page_model
	@ctest --test-dir build/release --output-on-failure -L browser

test-python: packages ## install the Python package in build/venv and run its tests (PyTorch and others from PyPI)
	@scripts/packages scripts/packages-python.txt
	@scripts/configure release
	@echo "fovea: building the libraries in build/release"
	@cmake --build build/release -j $(JOBS) --target fovea_tasks
	@scripts/python-env build/venv
	@build/venv/bin/python -m pytest -q tests/python

wheel: packages ## build/wheel/fovea-*.whl, with the libraries that it needs inside
	@scripts/packages scripts/packages-python.txt
	@scripts/wheel build/wheel

build: packages ## build the program: build/release/fovea
	@scripts/configure release
	@cmake --build build/release -j $(JOBS) --target fovea_cli examples

lint: packages ## check layout (clang-format) and a short list of mistakes (clang-tidy)
	@scripts/packages scripts/packages-lint.txt
	@scripts/lint $(JOBS)

format: ## lay out all sources with clang-format
	@scripts/packages scripts/packages-lint.txt
	@scripts/sources | xargs clang-format-14 -i

asan: packages ## run the quick tests under the address and undefined-behaviour sanitizers
	@scripts/configure asan
	@cmake --build build/asan -j $(JOBS)
	@LSAN_OPTIONS=suppressions=$(CURDIR)/scripts/lsan.txt:print_suppressions=0 ctest --test-dir build/asan \
	  --output-on-failure -j $(JOBS) -LE 'slow|install|browser' -E 'grid_test.(scalar|sse4)'

asan-parsers: fuzz-build ## run the tests of the rooms that hold parsers under those sanitizers, in the build of `make fuzz`
	@cmake --build build/fuzz -j $(JOBS) --target tests/fuzz/all
	@ctest --test-dir build/fuzz --output-on-failure -j $(JOBS) -LE data

tsan: packages ## run the quick tests under the thread sanitizer
	@scripts/configure tsan
	@cmake --build build/tsan -j $(JOBS)
	@TSAN_OPTIONS=ignore_noninstrumented_modules=1 GTEST_FILTER=-Grid.FusedAttentionEqualsTheOracle \
	  scripts/fixed-addresses ctest --test-dir build/tsan --output-on-failure -j $(JOBS) \
	  -LE 'slow|install|browser' -E 'grid_test.(scalar|sse4)'

fuzz: fuzz-build ## fuzz every parser for FUZZ_SECONDS (60) each; FUZZ_SEED=1 repeats a run
	@scripts/configure release
	@cmake --build build/release -j $(JOBS) --target fovea_tasks
	@scripts/fuzz build/fuzz $(FUZZ_SECONDS) $(JOBS) $(FUZZ_SEED)

clang: packages ## build with clang and run the unit tests
	@scripts/packages scripts/packages-fuzz.txt
	@scripts/configure clang
	@cmake --build build/clang -j $(JOBS) --target quick_tests
	@ctest --test-dir build/clang --output-on-failure -j $(JOBS) -L unit -LE 'slow|install|browser'

arm64: packages ## cross-build for 64-bit ARM; run the unit, kernel and gradient tests under qemu
	@scripts/packages scripts/packages-arm64.txt
	@scripts/arm64-root $(CURDIR)/build/arm64-root
	@scripts/configure arm64
	@cmake --build build/arm64 -j $(JOBS) --target quick_tests
	@# The speed that an emulator reaches says nothing about the kernels; trainings take up to a quarter of an hour in it.
	@GTEST_FILTER=-MeasureFma.FindsAPositiveRate ctest --test-dir build/arm64 --output-on-failure -j $(JOBS) \
	  -L 'unit|per_isa|grad' -LE 'slow|install|browser' --timeout 7200

docs: build ## write the C++ reference to build/docs/html
	@scripts/packages scripts/packages-docs.txt
	@doxygen docs/Doxyfile
	@echo "fovea: open build/docs/html/index.html"

bench: build ## measure Fovea and its peers in one run and write docs/benchmarks.md
	@scripts/packages scripts/packages-bench.txt
	@bench/run

clean: ## remove everything that was built
	rm -rf build

.PHONY: packages fuzz-build
packages:
	@scripts/packages scripts/packages.txt
fuzz-build: packages
	@scripts/packages scripts/packages-fuzz.txt
	@scripts/configure fuzz
