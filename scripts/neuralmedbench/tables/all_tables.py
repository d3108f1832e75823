"""Every results table, in the order in which they are made: a table stands after those that it is made from."""

from __future__ import annotations

from neuralmedbench.tables import (
    answer_errors,
    answers,
    axes,
    axis_correlation,
    calibrated,
    calls,
    claims,
    cohort,
    contamination,
    contrasts,
    cost,
    decomposition,
    degradation,
    deid_audit,
    evidence,
    families,
    fields,
    funnel,
    grader_checks,
    grader_vs_clinician,
    graders,
    item_analysis,
    juries,
    ladder,
    leaderboard,
    pressure,
    rates,
    readiness,
    reasoning,
    revisions,
    similarity,
    viewer,
    workup,
)
from neuralmedbench.tables.clinical import accuracy, urgency
from neuralmedbench.tables.clinicians import agreement, opinions
from neuralmedbench.tables.confidence import reliability
from neuralmedbench.tables.declare import Table
from neuralmedbench.tables.grounding import blind_items, measures

# the order matters: `families` and `cost` read the rows of `leaderboard`, `claims` those of all comparisons, `grounding` those of `claims`
TABLES: tuple[Table, ...] = (
    leaderboard.TABLE,
    families.TABLE,
    rates.RATES_TABLE,
    accuracy.ACCURACY,
    accuracy.PREDICTIVE_VALUES,
    accuracy.CONFUSION,
    urgency.TABLE,
    contrasts.ARMS,
    degradation.TABLE,
    decomposition.TABLE,
    pressure.TABLE,
    funnel.TABLE,
    workup.TABLE,
    viewer.TABLE,
    evidence.TABLE,
    reasoning.TURNS,
    ladder.TABLE,
    reasoning.DIFFERENTIAL,
    reliability.CONFIDENCE,
    reliability.RELIABILITY,
    reliability.RISK_COVERAGE,
    contrasts.PAIRWISE,
    axes.TABLE,
    axis_correlation.TABLE,
    contamination.TABLE,
    similarity.TABLE,
    fields.FIELD_ACCURACY,
    answers.VALIDITY,
    answers.SAMPLES,
    graders.TABLE,
    grader_checks.TABLE,
    calibrated.TABLE,
    grader_vs_clinician.TABLE,
    answer_errors.TABLE,
    reasoning.REASONING,
    juries.TABLE,
    cohort.CASE_FLOW,
    cohort.FILE_FLOW,
    cohort.CASES,
    deid_audit.DEID_AUDIT,
    deid_audit.DEIDENTIFICATION,
    cohort.COHORT,
    calls.EFFICIENCY,
    cost.TABLE,
    calls.DESTINATIONS,
    contrasts.READERS,
    opinions.RATINGS,
    agreement.AGREEMENT,
    agreement.RATERS,
    readiness.TABLE,
    revisions.REVISIONS,
    revisions.FLIPS,
    claims.TABLE,
    measures.GROUNDING,
    blind_items.BLIND_ITEMS,
    item_analysis.ITEM_ANALYSIS,
    item_analysis.CASE_PLAN,
)


def result_columns() -> str:
    """Write the columns of every table and their types as the module that figures, page, rules and records read."""
    lines = [
        '"""Columns of every table of results, in order, with their types. Generated from `tables` by `make docs`; do not edit by hand."""',
        "",
        "TABLES = {",
    ]
    for table in TABLES:
        lines += [f'    "{table.name}": {{', *(f'        "{name}": "{kind}",' for name, kind in table.columns.items()), "    },"]
    return "\n".join([*lines, "}", ""])
