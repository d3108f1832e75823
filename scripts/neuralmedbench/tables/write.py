"""The one place that writes the tables of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import write_table
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.tables.asking.calls import destination_rows, efficiency_rows
from neuralmedbench.tables.asking.cost import cost_rows
from neuralmedbench.tables.change.revisions import revision_tables
from neuralmedbench.tables.change.words import change_notes, change_sentences
from neuralmedbench.tables.clinicians.agreement_table import agreement_rows
from neuralmedbench.tables.clinicians.raters import rater_rows
from neuralmedbench.tables.clinicians.readers import reader_rows
from neuralmedbench.tables.cohort import audit_rows, case_flow_rows, case_rows, cohort_rows, file_flow_rows, score_rows
from neuralmedbench.tables.confidence.reliability import confidence_tables
from neuralmedbench.tables.contamination import contamination_rows
from neuralmedbench.tables.contrasts import arm_rows, axis_rows, decomposition_rows, model_pairs, pairwise_rows
from neuralmedbench.tables.descriptive import grader_rows, rating_rows, similarity_rows
from neuralmedbench.tables.differentials import differential_rows
from neuralmedbench.tables.disclosure.release import Release, shown_tables
from neuralmedbench.tables.errors.table import error_rows
from neuralmedbench.tables.fields import field_rows
from neuralmedbench.tables.juries import jury_rows
from neuralmedbench.tables.leaderboard import leaderboard_rows, rate_rows
from neuralmedbench.tables.pool import marked, reference_pools
from neuralmedbench.tables.readiness.table import readiness_rows
from neuralmedbench.tables.reasoning import reasoning_rows
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.takeaways.gather import block_notes
from neuralmedbench.tables.trust.calibrated import calibrated_rows, with_calibration
from neuralmedbench.tables.trust.table import trust_rows, with_clinicians
from neuralmedbench.tables.trust.words import trust_notes, trust_sentences
from neuralmedbench.tables.turns import turn_rows
from neuralmedbench.tables.validity import validity_rows
from neuralmedbench.tables.verdict import badges, notes, sentences

METRICS = ("pass1", "pass1_low", "pass1_high", "pass5", "candidates5", "rank", "tier", "missing_fraction")

Row = dict[str, Any]


def write_tables(study: Study, folder: Path, metrics: Path, release: Release | None = None) -> None:
    """Write every table, `verdict.json`, `notes.json` and the metrics.

    Parameters
    ----------
    study : Study
        The run.
    folder : Path
        Where the tables go.
    metrics : Path
        A small nested JSON file: benchmark, model, metric.
    release : Release or None
        For whom they are: what is about few patients who are not public is hidden in a public run.
    """
    pairs, fields = model_pairs(study), field_rows(study)
    revisions, flips = revision_tables(study)
    confidence, reliability, risk_coverage = confidence_tables(study)
    calibrated, trust = calibrated_rows(study), trust_rows(study)
    leaderboard = leaderboard_rows(study, pairs)
    tables: dict[str, list[Row]] = {
        "leaderboard": with_calibration(leaderboard, calibrated),
        "rates": rate_rows(study) + field_rate_rows(fields, study),
        "arms": arm_rows(study),
        "decomposition": decomposition_rows(study),
        "turns": turn_rows(study),
        "differential": differential_rows(study),
        "confidence": confidence,
        "reliability": reliability,
        "risk_coverage": risk_coverage,
        "pairwise": pairwise_rows(pairs),
        "axes": axis_rows(study),
        "contamination": contamination_rows(study),
        "similarity": with_clinicians(similarity_rows(study), trust),
        "fields": fields,
        "validity": validity_rows(study),
        "graders": grader_rows(study),
        "errors": error_rows(study),
        "reasoning": reasoning_rows(study),
        "juries": jury_rows(study),
        "calibrated": calibrated,
        "grader_vs_clinician": trust,
        "case_flow": case_flow_rows(study),
        "file_flow": file_flow_rows(study),
        "cases": case_rows(study),
        "deid_audit": audit_rows(study),
        "deidentification": score_rows(study),
        "cohort": cohort_rows(study),
        "cost": cost_rows(study, leaderboard),
        "efficiency": efficiency_rows(study),
        "destinations": destination_rows(study),
        "readers": reader_rows(study),
        "ratings": rating_rows(study),
        "agreement": agreement_rows(study),
        "raters": rater_rows(study),
        "readiness": readiness_rows(study),
        "revisions": revisions,
        "flips": flips,
    }
    pools = reference_pools(study)
    shown = shown_tables(
        study, {name: marked(tables[name], columns.split(), pools) for name, columns in COLUMNS.items()}, release or Release()
    )
    for name, columns in COLUMNS.items():
        write_table(folder / f"{name}.csv", shown.tables[name], columns.split())
    rest, seen = shown.study, shown.told  # a sentence may not tell what a table hides
    told = [*shown.sentences(), *sentences(rest, seen), *trust_sentences(rest, seen), *change_sentences(rest, seen["revisions"])]
    write_json(folder / "verdict.json", {"sentences": told, "badges": badges(study, tables)})
    told_of = (
        change_notes(rest, seen["revisions"]) | trust_notes(rest, seen) | {"blocks": shown.blocks(block_notes(rest, seen))} | shown.notes()
    )
    write_json(folder / "notes.json", notes(rest, seen, {name: pairs[name] for name in rest.benchmarks}) | told_of)
    write_json(metrics, headline_metrics(seen["leaderboard"]))


def headline_metrics(leaderboard: list[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """Pick the few numbers that a diff between two runs should show: benchmark, model, metric."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in leaderboard:
        values = {name: round(row[name], 6) for name in METRICS if row.get(name) is not None}
        found.setdefault(row["benchmark"], {})[row["model"]] = values
    return found


def field_rate_rows(fields: list[Row], study: Study) -> list[Row]:
    """Repeat the accuracies of `fields.csv` as rows of the tidy table."""
    return [
        {
            "benchmark": row["benchmark"],
            "axis": str(study.benchmarks[row["benchmark"]].config.axis),
            "model": row["model"],
            "arm": "full",
            "strategy": "direct",
            "slice": "field",
            "value_of_slice": row["field"],
            "metric": "field_accuracy",
            "value": row["accuracy"],
            "low": row["low"],
            "high": row["high"],
            "n_items": row["n_items"],
            "n_patients": row["n_patients"],
        }
        for row in fields
    ]
