"""The part of a review sheet with every series that came in: its preview, and whether it is used or why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from neuralmedbench.deid.review.pieces import NO_PREVIEW, PREVIEW, REVIEW, SERIES
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.pages import figure
from neuralmedbench.records.case import CaseRecord, SeriesFate

KEPT_BACK = "its case is kept back"
TWINS = "the same acquisition as {others}{variant}, and all are used: to leave one out, write {one}=none into `sequence_overrides`"


def series_section(case: CaseRecord, folder: Path, left_out: Mapping[str, str], *, kept_back: bool) -> str:
    """Build the HTML of all series that came in; empty for a case that an earlier version ingested.

    `case`, `folder`: the de-identified case. `left_out`: reasons of the series that later stages left out. `kept_back`: whether the case is.
    """
    if not case.raw_series:
        return ""
    path = folder / REVIEW / SERIES
    pieces: dict[str, dict[str, str]] = read_json(path) if path.exists() else {}
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
        shown = figure(picture, fate.series_id) if picture.exists() else escape(fate.series_id)
        if not picture.exists():
            why = fate.no_preview or NO_PREVIEW.get(piece.get("no_preview", ""), KEPT_BACK if kept_back else "none was made")
            lines.append(f"no preview: {why}")
        rows.append(f"<tr><td>{shown}</td><td>{'<br>'.join(map(escape, lines))}</td></tr>\n")
    used = 0 if kept_back else count_used(case, left_out)
    about = (
        "<p>Descriptions are reduced to words about scans. A preview is three axial slices without the face; of a series that is not used it is"
        " shown only if its face was located and no text was found in it.</p>\n"
    )
    return f'<h2>Series that came in: {len(rows)}, of which {used} are used</h2>{about}<div class="scroll"><table>{"".join(rows)}</table></div>\n'


def count_used(case: CaseRecord, left_out: Mapping[str, str]) -> int:
    """Count the series that came in and are used; `left_out` as in `series_section`."""
    return sum(not fate.reason and fate.series_id not in left_out for fate in case.raw_series)


def twin_lines(fate: SeriesFate, left_out: Mapping[str, str], *, kept_back: bool) -> Sequence[str]:
    """Return, if a series is used beside others that are the same acquisition, what a person should know; else nothing."""
    others = [other for other in fate.same_acquisition if other not in left_out]
    if kept_back or not others or fate.series_id in left_out:
        return ()
    variant = f" (this one is {fate.variant})" if fate.variant else ""
    return (TWINS.format(others=" and ".join(others), variant=variant, one=fate.series_id),)
