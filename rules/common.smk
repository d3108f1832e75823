"""Configuration, case lists and code hashes, shared by all rules."""

import gc
import re
import sys
from pathlib import Path

# Snakemake keeps every job of a plan, so garbage collection finds nothing among them, and took a third of the planning time of 40,000 jobs.
gc.set_threshold(200_000, 20, 50)

sys.path.insert(0, str(Path(workflow.basedir, "scripts")))
# first: from here on an interrupt is one line, and so is what Snakemake says before it starts
from neuralmedbench.runtime.terminal import snakemake_terminal
from snakemake.logging import logger

TERMINAL = snakemake_terminal(workflow, logger)


configfile: "config/config.yaml"


from neuralmedbench.config import code_hash as code_hashes
from neuralmedbench.config.run_names import extra_configfiles
from neuralmedbench.config.workflow import Run, used_cases
from neuralmedbench.errors import PipelineError
from neuralmedbench.files.cases import write_overrides
from neuralmedbench.runtime.machine import usable_memory_mb
from neuralmedbench.runtime.one_writer import wait_for_writers
from neuralmedbench.runtime.one_writer import name_this_run
from neuralmedbench.runtime.storage import check_places, check_project
from neuralmedbench.recording.record import repairs
from neuralmedbench.recording.run_mistakes import run_mistakes
from neuralmedbench.models.destinations import resources_of
from neuralmedbench.records.scores import PLANTED
from snakemake.exceptions import WorkflowError

name_this_run(main=workflow.is_main_process)


wildcard_constraints:
    benchmark=r"[a-z0-9]+(?:[.-][a-z0-9]+)*",
    model=r"[a-z0-9]+(?:[.-][a-z0-9]+)*",
    grader=r"[a-z0-9]+(?:[.-][a-z0-9]+)*",
    case=r"[a-z0-9]+",
    paper=r"[a-z0-9]+(?:[.-][a-z0-9]+)*",


try:
    CONFIGFILES = extra_configfiles(workflow.overwrite_configfiles)
    RUN = Run.read(config, Path("config"), run_mistakes, CONFIGFILES)
except PipelineError as error:
    raise WorkflowError(f"{type(error).__name__}: {error}") from None

TERMINAL.introduce(RUN, overridden=bool(workflow.config_settings.config))

# of a command, in JSON: keys of the configuration that are not at their defaults, and further values
settings = RUN.settings
# replay, caps and limits change no answer: changing them plans nothing, because rules pass them as a function of the input, and such params
# are not compared; `nmb run retry` requests what a limit had stopped
CONTROL = settings("replay", "max_run_cost_usd", "rate_limits")


LARGEST_REQUEST_MB = 3000  # of a rule whose request does not grow with the cases


def limit_memory():
    """Let jobs on this machine request no more memory together than there is, unless `--resources mem_mb=...` says how much."""
    if workflow.non_local_exec or "mem_mb" in workflow.global_resources:
        return
    # Snakemake refuses a job that requests more than the limit; the largest ones run alone instead
    largest = [LARGEST_REQUEST_MB, 2000 + sum(map(len, RUN.tables.values()))]
    for resources in workflow.resource_settings.overwrite_resources.values():
        largest += [resources["mem_mb"].value] if "mem_mb" in resources else []
    workflow.register_resource("mem_mb", max(usable_memory_mb(), *largest))


if workflow.is_main_process:
    try:
        check_project()
        RUN.check_targets(sys.argv[1:])
        repaired = repairs(RUN)
    except PipelineError as error:
        raise WorkflowError(f"{type(error).__name__}: {error}") from None
    limit_memory()
    for line in (*RUN.notices(), *repaired):
        TERMINAL.say(line)


def before_jobs():
    """Check that all outputs can be written, and that no command of a killed run is still writing them."""
    outputs = [str(path) for job in workflow.dag.needrun_jobs() for path in job.output]
    try:
        check_places(outputs)
        wait_for_writers(outputs)
    except PipelineError as error:
        raise WorkflowError(f"{type(error).__name__}: {error}") from None


def code_hash(command):
    """Return the digest of the code that a command runs; see neuralmedbench/config/code_hash.py."""
    return code_hashes.code_hash(Path(workflow.basedir, "scripts"), command)


def of_cases(pattern):
    """Return an input function: `pattern` for each case of the benchmark that is not excluded."""
    return lambda wildcards: expand(
        pattern, benchmark=wildcards.benchmark, case=RUN.cases(wildcards.benchmark)
    )


def mb_of_cases(wildcards, base, of_case):
    """Return the memory in MB of a job that reads all cases of a benchmark; measured with 1,000, 5,000 and 10,000 cases."""
    return base + round(of_case * len(RUN.tables.get(wildcards.benchmark, ())))


def slots_of_model(wildcards):
    """Return the resources (slots) of a model's job, and of its informant; see neuralmedbench/models/destinations.py."""
    return resources_of(*RUN.asked(wildcards.benchmark, wildcards.model))


def slots_of_grader(wildcards):
    """Return the resources (slots) of a grader's job."""
    return resources_of(RUN.all_graders[wildcards.grader].model)


def tested_before(wildcards):
    """Return the grades of planted errors, which a grader that asks a model gives before it grades the answers of a model."""
    asks = RUN.all_graders[wildcards.grader].model and wildcards.model != PLANTED
    return (
        f"<results>/grades/{wildcards.benchmark}/{PLANTED}/{wildcards.grader}.parquet"
        if asks
        else []
    )


def names_of_graders(*kinds):
    """Return a pattern of the names of all graders of some kinds, jury members included; it matches nothing if there are none."""
    names = [
        re.escape(name)
        for name, grader in RUN.all_graders.items()
        if grader.kind in kinds
    ]
    return "|".join(names) or "(?!)"
