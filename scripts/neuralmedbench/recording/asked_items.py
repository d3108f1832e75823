"""The questions of a run that a round of answers may draw: as models are asked them, and nothing that the audit does not cover."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from neuralmedbench.config.workflow import Run
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_records
from neuralmedbench.prompts.coverage import check_asked
from neuralmedbench.ratings.answering.answer_rounds import RoundQuestion
from neuralmedbench.records.items import Arm, Family, Gold, Item, Strategy
from neuralmedbench.records.requests import Request
from neuralmedbench.tables.outcomes import can_pass


def asked_items(run: Run, families: Collection[Family], root: Path = Path()) -> list[RoundQuestion]:
    """Collect the questions that a round may draw: those that have a reference, as they are asked under arm `full`, strategy `direct`.

    Parameters
    ----------
    run : Run
        Its benchmarks.
    families : collection of Family
        Task families that are asked.
    root : Path
        Repository root.

    Returns
    -------
    list of Asked
        Of all benchmarks. The reference itself stays behind.

    Raises
    ------
    DeidentificationError
        If an audit did not pass, or does not cover a picture.
    DataError
        If a table is absent.
    """
    return [one for benchmark in run.benchmarks for one in _of_benchmark(benchmark, families, root)]


def read_asked(benchmark: str, data: Path) -> dict[str, RoundQuestion]:
    """Read the questions of a benchmark, as they are asked now under arm `full`, strategy `direct`, by item."""
    items = {row.item_id: row for row in read_records(data / f"items/{benchmark}.parquet", Item)}
    requests = read_records(data / f"prompts/{benchmark}.parquet", Request)
    return {
        row.item_id: RoundQuestion(items[row.item_id], row)
        for row in requests
        if row.item_id in items and (row.arm, row.strategy) == (Arm.FULL, Strategy.DIRECT)
    }


def _of_benchmark(benchmark: str, families: Collection[Family], root: Path) -> Iterator[RoundQuestion]:
    gold = {row.item_id: row for row in read_records(root / f"data/gold/{benchmark}.parquet", Gold)}
    asked = [one for one in read_asked(benchmark, root / "data").values() if one.item.family in families]
    found = [one for one in asked if can_pass(one.item, gold.get(one.item.item_id))]
    check_asked([one.request for one in found], read_audit(root / f"data/deidentified/{benchmark}/audit.json"))
    yield from found
