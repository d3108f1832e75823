"""Answers of a finished run, read from its folder of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.changes import Side

REFERENCE = ("answer", "findings", "place", "established", "options")
"""Columns of the bundle of cases that hold the reference of an item."""


def read_sides(name: str, results: Path, models: Iterable[Mapping[str, Any]], revisions: Mapping[str, str]) -> dict[tuple[str, str], Side]:
    """Return the answers of a finished run by benchmark and model, with the requests and the references of that time.

    Parameters
    ----------
    name : str
        Name of the run.
    results : Path
        Folder of its results.
    models : iterable of dict
        Entry `models` of its provenance: benchmark, model and revision.
    revisions : dict of str to str
        Another revision of a model, whose scores the run must still hold.

    Raises
    ------
    ConfigError
        If the run holds no answers of that revision.
    """
    sides, references = dict[tuple[str, str], Side](), dict[str, dict[str, tuple[Any, ...]]]()
    for entry in models:
        benchmark, model = str(entry["benchmark"]), str(entry["model"])
        revision = revisions.get(model, str(entry["revision"]))
        scores = [row for row in read_records(results / "scores" / benchmark / f"{model}.parquet", Score) if row.revision == revision]
        if not scores and revision != str(entry["revision"]):
            message = f"{model}@{revision}: the run {name} holds no answers of this revision to {benchmark}; it has {entry['revision']}"
            raise ConfigError(message)
        if benchmark not in references:
            references[benchmark] = _references(results / "cases" / f"{benchmark}.parquet")
        requests = _requests(results / "responses" / benchmark / f"{model}.parquet", revision)
        sides[benchmark, model] = Side(revision, scores, requests, references[benchmark])
    return sides


def _requests(path: Path, revision: str) -> dict[tuple[str, str, str], str]:
    rows = pq.read_table(path, columns=["item_id", "arm", "strategy", "revision", "request_id"]).to_pylist()
    return {(row["item_id"], row["arm"], row["strategy"]): row["request_id"] for row in rows if row["revision"] == revision}


def _references(path: Path) -> dict[str, tuple[Any, ...]]:
    rows = pq.read_table(path, columns=["item_id", *REFERENCE]).to_pylist()
    return {row["item_id"]: tuple(tuple(cell) if isinstance(cell := row[name], list) else cell for name in REFERENCE) for row in rows}
