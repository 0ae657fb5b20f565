# make demo: see it work. make test: everything that CI runs.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INPUTS ?= 1000000
WHAT ?= segments
MUTANTS ?= 10
SEED ?= 1
SUBJECTS ?=
STEPS ?=
JARS ?=

.PHONY: help demo kernels test test-fast check docs wheel release fuzz mutants release-drift spark-matrix lines bench java browser clean

help:
	@echo "make demo   install into $(VENV) and show the latest offsets of a recorded cluster"
	@echo "make kernels  compile the kernels for large logs now, so that the first one waits for none"
	@echo "make test   install what the tests need and run everything, checks included; EXAMPLES=10: random tests longer"
	@echo "make test-fast  what says most in little time: no Java, no browser, few recordings"
	@echo "make check  formatting, lint, types, import contracts, dead code"
	@echo "make docs   write the generated pages of docs/ and what sessions print, and build the site"
	@echo "make wheel  build dist/*.whl with compiled kernels in it, so that the first large log waits for none"
	@echo "make release VERSION=X.Y.Z  check, date the changelog, and build wheel and source distribution into dist/"
	@echo "make fuzz   read INPUTS=$(INPUTS) hostile segments (WHAT=segments, engines, lines, repair, clean, data-directory, requests)"
	@echo "make mutants put small faults in, MUTANTS=$(MUTANTS) a subject, and tell which no test notices (SEED=$(SEED))"
	@echo "make release-drift KAFKA=X.Y.Z  what a Kafka release has that is in no table here (STEPS=messages,... some steps)"
	@echo "make lines  count lines and code, by folder"
	@echo "make spark-matrix  every level, SQL and a stream on Spark 4.0, 4.1 and 4.3, and by Connect (a gigabyte of packages)"
	@echo "make bench  measure the commands and others on a generated log"

demo: $(VENV)/.installed
	@echo '$$ offsets-log compact samples/kafka-4.3-mixed/log'
	@$(BIN)/offsets-log compact samples/kafka-4.3-mixed/log --output table
	@echo
	@echo 'These are the latest committed offsets in the files of a Kafka 4.3 broker. Try next:'
	@echo '  $(BIN)/offsets-log info samples/kafka-4.3-mixed/log'
	@echo '  $(BIN)/offsets-log decode samples/kafka-4.3-mixed/log -g "metrics-*" --expand | head -3'
	@echo '  $(BIN)/offsets-log compact YOUR-DATA-DIRECTORY -o csv --to offsets.csv'

kernels: $(VENV)/.installed
	$(BIN)/python -m tools.shipped_kernels --keep

# Tests start hundreds of processes: what these import is compiled once.
PYTEST = PYTHONDONTWRITEBYTECODE= OFFSETS_LOG_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest

test: check java browser
	$(PYTEST)

test-fast: EXAMPLES ?= 0.1
test-fast: $(VENV)/.installed-dev
	$(PYTEST) -q -m "not slow"

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture

docs: $(VENV)/.installed-dev
	$(BIN)/python -m tools.cli_reference
	$(BIN)/python -m tools.rule_reference
	$(BIN)/python -m tools.format_reference
	$(BIN)/python -m tools.release_reference
	$(BIN)/python -m tools.column_reference
	$(BIN)/python -m tools.sessions
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "the site is in build/site; open build/site/index.html"

wheel: $(VENV)/.installed-dev
	$(BIN)/python -m tools.shipped_kernels
	$(BIN)/python -m build --wheel

release: check
	$(BIN)/python -m tools.release $(VERSION)
	rm -rf dist
	$(BIN)/python -m tools.shipped_kernels
	$(BIN)/python -m build

fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m tests.fuzz --what $(WHAT) --inputs $(INPUTS)

mutants: $(VENV)/.installed-mutants
	$(BIN)/python -m tools.mutants --mutants $(MUTANTS) --seed $(SEED) $(SUBJECTS)

release-drift: $(VENV)/.installed-dev
	$(BIN)/python -m tools.release_drift $(KAFKA) $(if $(JARS),--jars $(JARS)) $(if $(STEPS),--steps $(STEPS))

lines: $(BIN)/python
	$(BIN)/python -m tools.lines

spark-matrix: $(VENV)/.installed-dev java
	$(BIN)/python -m tools.spark_matrix

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Python 3.11 or newer is needed; say which: make PYTHON=python3.12 ...' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || ./tools/apt-install python3-venv
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-mutants: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutants]'
	@touch $@

java:
	@command -v java >/dev/null || ./tools/apt-install openjdk-17-jdk-headless default-jdk-headless \
		|| echo "without Java the tests of Spark and of real brokers are skipped" >&2
	@command -v mvn >/dev/null || ./tools/apt-install maven || echo "without Maven those of real brokers are skipped" >&2

browser:
	@command -v chromium >/dev/null || ./tools/apt-install chromium || echo "without a browser its tests are skipped" >&2

clean:
	rm -rf $(VENV) build dist offsets_log/columnar/shipped .pytest_cache .mypy_cache .ruff_cache .hypothesis
