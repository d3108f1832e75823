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

.PHONY: report test test-quick validate same lint setup setup-dev docs clean record audit pull plan retry drift rating-round adjudication

report: setup
	snakemake --cores $(CORES) --configfile $(CONFIGFILE) -- results/report.html
	@echo "The report: $(CURDIR)/results/report.html"

test: setup-dev
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# For the inner loop: unit and property tests without those that start workflows, browsers, models or many processes.
test-quick: setup-dev
	python -m pytest -n 2 --dist worksteal -m "not workflow and not browser and not slow" tests/unit tests/property

# The long series of which the tests run a slice; only those whose code has changed since. SERIES names others. Minutes to an hour.
validate: setup-dev
	python tests/validate.py $(SERIES)

# A complete run is recorded as it ends; this records one that was not, and says why.
record: setup
	python scripts/record_run.py --configfiles $(CONFIGFILE)

# Compares every result with what it was made from.
audit: setup
	python scripts/audit_run.py --configfiles $(CONFIGFILE)

# Brings what dvc.lock names from the remote; ledgers are united, never shortened.
pull: setup
	python scripts/pull_recorded.py

# Says what the models and graders would be asked and what that would cost; nothing is sent.
plan: setup
	python scripts/plan_calls.py --configfiles $(CONFIGFILE)

# Asks again for the answers and grades that are missing because a call failed or was skipped.
retry: setup
	files=$$(python scripts/list_incomplete.py --configfiles $(CONFIGFILE)) && test -z "$$files" || \
	snakemake --cores $(CORES) --configfile $(CONFIGFILE) --forcerun $$files -- results/report.html

# Asks a model 20 items again; it fails when the answers have changed.
drift: setup
	$(if $(MODEL),,$(error name the model: make drift MODEL=<model>))
	python scripts/check_drift.py --model "$(MODEL)" --benchmark $(BENCHMARK) --configfiles $(CONFIGFILE)

# Freezes a sample of answers for clinicians: one page a rater, and the key that stays here. A round is never made again.
# With MODE=answer a sample of questions, which they answer themselves.
rating-round: setup
	$(if $(ROUND),,$(error name the round: make rating-round ROUND=r01))
	python scripts/make_rating_round.py --round "$(ROUND)" --mode $(MODE) --configfiles $(CONFIGFILE)

# Makes the packet of a further rater for what the raters of a round disagree on; it is never made again under its name.
adjudication: setup
	$(if $(ROUND),,$(error name the round: make adjudication ROUND=r01))
	python scripts/make_adjudication.py --round "$(ROUND)" --name "$(or $(NAME),adjudication)" --configfiles $(CONFIGFILE)

# After a change of structure: does every result stay what it was at another commit? BASE names it.
same: setup
	$(if $(BASE),,$(error name the commit: make same BASE=<commit>))
	python tests/same_results.py "$(BASE)" --configfile config/test.yaml
	python tests/same_results.py "$(BASE)" --configfile config/config.yaml

lint: setup-dev
	ruff format --check scripts tests perf
	ruff check scripts tests perf
	mypy
	snakefmt --check Snakefile rules
	snakemake --lint
	python scripts/write_docs.py --check

docs: setup
	python scripts/write_docs.py

# What running needs; `setup-dev` adds what tests and linters need and moves no version.
setup: $(READY)

setup-dev: $(READY_DEV)

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

# Throws away what can be made again. The ledgers (answers that were paid for) and data/raw stay.
clean:
	find results -mindepth 1 ! -name README.md -delete
	rm -rf logs .snakemake/metadata $(addprefix data/,ingested deidentified normalised slices items gold disclosures prompts leaks) data/reviews/*/
