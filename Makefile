# Two commands on a fresh machine: `make report` and `make test`.
# Needs python3 >= 3.11 with pip and venv, make and git.

PYTHON ?= python3
TORCH ?= torch==2.13.0
CORES ?= 8
CONFIGFILE ?= config/config.yaml

VENV := .venv
READY := $(VENV)/.ready
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# Byte code is what makes the short jobs of a workflow start quickly.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: report test lint setup docs clean

report: setup
	snakemake --cores $(CORES) --configfile $(CONFIGFILE) -- results/report.html
	@echo "The report: $(CURDIR)/results/report.html"

test: setup
	python -m pytest

lint: setup
	ruff format --check scripts tests perf
	ruff check scripts tests perf
	mypy
	snakefmt --check Snakefile rules
	snakemake --lint
	python scripts/write_docs.py --check

docs: setup
	python scripts/write_docs.py

setup: $(READY)

# torch comes first and alone: whoever has a build for their machine passes TORCH=..., and nothing pulls a second one.
$(READY): requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "python3 >= 3.11 is needed, found " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	touch $@

clean:
	rm -rf results logs data/ingested data/deidentified data/normalised data/slices data/items data/gold data/disclosures data/prompts
