# Every target makes .venv when it is missing or older than pyproject.toml, with plain pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DATA ?=
JOBS ?= auto
# LOCKED=1: the versions of constraints.txt instead of the newest that pyproject.toml allows.
LOCKED ?=

.PHONY: help setup demo test test-all lint bench docs clean lock sbom release-check

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "roadaware needs Python 3.11 or newer; say make PYTHON=python3.12"; rm -rf $(VENV); exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' \
	  $(if $(LOCKED),--constraint constraints.txt)
	@touch $(STAMP)

setup: $(STAMP)  ## make the virtual environment

demo: $(STAMP)  ## watch videos, judge what was found, show one page (DATA=DIR: every step on real annotations)
	@$(BIN)/roadaware demo $(if $(DATA),--data $(DATA))

test: $(STAMP)  ## the fast suite
	@$(BIN)/python -m pytest -n $(JOBS) -m 'not slow'

test-all: $(STAMP)  ## the fast suite and the slow one
	@$(BIN)/python -m pytest -n $(JOBS)

lint: $(STAMP)  ## style, types and the order of the layers
	@$(BIN)/ruff check src tests benchmarks docs/*.py
	@$(BIN)/ruff format --check src tests benchmarks docs/*.py
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(STAMP)  ## speed and memory (DATA=DIR or ROADAWARE_DATA_DIR: also on real annotations)
	@$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

docs: $(STAMP)  ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "open site/index.html (its search needs a server: $(BIN)/mkdocs serve)"

lock: $(STAMP)  ## write constraints.txt anew: an exact version of every package, for each Python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@$(BIN)/python tools/lock.py

sbom: $(STAMP)  ## write dist/roadaware.cdx.json: what roadaware needs, as installed here (CycloneDX)
	@mkdir -p dist && $(BIN)/python tools/sbom.py > dist/roadaware.cdx.json && echo dist/roadaware.cdx.json

release-check: $(STAMP) sbom  ## before a release: ask for advisories (network), check lock, licences and SBOM
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@$(BIN)/python -m pytest tests/test_releases.py
	@$(BIN)/python tools/audit.py

clean:  ## remove what the other targets made
	rm -rf $(VENV) site runs
