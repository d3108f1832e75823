"""What is said of the graders' worth: sentences that hold back when the numbers do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuralmedbench.records.words import decimal
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.trust.calibrated import SCORE
from neuralmedbench.tables.trust.rules import ENOUGH
from neuralmedbench.tables.trust.table import CLINICIAN

GRADER_ONLY = "Grader only:"

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def trust_notes(study: Study, tables: Tables) -> Row:
    """Give what the report says above its tables.

    Parameters
    ----------
    study : Study
        The run.
    tables : dict of str to list of dict
        Tables of results.

    Returns
    -------
    dict
        `grader_only`: by benchmark the line below a leaderboard that no clinician
        corrected; benchmarks without open answers have none.
    """
    return {"grader_only": dict(_grader_only(study, tables))}


def trust_sentences(study: Study, tables: Tables) -> list[str]:
    """Say at a glance how far the graders can be trusted; nothing before clinicians have rated."""
    told = _followed(study, tables)
    return [f"Graders: {told}"] if told else []


def trust_takeaway(study: Study, tables: Tables) -> str:
    """Say above the block on graders how far they follow clinicians, or why that is not known."""
    if told := _followed(study, tables):
        return told[0].upper() + told[1:]
    if any(not row["simulated"] for row in tables["grader_vs_clinician"]):
        return "Clinicians have rated too few answers to say how well a grader follows them."
    if tables["grader_vs_clinician"]:
        return "No clinician has rated an answer. What stands here is of simulated raters, and says nothing about a grader or a model."
    return "No clinician has rated an answer: every open score on this page is a grader's word alone."


def _followed(study: Study, tables: Tables) -> str:
    rows = [row for row in tables["grader_vs_clinician"] if not row["simulated"] and row["level"] == "response" and not row["model"]]
    told = []
    for benchmark in study.benchmarks.values():
        own = {row["judge"]: row for row in rows if row["benchmark"] == benchmark.name}
        grader = next((own[name] for name in study.graders if name in own and own[name].get("icc") is not None), None)
        if grader:
            title, ceiling = study.graders[grader["judge"]].title, own.get(CLINICIAN, {})
            one = (
                f"{title} follows one clinician with an ICC of {_coefficient(grader)} on {grader['n']} answers of {benchmark.config.title}"
            )
            other = "no answer has a second clinician to compare with"
            if ceiling.get("icc") is not None:
                other = f"one clinician follows another with {_coefficient(ceiling)}"
            told.append(f"{one}; {other}")
    return "; ".join(told) + "." if told else ""


def _coefficient(row: Row) -> str:
    value = decimal(row["icc"])
    if row["icc_low"] is None:
        return value
    low, high = (decimal(row[name]) for name in ("icc_low", "icc_high"))
    return f"{value} ({low} to {high})"


def _grader_only(study: Study, tables: Tables) -> Iterable[tuple[str, str]]:
    corrected = {row["benchmark"] for row in tables["leaderboard"] if row.get("calibrated") is not None}
    for name, benchmark in study.benchmarks.items():
        rows = [row for row in tables["calibrated"] if (row["benchmark"], row["grader"], row["simulated"]) == (name, SCORE, False)]
        if not benchmark.outcomes.repeatable.any() or name in corrected:
            continue
        if study.form.passes is None:
            yield name, f"{GRADER_ONLY} config/rating.yaml does not say what a clinician's pass is."
        elif any(row["n_rated"] for row in rows):
            yield name, f"{GRADER_ONLY} clinicians have rated too few of these answers; they count from {ENOUGH} of a model on."
        else:
            yield name, f"{GRADER_ONLY} no clinician has rated this run."
