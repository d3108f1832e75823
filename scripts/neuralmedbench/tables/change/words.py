"""What a new revision changed, in sentences that name the noise floor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from neuralmedbench.estimates.intervals import Settings
from neuralmedbench.records.words import listing, p_equals, percent, points, points_span
from neuralmedbench.tables.change.revisions import LEADER, PASSED, is_change
from neuralmedbench.tables.study import Study

WHAT = {LEADER: "Another diagnosis stands first", PASSED: "The verdict (pass or not) is another one"}

Row = dict[str, Any]


def change_notes(study: Study, revisions: list[Row]) -> Row:
    """Give the sentences of the section "What changed": one entry a benchmark and model; nothing without rows of `revisions.csv`."""
    groups = _groups(revisions)
    changes = []
    for (benchmark, model), rows in groups.items():
        verdict, numbers = change_words(rows, study.settings)
        changes.append({"benchmark": benchmark, "model": model, "verdict": f"{_head(study, model, rows)}: {verdict}", "numbers": numbers})
    return {"changes": changes} if changes else {}


def change_sentences(study: Study, revisions: list[Row]) -> list[str]:
    """Say which models with a new revision changed: one sentence for the top of the page, none without rows of `revisions.csv`."""
    groups = _groups(revisions)
    changed = {model for (_, model), rows in groups.items() if is_change(rows, study.settings)}
    compared = {model for _, model in groups}
    shown, rest = ([study.models[model].title for model in study.models if model in some] for some in (changed, compared - changed))
    if not compared:
        return []
    if not shown:
        return [f"What changed: a new revision of {listing(rest)} was not shown to answer otherwise than the one before."]
    sentence = f"What changed: the new revision of {listing(shown)} answers otherwise than the one before"
    return [f"{sentence}; of {listing(rest)} this was not shown." if rest else f"{sentence}."]


def change_words(rows: Sequence[Row], settings: Settings) -> tuple[str, str]:
    """Say in plain words what the rows of one model on one benchmark show.

    Parameters
    ----------
    rows : sequence of dict
        Cells as `tables.change.revisions.metric_rows` gives them; at least one.
    settings : Settings
        The confidence level decides what is called a change.

    Returns
    -------
    verdict : str
        A few words, without a full stop.
    numbers : str
        Sentences: how much old and new answers differ, against the noise floor, then pass@1.
    """
    by_metric = {row["metric"]: row for row in rows}
    rates = [_pass_rate(by_metric[PASSED])] if PASSED in by_metric else []
    if all(row["same_text"] == 1 for row in rows):
        return "every answer is the same as before, word for word", _sentences(rates)
    noise = [_noise(metric, by_metric[metric]) for metric in WHAT if metric in by_metric]
    if any(row["noise_floor"] is not None for row in rows):
        told = "changed, beyond the noise of repeats" if is_change(rows, settings) else "no sign of a change beyond the noise of repeats"
        return told, _sentences(noise + rates)
    once = "Every question was asked once, so the noise floor (how much repeats differ) is not known"
    return "pass@1 changed" if is_change(rows, settings) else "not known whether it changed", _sentences([*noise, once, *rates])


def _groups(revisions: list[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in revisions:
        groups[row["benchmark"], row["model"]].append(row)
    return groups


def _head(study: Study, model: str, rows: list[Row]) -> str:
    return f"{study.models[model].title}, revision {rows[0]['revision']} against {rows[0]['earlier_revision']}"


def _noise(metric: str, row: Row) -> str:
    told = f"{WHAT[metric]} in {percent(row['disagreement'])} of pairs of an old and a new answer"
    if row["noise_floor"] is None:
        return told
    return f"{told}, in {percent(row['noise_floor'])} of pairs of repeats (the noise floor; {p_equals(row['p_value'])})"


def _pass_rate(row: Row) -> str:
    told = f"pass@1 went from {percent(row['earlier_value'])} to {percent(row['value'])}"
    if row["low"] is not None:
        difference, span = points(row["difference"], minus="-"), points_span(row["low"], row["high"], minus="-")
        told += f" ({difference} points, {span}; {p_equals(row['p_difference'])})"
    return f"{told} over {row['n_items']} items; {row['gained']} gained a majority of passes, {row['lost']} lost it"


def _sentences(parts: Sequence[str]) -> str:
    return " ".join(f"{part}." for part in parts)
