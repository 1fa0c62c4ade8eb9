# Everything a clone needs, with nothing but Python 3.11 or newer and make.
#
#   make demo     the dashboard on a demo world             make test     all checks and all tests
#   make check    formatting, types, import rules only      make bench    the benchmarks
#   make mutants  break rules on purpose: tests must notice
#   make clean    delete the environment and the caches
#
# PYTHON=/path/to/python chooses the interpreter, ARGS='…' passes arguments on (make test ARGS='-k logs').

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
ARGS ?=
# Tests wait much, so two more than the usual two cores; WORKERS=0 runs them in one process, for a debugger.
WORKERS ?= 4
# Where it is set, each of the hundreds of processes of the tests compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

# The environment is made again when one of these changes, and re-used (offline, too) when none has.
INSTALLED_FROM := pyproject.toml constraints.txt
RUN_STAMP := $(VENV)/.installed-to-run
DEVELOP_STAMP := $(VENV)/.installed-to-develop

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check bench mutants clean

help:
	@sed -n 's/^#   */  /p' Makefile

demo: $(RUN_STAMP)
	@exec $(BIN)/python -m tui demo $(ARGS)

test: check
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

check: $(DEVELOP_STAMP)
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/lint-imports --no-cache

bench: $(DEVELOP_STAMP)
	@$(BIN)/python benchmarks/run.py $(ARGS)

# Minutes: the tests of each rule run once for every way to break it.
mutants: $(DEVELOP_STAMP)
	@$(BIN)/python tests/mutants.py $(ARGS)

clean:
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build
	@find api_client tui tests -name __pycache__ -type d -prune -exec rm -rf {} +

# PYTHON if it is given, else the first of the usual names that is new enough and can make environments.
$(BIN)/python:
	@usable='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
	for candidate in $(or $(PYTHON),python3 python3.11 python3.12 python3.13 python3.14 python); do \
	  if command -v "$$candidate" >/dev/null 2>&1 && "$$candidate" -c "$$usable" 2>/dev/null; then \
	    exec "$$candidate" -m venv $(VENV); \
	  fi; \
	done; \
	echo "bt-tui needs Python 3.11 or newer with the venv module, and found none:" >&2; \
	echo "  install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; \
	exit 1

$(RUN_STAMP): $(INSTALLED_FROM) | $(BIN)/python
	@echo "Installing bt-tui into $(VENV) …" >&2
	@$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

# pip reads dependency groups only since 25.1, so the list of development tools is handed to it as a file.
LIST_TOOLS := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")

$(DEVELOP_STAMP): $(RUN_STAMP)
	@echo "Installing the development tools into $(VENV) …" >&2
	@$(BIN)/python -c '$(LIST_TOOLS)' > $(VENV)/development-tools.txt
	@$(PIP) install --quiet --constraint constraints.txt --requirement $(VENV)/development-tools.txt
	@touch $@
