"""The part of a review sheet with every series that came in: its preview, and whether it is used or why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from neuralmedbench.deid.review.pieces import NO_PREVIEW, PREVIEW, REVIEW, SERIES
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.pages.pictures import PagePicture, picture_of
from neuralmedbench.records.case import CaseRecord, SeriesFate

KEPT_BACK = "its case is kept back"
TWINS = "the same acquisition as {others}{variant}, and all are used: to leave one out, write {one}=none into `sequence_overrides`"


def series_rows(
    case: CaseRecord, folder: Path, left_out: Mapping[str, str], *, kept_back: bool
) -> list[tuple[str, PagePicture | None, list[str]]]:
    """Return all series that came in, each with its preview and lines on it; none for a case that an earlier version ingested.

    `case`, `folder`: the de-identified case. `left_out`: reasons of the series that later stages left out. `kept_back`: whether the case is.
    """
    path = folder / REVIEW / SERIES
    pieces: dict[str, dict[str, str]] = read_json(path) if case.raw_series and path.exists() else {}
    kinds = {series.series_id: " after ".join(part for part in (series.sequence.value, series.agent) if part) for series in case.series}
    rows = []
    for fate in case.raw_series:
        piece = pieces.get(fate.series_id, {})
        reason = fate.reason or left_out.get(fate.series_id, "")
        outcome = f"not used: {reason}" if reason else KEPT_BACK if kept_back else f"used as {kinds.get(fate.series_id, 'a scan')}"
        files = f"{fate.files} file{'s' * (fate.files != 1)}"
        lines = [
            ", ".join(part for part in (piece.get("description", ""), fate.variant, files) if part),
            outcome,
            *twin_lines(fate, left_out, kept_back=kept_back),
        ]
        picture = folder / REVIEW / f"{fate.series_id}_{PREVIEW}"
        preview = picture_of(picture, fate.series_id) if picture.exists() else None
        if preview is None:
            why = fate.no_preview or NO_PREVIEW.get(piece.get("no_preview", ""), KEPT_BACK if kept_back else "none was made")
            lines.append(f"no preview: {why}")
        rows.append((fate.series_id, preview, lines))
    return rows


def count_used(case: CaseRecord, left_out: Mapping[str, str]) -> int:
    """Count the series that came in and are used; `left_out` as in `series_rows`."""
    return sum(not fate.reason and fate.series_id not in left_out for fate in case.raw_series)


def twin_lines(fate: SeriesFate, left_out: Mapping[str, str], *, kept_back: bool) -> Sequence[str]:
    """Return, if a series is used beside others that are the same acquisition, what a person should know; else nothing."""
    others = [other for other in fate.same_acquisition if other not in left_out]
    if kept_back or not others or fate.series_id in left_out:
        return ()
    variant = f" (this one is {fate.variant})" if fate.variant else ""
    return (TWINS.format(others=" and ".join(others), variant=variant, one=fate.series_id),)
