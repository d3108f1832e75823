"""Snakemake, asked what it would do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from neuralmedbench.errors import ConfigError
from neuralmedbench.recording.stages import TARGET

NOTHING_TO_DO = "Nothing to be done"


def planned_rules(configfiles: Sequence[str] = ()) -> list[str]:
    """Ask which rules would run for the report.

    Parameters
    ----------
    configfiles : sequence of str
        Configuration files of the run, relative to the repository root.

    Returns
    -------
    list of str
        Names of the rules that are out of date, sorted, each with its reason; empty when the report is complete.

    Raises
    ------
    ConfigError
        If the workflow cannot be planned.
    """
    chosen = ["--configfile", *configfiles] if configfiles else []
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "-n", "--nolock", *chosen, "--", TARGET]
    # DVC_STAGE and the like are for stages of DVC, of which a plan is none
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    said = done.stdout + done.stderr
    if done.returncode != 0:
        message = f"the run cannot be planned; `snakemake -n -- {TARGET}` says why"
        raise ConfigError(message)
    return [] if NOTHING_TO_DO in said else sorted(set(_rules(said.splitlines())))


def _rules(lines: Sequence[str]) -> list[str]:
    found, rule = [], ""
    for line in lines:
        words = line.strip()
        if words.startswith(("rule ", "localrule ")):
            rule = words.split()[1].rstrip(":")
        elif words.startswith("reason:") and rule:
            found.append(f"{rule} ({words.removeprefix('reason:').strip().split(':')[0]})")
    return found
