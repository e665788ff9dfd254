# Every command of the project. Each target works alone from a fresh clone; the environment is .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
ROOT ?= .
ARGS ?=
KERNELS := $(wildcard src/_fast/*.pyx src/_fast/*.pxd src/_fast/*.h)

.PHONY: build serve test lint unit conformance wheel asan fuzz bench bench-check system clean

build: .venv/.built

.venv/.deps: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -U pip 'setuptools>=77' 'cython>=3.1,<4'
	$(BIN)/python -m pip install -q --no-build-isolation -e '.[test]'
	touch $@ .venv/.built

.venv/.built: .venv/.deps setup.py $(KERNELS)
	$(BIN)/python setup.py -q build_ext --inplace
	touch $@

serve: build
	$(BIN)/toolserver serve $(ROOT) $(ARGS)

# What the tests run beside Python: installed with apt-get where that is allowed, else named.
system:
	sh .ci/system-packages

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint src/_fast
	$(BIN)/lint-imports

test: system lint
	CONFORMANCE_PARTIAL=1 $(BIN)/python -m pytest tests

.venv/.bench: .venv/.deps
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation -e '.[bench]'
	touch $@

# Side by side with the programs of the trade; BENCH=FILE for a part, BENCHARGS="-k NAME" for less.
BENCH ?= bench
bench: build .venv/.bench
	sh .ci/system-packages bench
	mkdir -p bench/report
	$(BIN)/python -m pytest -c bench/pytest.ini --rootdir bench $(BENCH) --benchmark-json bench/report/raw.json $(BENCHARGS)
	$(BIN)/python bench/report.py bench/report/raw.json

# The same, and fails where a ratio is over its bound.
bench-check: bench
	$(BIN)/python bench/report.py bench/report/raw.json --check

clean:
	rm -rf build dist .venv src/*.egg-info src/_fast/*.so
