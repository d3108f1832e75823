"""Provenance of the numbers: code, environment, models, prompts and inputs of the run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from neuralmedbench.config.load import load_model_for, withhold_outside_paths
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.tables import read_records
from neuralmedbench.files.templates import version_of
from neuralmedbench.files.vocabulary import diseases_path, names_path, read_vocabulary
from neuralmedbench.records.responses import Response, current_rows, served_by

Json = dict[str, Any]


def gather_provenance(
    root: Path,
    *,
    benchmarks: Sequence[str],
    models: Sequence[str],
    vocabulary: Path,
    inputs: Sequence[Path],
    seeds: dict[str, int],
    configfiles: Sequence[str],
    results: Path = Path("results"),
    limited: bool = False,
) -> Json:
    """Gather the provenance of the numbers of a run.

    Parameters
    ----------
    root : Path
        Repository root; all paths are relative to it.
    benchmarks, models : sequence of str
        The run lists.
    vocabulary : Path
        Vocabulary of the run.
    inputs : sequence of Path
        Files whose digests are recorded.
    seeds : dict of str to int
        Seeds by name.
    configfiles : sequence of str
        Configuration files given on the command line.
    results : Path
        Folder of the results of the run, relative to the root.
    limited : bool
        True for a run of few answers (`limit`).

    Returns
    -------
    dict
        JSON value without a time stamp and without paths outside the project.
    """
    lock, names, diseases = root / "requirements.lock", names_path(root / vocabulary), diseases_path(root / vocabulary)
    # every template counts, also those that this run did not use
    prompts = {path.relative_to(root).as_posix(): path for path in sorted((root / "config" / "prompts").rglob("*.j2"))}
    versions = {name: version_of(path.read_text(encoding="utf-8")) for name, path in prompts.items()}
    shown = withhold_outside_paths(list(configfiles))
    return {
        **git_state(root),
        "command": shlex.join(
            ["snakemake", "--cores", "8", (results / "report.html").as_posix(), *(["--configfile", *shown] if configfiles else [])]
        ),
        "run": results.name if configfiles else "config",
        "configfiles": shown,
        **({"limited": True} if limited else {}),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "lock_sha256": sha256_of(lock) if lock.is_file() else "",
        "packages": installed(lock),
        "seeds": seeds,
        "vocabulary": {
            "version": read_vocabulary(root / vocabulary).version,
            "sha256": sha256_of(root / vocabulary),
            "names_sha256": sha256_of(names) if names.is_file() else "",
            "diseases_sha256": sha256_of(diseases) if diseases.is_file() else "",
        },
        "prompts": {name: sha256_of(path) for name, path in prompts.items()},
        "prompt_versions": {name: version for name, version in versions.items() if version},
        "models": [_model(root, results, benchmark, model) for benchmark in benchmarks for model in models],
        "inputs": {path.as_posix(): sha256_of(root / path) for path in sorted(inputs)},
    }


def git_state(root: Path) -> Json:
    """Return commit and dirty state of the repository; both are None outside of a repository.

    A file of `config/` that was added is no change of the code: the run names it, with its digest.
    """
    try:
        commit, changes = (
            subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=all"))
        )
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": any(not line.startswith("?? config/") for line in changes.splitlines())}


def installed(lock: Path) -> dict[str, str]:
    """Return the versions of the locked packages that are installed here."""
    if not lock.is_file():
        return {}
    # the lock has one `name==version` per line
    names = re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    versions = {}
    for name in sorted(names):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _model(root: Path, results: Path, benchmark: str, model: str) -> Json:
    config = load_model_for(root / "config", benchmark, model)
    responses = current_rows(read_records(root / results / "responses" / benchmark / f"{model}.parquet", Response))
    # responses without a call have no date
    dates = sorted({row.called_on for row in responses} - {""})
    return {
        "benchmark": benchmark,
        "model": model,
        "backend": config.backend,
        "id": withhold_outside_paths(config.id),
        "revision": config.revision,
        "served": [
            withhold_outside_paths(asdict(one))
            for one in served_by((row.served_model, row.fingerprint, row.called_on) for row in responses)
        ],
        "first_called_on": dates[0] if dates else "",
        "last_called_on": dates[-1] if dates else "",
        "temperature": config.temperature,
        "seed": config.seed,
    }
