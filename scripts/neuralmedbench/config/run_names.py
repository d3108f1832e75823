"""Names of runs, and the folders of their results: `config/paper.yaml` is the run `paper`, whose results lie in `results/paper/`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.section import NAME, name_rule
from neuralmedbench.errors import ConfigError


def extra_configfiles(names: Sequence[str | Path], folder: Path = Path("config")) -> list[str]:
    """Return the configuration files of a command line relative to the project, without `config.yaml`, which every run reads first."""
    relative = [Path(os.path.relpath(name)) for name in names]
    return [path.as_posix() for path in relative if path != folder / "config.yaml"]


DEFAULT_RUN = "config"
"""Name of the run of `config.yaml` alone, whose results lie in `results/` itself."""
RESULT_FOLDERS = frozenset(
    {
        "cases",
        "compare",
        "croissant",
        "exports",
        "figures",
        "gate",
        "grades",
        "planted",
        "ratings",
        "responses",
        "scores",
        "similarity",
        "tables",
    }
)
"""Folders that a run writes among its results, and that of the pages of two runs; no run may have such a name."""
RESULT_FILES = frozenset({"metrics.json", "provenance.json", "report.html"})


def run_name(configfiles: Sequence[str | Path]) -> str:
    """Return the name of a run: the stem of the last of its configuration files, as `extra_configfiles` returns them.

    Raises
    ------
    ConfigError
        If the stem cannot be the name of a folder of results.
    """
    if not configfiles:
        return DEFAULT_RUN
    path = Path(configfiles[-1])
    if path.stem in RESULT_FOLDERS | {DEFAULT_RUN}:
        taken = "is the run of config/config.yaml" if path.stem == DEFAULT_RUN else f"holds the {path.stem} of config/config.yaml"
        message = f"{path.name}: a run is called like its last configfile, and results/{'' if path.stem == DEFAULT_RUN else path.stem + '/'} {taken}; rename the file"
        raise ConfigError(message)
    if not re.fullmatch(NAME, path.stem):
        message = f"{path.name}: a run is called like its last configfile, so its name has {name_rule(path.stem)}; rename the file"
        raise ConfigError(message)
    return path.stem


def results_folder(name: str) -> str:
    """Return the folder of the results of a run, relative to the project."""
    return "results" if name == DEFAULT_RUN else f"results/{name}"


def results_of(configfiles: Sequence[str | Path]) -> str:
    """Return the folder of the results of the run that a command line chooses with its configuration files."""
    return results_folder(run_name(extra_configfiles(configfiles)))


def run_of(path: str | Path) -> tuple[str, tuple[str, ...]] | None:
    """Return the run to which a file among the results belongs, and the rest of its path; None for any other file."""
    top, *parts = Path(path).parts or ("",)
    known = RESULT_FOLDERS | RESULT_FILES
    if top != "results" or known.isdisjoint(parts[:2]):
        return None
    return (DEFAULT_RUN, tuple(parts)) if parts[0] in known else (parts[0], tuple(parts[1:]))


def how_to_make(path: Path, benchmark: str) -> str:
    """Return the command that makes a file of a benchmark, whether or not the benchmark is in the run list."""
    return f"snakemake --cores 2 --config 'benchmarks=[{benchmark}]' -- {path.as_posix()}"
