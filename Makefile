# Every command of the project. Each target works alone from a fresh clone; the environment is .venv.
SHELL := /bin/bash
.SHELLFLAGS := -eo pipefail -c
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
ROOT ?= .
ARGS ?=
KERNELS := $(wildcard src/_fast/*.pyx src/_fast/*.pxd src/_fast/*.h src/_fast/*.c)

.PHONY: build serve test lint unit conformance wheel asan fuzz bench bench-check pauses system clean

build: .venv/.built

.venv/.deps: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -U pip 'setuptools>=77' 'cython>=3.1,<4'
	TS_KERNELS=none $(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation -e '.[test]'
	touch $@ .venv/.built

.venv/.built: .venv/.deps setup.py $(KERNELS)
	$(BIN)/python setup.py -q build_ext --inplace -j $$(nproc)
	touch $@

# The server's commands inherit its environment, and a make among them would take these for its own: what make sets, and
# what was given on its command line. A MAKEFLAGS from before make cannot be told from make's and goes, too.
OF_MAKE = ROOT ARGS MAKEFLAGS MAKELEVEL MAKEOVERRIDES MAKE_RESTARTS MAKE_TERMERR MAKE_TERMOUT MFLAGS GNUMAKEFLAGS \
    $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
serve: build
	exec env $(OF_MAKE:%=-u %) $(BIN)/toolserver serve $(ROOT) $(ARGS)

# What the tests run beside Python: installed with apt-get where that is allowed, else named.
system:
	sh .ci/system-packages

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/stubtest --mypy-config-file pyproject.toml --allowlist .ci/stubtest-allowlist --ignore-disjoint-bases --concise \
	    $(patsubst src/_fast/%.pyx,toolserver._fast.%,$(wildcard src/_fast/*.pyx))
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint src/_fast
	$(BIN)/lint-imports

# A wheel and a source distribution; the wheel is built from the latter, which shows that nothing is missing in it.
DIST ?= dist
wheel: build
	rm -rf $(DIST)
	$(BIN)/python -m build --no-isolation --outdir $(DIST) .

# The chapters of the conformance suite that belong to what is built. CONFORMANCE_PARTIAL=1 passes over what needs a tool
# that is not there yet.
CHAPTERS := http paths_trees read glob ignore grep write_edit patch exec processes streams watch capsule relaunch \
    task journal activity fs_tree fs_git fs_raw_upload
test: system lint
	CONFORMANCE_PARTIAL=1 $(BIN)/python -m pytest tests/unit tests/property tests/http tests/oracle tests/faults \
	    $(CHAPTERS:%=tests/conformance/test_%.py)

conformance: build
	CONFORMANCE_PARTIAL=1 $(BIN)/python -m pytest $(CHAPTERS:%=tests/conformance/test_%.py)

.venv/.bench: .venv/.deps
	TS_KERNELS=none $(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation -e '.[bench]'
	touch $@

# Side by side with the programs of the trade; BENCH=FILE for a part, BENCHARGS="-k NAME" for less.
BENCH ?= bench
bench: build .venv/.bench
	sh .ci/system-packages bench
	mkdir -p bench/report
	$(BIN)/python -m pytest -c bench/pytest.ini --rootdir bench $(BENCH) --benchmark-json bench/report/raw.json $(BENCHARGS)
	$(BIN)/python bench/report.py bench/report/raw.json

# How long heavy calls hold up others; fails where it is over 50 ms. PAUSES="glob body" for some of them.
PAUSES ?=
pauses: build
	$(BIN)/python bench/pauses.py --check $(PAUSES)

# Both, and fails where a ratio is over its bound.
bench-check: bench pauses
	$(BIN)/python bench/report.py bench/report/raw.json --check

# Kernels built apart, in build/asan and build/fuzz: only what changed is compiled, all of it when the switches change.
build/%/.switches: setup.py
	rm -rf build/$* build/$*-objects
	mkdir -p build/$*
	touch $@

define build-apart
find build/$(1) -name '*.py' -delete
$(2) $(BIN)/python -B setup.py -q build -j $$(nproc) --build-lib build/$(1) --build-temp build/$(1)-objects
endef

# The unit and property tests, and files and trees that change while they are read and searched, on kernels built with
# AddressSanitizer and UBSan. A report fails it, from a server too that the tests have started; one of UBSan's shows as
# ABRT below __ubsan_handle_KIND. ASANARGS for pytest.
ASAN_TESTS ?= tests/unit tests/property $(wildcard tests/faults/test_*_changing_*.py)
ASAN_REPORTS := $(CURDIR)/build/asan-reports
asan: system build build/asan/.switches
	$(call build-apart,asan,TS_SANITIZE=1)
	rm -rf $(ASAN_REPORTS) && mkdir -p $(ASAN_REPORTS)
	status=0; \
	ASAN_OPTIONS=detect_leaks=0:handle_abort=1:log_path=$(ASAN_REPORTS)/report \
	UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1:log_path=$(ASAN_REPORTS)/report \
	PYTHONMALLOC=malloc PYTHONPATH=build/asan \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	$(BIN)/python -m pytest $(ASAN_TESTS) $(ASANARGS) || status=$$?; \
	for report in $(ASAN_REPORTS)/*; do if test -s $$report; then cat $$report; status=1; fi; done; \
	exit $$status

.venv/.fuzz: .venv/.deps
	TS_KERNELS=none $(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation -e '.[fuzz]'
	touch $@

# Each target of tests/fuzz from a coverage-guided fuzzer, with AddressSanitizer and UBSan, for FUZZ_SECONDS each; FUZZ
# names some of them, NAME.dict has words for one. What was reached is kept in build/fuzz-corpus for the next time.
FUZZ_SECONDS ?= 60
FUZZ ?= $(patsubst tests/fuzz/fuzz_%.py,%,$(wildcard tests/fuzz/fuzz_*.py))
fuzz: build .venv/.fuzz build/fuzz/.switches
	sh .ci/system-packages fuzz
	$(call build-apart,fuzz,TS_FUZZ=1 CC=clang CXX=clang++ LDSHARED="clang++ -shared" LDCXXSHARED="clang++ -shared")
	rm -rf build/fuzz-trees
	for name in $(FUZZ); do \
	    echo "fuzzing $$name"; mkdir -p build/fuzz-corpus/$$name; \
	    words=tests/fuzz/$$name.dict; test -f $$words && words=-dict=$$words || words=; \
	    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	    PYTHONMALLOC=malloc PYTHONPATH=build/fuzz:tests/fuzz \
	    LD_PRELOAD="$$($(BIN)/python -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so" \
	    $(BIN)/python tests/fuzz/run.py $$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=1 $$words \
	    -artifact_prefix=build/fuzz-corpus/$$name- build/fuzz-corpus/$$name 2>&1 | grep -vE '^#|Uses:|dictionary'; \
	done

clean:
	rm -rf build dist .venv src/*.egg-info src/_fast/*.so
