# Each target sets up .venv by itself and skips that when nothing changed.
# LOCKED=1 installs exactly the files of requirements.lock, by their hashes (Linux on x86-64, Python 3.11).
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)

.PHONY: setup browser demo test coverage lint docs reproduce lock sbom clean

demo: $(READY)  ## the main job on the embedded data, about a minute
	$(BIN)/invariantnet fit mnist:rotated --symmetries rot90,flips --examples 3000 --out runs/demo --overwrite

test: $(READY) browser  ## every test
	$(BIN)/pytest

coverage: $(READY) browser  ## every test, and which branches of the program they take
	$(BIN)/pytest --cov --cov-report=term-missing:skip-covered

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)  ## the documentation site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reproduce: $(READY)  ## every figure and table of the paper with five seeds, into runs/reproduce; about 70 CPU minutes
	$(BIN)/python -m studies reproduce all

lock: $(READY)  ## what a new installation takes, with hashes, into requirements.lock
	$(BIN)/python tools/supply_chain.py lock > requirements.lock.new
	mv requirements.lock.new requirements.lock

sbom: $(READY)  ## a bill of materials (CycloneDX), into sbom.json
	$(BIN)/python tools/supply_chain.py sbom > sbom.json

setup: $(READY)  ## only the environment

browser:  ## Chromium, for the tests of the report; without it they are skipped
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { command -v apt-get >/dev/null && $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq chromium >/dev/null; } || \
	  echo "no Chromium, and none to be installed here: the tests of the report are skipped"

INSTALL := $(BIN)/python -m pip install --quiet

$(READY): pyproject.toml constraints.txt requirements-dev.txt $(if $(LOCKED),requirements.lock)
	@echo "Setting up .venv, once: this takes some minutes"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "InvariantNet needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(if $(LOCKED),$(INSTALL) --no-deps --require-hashes -r requirements.lock,$(INSTALL) -r requirements-dev.txt)
	$(if $(LOCKED),$(INSTALL) --no-deps --no-build-isolation -e . && $(BIN)/python -m pip check)
	touch $@

clean:
	rm -rf .venv site build dist
