"""Gather all pictures of a benchmark in one table, and the outcome of every case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.files.case_flow import case_outcome
from neuralmedbench.files.cases import CaseRow, read_case
from neuralmedbench.records.case import CaseRecord, SliceRow, State

MIN_CASES = 10
"""With fewer cases a share means little: a run then stops only if no case is left."""


def gather_slices(
    benchmark: str, table: Sequence[CaseRow], folder: Path, max_quarantined_fraction: float
) -> tuple[list[SliceRow], dict[str, Any]]:
    """Gather the pictures of all cases.

    Parameters
    ----------
    benchmark : str
        Name of the benchmark.
    table : sequence of CaseRow
        Its case table, including excluded cases.
    folder : Path
        Folder with `sub-<case>/case.json` of the slices stage; paths in the result begin with it.
    max_quarantined_fraction : float
        Largest allowed share of quarantined cases, with at least `MIN_CASES` cases.

    Returns
    -------
    tuple of list of SliceRow and dict
        The pictures, and `{"cases": [...]}`: the outcome of every case of the table, sorted by case id.

    Raises
    ------
    DataError
        If too many cases are quarantined, or none is left.
    """
    rows: list[SliceRow] = []
    flow: list[dict[str, Any]] = []
    used = [row for row in table if not row.exclude]
    quarantined: list[CaseRecord] = []
    for row in sorted(table, key=lambda row: row.case_id):
        if row.exclude:
            flow.append(case_outcome(row, None))
            continue
        base = folder / f"sub-{row.case_id}"
        case = read_case(base / "case.json")
        if case.state is State.QUARANTINED:
            quarantined.append(case)
        else:
            rows += _rows(benchmark, case, base)
        flow.append(case_outcome(row, case))
    _stop_if_too_many(benchmark, quarantined, len(used), max_quarantined_fraction)
    return rows, {"cases": flow}


def _rows(benchmark: str, case: CaseRecord, base: Path) -> list[SliceRow]:
    return [
        SliceRow(
            benchmark=benchmark,
            case_id=case.case_id,
            patient_id=case.patient_id,
            image_id=entry.image_id,
            path=(base / entry.path).as_posix(),
            sha256=entry.sha256,
            pixels_sha256=entry.pixels_sha256,
            volume_sha256=entry.volume_sha256,
            sequence=entry.sequence.value,
            plane=entry.plane.value,
            index=entry.index,
            position_mm=entry.position_mm,
            tiles=entry.tiles,
            native_mm_per_px=entry.native_mm_per_px,
            mm_per_px=entry.mm_per_px,
            window=entry.window,
            window_name=entry.window_name,
            resampled=entry.resampled,
            side_marked=entry.side_marked,
            oracle=entry.oracle,
        )
        for entry in case.slices
    ]


def _stop_if_too_many(benchmark: str, quarantined: list[CaseRecord], total: int, allowed: float) -> None:
    if not total:
        message = f"{benchmark}: no case is left: its case table is empty, or every row of it is excluded"
        raise DataError(message)
    left = total - len(quarantined)
    if left and (total < MIN_CASES or len(quarantined) <= allowed * total):
        return
    reasons = "; ".join(f"{case.case_id} at {case.quarantined_by}: {case.reason}" for case in quarantined[:3])
    limit = f"max_quarantined_fraction allows {allowed:.0%}" if left else "no case is left"
    message = (
        f"{benchmark}: {len(quarantined)} of {total} cases are quarantined and {limit}. First reasons: {reasons}."
        " Mend or exclude these cases in the case table, or raise the limit."
    )
    raise DataError(message)
