"""What is said of the graders' worth: sentences that hold back when the numbers do."""

from __future__ import annotations

from collections.abc import Iterable

from neuralmedbench.tables.rows import Cells, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.trust.calibrated import SCORE
from neuralmedbench.tables.trust.rules import ENOUGH
from neuralmedbench.tables.trust.table import _followed

GRADER_ONLY = "Grader only:"


def trust_notes(study: Study, tables: Tables) -> Cells:
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
