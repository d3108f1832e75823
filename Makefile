# Two commands on a fresh machine: `make report` and `make test`.
# Needs python3 >= 3.11 with pip and venv, make and git.

PYTHON ?= python3
TORCH ?= torch==2.13.0
CORES ?= 8
CONFIGFILE ?= config/config.yaml
BENCHMARK ?= demo
MODE ?= rate

VENV := .venv
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# Byte code is what makes the short jobs of a workflow start quickly.
unexport PYTHONDONTWRITEBYTECODE

NMB := $(VENV)/bin/nmb
.PHONY: help report test test-quick validate same lint setup setup-dev docs clean record audit pull plan retry drift rating-round adjudication

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile
	@echo "Settings stand behind the target: make report CONFIGFILE=config/paper.yaml CORES=2. All other commands: nmb --help"

report: setup ## set up .venv, run what is out of date, say where the report is
	snakemake --cores $(CORES) --configfile $(CONFIGFILE) -- results/report.html
	@echo "The report: $(CURDIR)/results/report.html"

test: setup-dev ## run all tests
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-quick: setup-dev ## for the inner loop: tests that start no workflow, browser, model or many processes
	python -m pytest -n 2 --dist worksteal -m "not workflow and not browser and not slow" tests/unit tests/property

# Only those whose code has changed since; SERIES names others. Minutes to an hour.
validate: setup-dev ## run the long series of which the tests run a slice
	python tests/validate.py $(SERIES)

# A complete run is recorded as it ends; this records one that was not, and says why.
record: setup ## record the run with DVC
	nmb run record --configfiles $(CONFIGFILE)

audit: setup ## compare every result with what it was made from
	nmb run audit --configfiles $(CONFIGFILE)

# Ledgers are united, never shortened.
pull: setup ## bring what dvc.lock names from the remote
	nmb run pull

plan: setup ## say what models and graders would be asked and what that would cost; nothing is sent
	nmb model plan --configfiles $(CONFIGFILE)

retry: setup ## ask again for answers and grades that are missing because a call failed or was skipped
	nmb run retry --configfiles $(CONFIGFILE) --cores $(CORES)

drift: setup ## ask a model (MODEL=...) 20 items again; fails when the answers have changed
	$(if $(MODEL),,$(error name the model: make drift MODEL=<model>))
	nmb model drift --model "$(MODEL)" --benchmark $(BENCHMARK) --configfiles $(CONFIGFILE)

# One page a rater, and the key that stays here. A round is never made again.
# With MODE=answer a sample of questions, which clinicians answer themselves.
rating-round: setup ## freeze a sample of answers (ROUND=r01) for clinicians
	$(if $(ROUND),,$(error name the round: make rating-round ROUND=r01))
	nmb ratings round --round "$(ROUND)" --mode $(MODE) --configfiles $(CONFIGFILE)

# It is never made again under its name (NAME=adjudication-2 for a later one).
adjudication: setup ## make the packet of a further rater for what the raters of a round (ROUND=r01) disagree on
	$(if $(ROUND),,$(error name the round: make adjudication ROUND=r01))
	nmb ratings adjudicate --round "$(ROUND)" --name "$(or $(NAME),adjudication)" --configfiles $(CONFIGFILE)

same: setup ## compare every result with those of another commit (BASE=<commit>)
	$(if $(BASE),,$(error name the commit: make same BASE=<commit>))
	python tests/same_results.py "$(BASE)" --configfile config/test.yaml
	python tests/same_results.py "$(BASE)" --configfile config/config.yaml

lint: setup-dev ## run the linters
	ruff format --check scripts tests perf
	ruff check scripts tests perf
	mypy
	snakefmt --check Snakefile rules
	snakemake --lint
	nmb run docs --check

docs: setup ## write what is generated from the configuration
	nmb run docs

setup: $(READY) $(NMB) ## set up .venv with what running needs, and the command `nmb`

# It moves no version.
setup-dev: $(READY_DEV) $(NMB) ## add what tests and linters need

# torch comes first and alone: whoever has a build for their machine passes TORCH=..., and nothing pulls a second one.
$(READY): requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "python3 >= 3.11 is needed, found " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	touch $@

$(READY_DEV): requirements-dev.lock $(READY)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -r requirements-dev.lock
	touch $@

# `nmb` and `import neuralmedbench` use the library where it stands: nothing is built, nothing fetched.
$(NMB): $(READY)
	echo "$(CURDIR)/scripts" > "$$($(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/neuralmedbench.pth"
	printf '#!/bin/sh\nexec "%s" -P -m neuralmedbench "$$@"\n' "$(abspath $(VENV))/bin/python" > $@
	chmod +x $@

# The ledgers (answers that were paid for) and data/raw stay.
clean: ## throw away what can be made again
	find results -mindepth 1 ! -name README.md -delete
	rm -rf logs .snakemake/metadata $(addprefix data/,ingested deidentified normalised slices items gold disclosures prompts leaks) data/reviews/*/
