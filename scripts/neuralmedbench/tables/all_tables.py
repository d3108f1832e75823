"""Every table of results, in the order in which they are made: a table stands behind those that it is made from."""

from __future__ import annotations

from neuralmedbench.tables import answer_errors as errors
from neuralmedbench.tables import (
    axes,
    calibrated,
    calls,
    cohort,
    contamination,
    contrasts,
    cost,
    decomposition,
    deid_audit,
    differentials,
    fields,
    flow,
    graders,
    juries,
    leaderboard,
    rates,
    ratings,
    reasoning,
    revisions,
    samples,
    similarity,
    turns,
    validity,
)
from neuralmedbench.tables import grader_vs_clinician as trust
from neuralmedbench.tables import readiness_table as readiness
from neuralmedbench.tables.clinicians import agreement as agreement_table
from neuralmedbench.tables.clinicians import raters, readers
from neuralmedbench.tables.confidence import reliability
from neuralmedbench.tables.declare import Table

TABLES: tuple[Table, ...] = (
    leaderboard.TABLE,
    rates.TABLE,
    contrasts.ARMS,
    decomposition.TABLE,
    turns.TABLE,
    differentials.TABLE,
    reliability.CONFIDENCE,
    reliability.RELIABILITY,
    reliability.RISK_COVERAGE,
    contrasts.PAIRWISE,
    axes.TABLE,
    contamination.TABLE,
    similarity.TABLE,
    fields.TABLE,
    validity.TABLE,
    samples.TABLE,
    graders.TABLE,
    calibrated.TABLE,
    trust.TABLE,
    errors.TABLE,
    reasoning.TABLE,
    juries.TABLE,
    flow.CASE_FLOW,
    flow.FILE_FLOW,
    cohort.CASES,
    deid_audit.DEID_AUDIT,
    deid_audit.DEIDENTIFICATION,
    cohort.COHORT,
    calls.EFFICIENCY,
    cost.TABLE,
    calls.DESTINATIONS,
    readers.TABLE,
    ratings.TABLE,
    agreement_table.TABLE,
    raters.TABLE,
    readiness.TABLE,
    revisions.REVISIONS,
    revisions.FLIPS,
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
