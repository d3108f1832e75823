"""Every table of results, in the order in which they are made: a table stands behind those that it is made from."""

from __future__ import annotations

from neuralmedbench.tables import (
    axes,
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
    similarity,
    turns,
    validity,
)
from neuralmedbench.tables.change import revisions
from neuralmedbench.tables.clinicians import agreement_table, raters, readers
from neuralmedbench.tables.confidence import reliability
from neuralmedbench.tables.declare import Table
from neuralmedbench.tables.errors import table as errors
from neuralmedbench.tables.readiness import table as readiness
from neuralmedbench.tables.trust import calibrated
from neuralmedbench.tables.trust import table as trust

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
