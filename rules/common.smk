"""Configuration, case lists and the hash of the code: what the rules share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir, "scripts")))

from neuralmedbench.config import code_hash as code_hashes
from neuralmedbench.config.workflow import Run, used_cases
from neuralmedbench.errors import PipelineError
from neuralmedbench.io.cases import write_overrides
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


def code_hash(command):
    """Digest of the code that a command runs; see neuralmedbench/config/code_hash.py."""
    return code_hashes.code_hash(Path(workflow.basedir, "scripts"), command)


def of_cases(pattern):
    """Input function: `pattern` for each case of a benchmark of the run list that is not excluded."""
    return lambda wildcards: expand(
        pattern, benchmark=wildcards.benchmark, case=RUN.cases(wildcards.benchmark)
    )


def of_table(pattern):
    """Input function: as `of_cases`, for a benchmark that need not be in the run list (the phantoms that pictures are cut from)."""
    return lambda wildcards: expand(
        pattern,
        benchmark=wildcards.benchmark,
        case=used_cases(Path("config"), wildcards.benchmark),
    )
