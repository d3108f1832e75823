"""Configuration, case lists and the hash of the code: what the rules share."""

import gc
import os
import shlex
import sys
from pathlib import Path

# A plan keeps every job it makes, so looking for garbage among them finds nothing: it took a third of the time of 40,000 jobs.
gc.set_threshold(200_000, 20, 50)

sys.path.insert(0, str(Path(workflow.basedir, "scripts")))

from neuralmedbench.config import code_hash as code_hashes
from neuralmedbench.config.workflow import Run, used_cases
from neuralmedbench.errors import PipelineError
from neuralmedbench.io.cases import write_overrides
from neuralmedbench.io.one_writer import wait_for_writers
from neuralmedbench.io.parent_run import name_this_run
from neuralmedbench.models.slots import slots_of
from neuralmedbench.recording.mending import mend_records
from snakemake.exceptions import WorkflowError


wildcard_constraints:
    benchmark=r"[a-z0-9]+(?:[.-][a-z0-9]+)*",
    model=r"[a-z0-9]+(?:[.-][a-z0-9]+)*",
    grader=r"[a-z0-9]+(?:[.-][a-z0-9]+)*",
    case=r"[a-z0-9]+",


try:
    RUN = Run.read(config, Path("config"))
except PipelineError as error:
    raise WorkflowError(f"{type(error).__name__}: {error}") from None

config.update(RUN.config.model_dump(mode="json"))

CONFIGFILES = [os.path.relpath(name) for name in workflow.overwrite_configfiles]
RECORD_ARGUMENTS = shlex.join(
    [
        *(["--overridden"] if workflow.config_settings.config else []),
        *(["--configfiles", *CONFIGFILES] if CONFIGFILES else []),
    ]
)

# part of the commands and no param: it changes no answer, so switching it makes nothing anew
REPLAY = "--replay" if RUN.config.replay else ""


name_this_run()
if workflow.is_main_process:
    for torn in mend_records():
        print(
            f"{torn}: Snakemake's record of it is torn; it is made again",
            file=sys.stderr,
        )


def wait_for_earlier_commands():
    """Wait for commands that outlived a killed run and still write what this run makes."""
    outputs = [str(path) for job in workflow.dag.needrun_jobs() for path in job.output]
    try:
        wait_for_writers(outputs)
    except PipelineError as error:
        raise WorkflowError(f"{type(error).__name__}: {error}") from None


def code_hash(command):
    """Digest of the code that a command runs; see neuralmedbench/config/code_hash.py."""
    return code_hashes.code_hash(Path(workflow.basedir, "scripts"), command)


def of_cases(pattern):
    """Input function: `pattern` for each case of a benchmark of the run list that is not excluded."""
    return lambda wildcards: expand(
        pattern, benchmark=wildcards.benchmark, case=RUN.cases(wildcards.benchmark)
    )


def slots_of_model(wildcards):
    """Slots that a job of a model takes; see neuralmedbench/models/slots.py."""
    return slots_of(wildcards.model, RUN.models[wildcards.model])


def slots_of_grader(wildcards):
    """Slots that a job of a grader takes."""
    return slots_of(wildcards.grader, RUN.graders[wildcards.grader].model)
