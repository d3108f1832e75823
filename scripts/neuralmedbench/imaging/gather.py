"""Gather all pictures of a benchmark in one table, and the outcome of every case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.files.case_flow import MIN_PATIENTS, case_outcome, counts_as_patient
from neuralmedbench.files.cases import CaseRow, read_case
from neuralmedbench.records.case import CaseRecord, SliceRow, State

SHOWN_REASONS, SHOWN_IDS = 4, 3


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
        Largest allowed share of quarantined cases, with at least `MIN_PATIENTS` cases that count (`files.case_flow`).

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
            size_px=entry.size_px,
        )
        for entry in case.slices
    ]


def _stop_if_too_many(benchmark: str, quarantined: list[CaseRecord], total: int, allowed: float) -> None:
    """Stop if too large a share of the cases of patients is quarantined; phantoms and cases without any head scan do not count."""
    if not total:
        message = f"{benchmark}: no case is left: its case table is empty, or every row of it is excluded"
        raise DataError(message)
    counted = [case for case in quarantined if counts_as_patient(case)]
    left, patients = total - len(quarantined), total - len(quarantined) + len(counted)
    if left and (patients < MIN_PATIENTS or len(counted) <= allowed * patients):
        return
    shown = counted if left else quarantined
    others = len(quarantined) - len(shown)
    limit = f"max_quarantined_fraction allows {allowed:.0%}" if left else "no case is left"
    message = (
        f"{benchmark}: {len(shown)} of {patients if left else total} cases{' of patients' if left else ''} are quarantined and {limit}."
        f" {_reasons(shown)}.{f' {others} more without a head scan are not counted.' if others else ''}"
        f" Correct these cases in the source folder, or exclude them in config/benchmarks/{benchmark}.cases.tsv,"
        " or raise the limit; then run again"
    )
    raise DataError(message)


def _reasons(cases: list[CaseRecord]) -> str:
    """Return the most common reasons with their numbers of cases and the first case ids."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        by_reason[f"{case.reason} (at {case.quarantined_by})"].append(case.case_id)
    ordered = sorted(by_reason.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    parts = [
        f"{len(ids)}: {reason}: {', '.join(ids[:SHOWN_IDS])}{', ...' if len(ids) > SHOWN_IDS else ''}"
        for reason, ids in ordered[:SHOWN_REASONS]
    ]
    if (more := len(ordered) - SHOWN_REASONS) > 0:
        parts.append(f"{more} more reasons")
    return "; ".join(parts)
