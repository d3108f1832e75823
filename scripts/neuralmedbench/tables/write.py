"""The list of all results tables, and the writing of the tables, the sentences and the metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.result_tables import read_results
from neuralmedbench.files.tables import write_table
from neuralmedbench.records.results import BOUNDS, CLUSTER_MARKS, MARK, PASS1, RANKING
from neuralmedbench.tables import (
    answer_errors,
    calibrated,
    cohort,
    confidence,
    contamination,
    contrasts,
    cost,
    decomposition,
    degradation,
    deid_audit,
    evidence,
    fields,
    form,
    funnel,
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
    title,
    viewer,
    workup,
)
from neuralmedbench.tables.claims import power_sentence
from neuralmedbench.tables.clinical import accuracy, urgency
from neuralmedbench.tables.clinicians import agreement, opinions
from neuralmedbench.tables.contrasts import model_pairs
from neuralmedbench.tables.declare import (
    SHAPES,
    Cells,
    ContrastRow,
    CountRow,
    MeasureRow,
    ResultRow,
    Results,
    Table,
    Tables,
    Takeaway,
    types_of,
)
from neuralmedbench.tables.family import picture_benchmarks
from neuralmedbench.tables.first_screen import badges, notes, sentences, title_answer, trust_notes, trust_sentences
from neuralmedbench.tables.grounding import measures
from neuralmedbench.tables.parts import ClusterMarks, reference_pools, with_pool_marks
from neuralmedbench.tables.pass_rules import definitions
from neuralmedbench.tables.release import PUBLIC, Release, public_tables, without_few
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.takeaways import topic_takeaway

METRICS = (*PASS1, *RANKING, "pass5", "candidates5", "rank", "tier", "missing_fraction")
TABLES: tuple[Table, ...] = (
    leaderboard.TABLE,
    rates.TABLE,
    accuracy.ACCURACY,
    accuracy.READINGS,
    urgency.TABLE,
    title.TABLE,
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
    confidence.TABLE,
    contrasts.PAIRS,
    contamination.TABLE,
    similarity.TABLE,
    fields.FIELD_ACCURACY,
    form.VALIDITY,
    form.SAMPLES,
    graders.TABLE,
    calibrated.TABLE,
    grader_vs_clinician.TABLE,
    answer_errors.TABLE,
    reasoning.REASONING,
    juries.TABLE,
    cohort.CASE_FLOW,
    cohort.CASES,
    deid_audit.TABLE,
    cohort.COHORT,
    cost.TABLE,
    cost.DESTINATIONS,
    contrasts.READERS,
    opinions.RATINGS,
    agreement.AGREEMENT,
    readiness.TABLE,
    revisions.TABLE,
    measures.GROUNDING,
    item_analysis.ITEMS,
    item_analysis.PLAN,
)


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
        Audience: in a public run numbers about few patients who are not public are hidden.
    """
    # make all tables, then hide what a public run may not show
    results, pools = Results(study), reference_pools(study)
    cells = {table.name: with_pool_marks(results.once(table.rows), pools) for table in TABLES}
    marks = ClusterMarks(study)
    cells = {table.name: marks.marked(table, cells[table.name]) for table in TABLES}
    shown = public_tables(study, cells, {table.name: table.suppression for table in TABLES}, release or Release())
    if release and release.profile == PUBLIC:
        shown = without_few(shown, TABLES)
    for name, columns in file_columns().items():
        write_table(folder / f"{name}.csv", rows_of_file(name, shown.tables), columns)
    rest, seen = shown.study, shown.visible  # sentences are made from the visible rows alone
    parts = [*shown.sentences(), *sentences(rest, seen), *trust_sentences(rest, seen)]
    parts += filter(None, [power_sentence(seen)])
    pictures = next(iter(picture_benchmarks(rest, seen["arms"])), None)  # the benchmark of the column "Uses the pictures?"
    answer = title_answer(rest, seen) | ({"pictures": pictures} if pictures else {})
    write_json(folder / "verdict.json", {"answer": answer, "sentences": parts, "badges": badges(study, cells)})
    told_of = (
        trust_notes(rest, seen)
        | {"blocks": shown.blocks(block_notes(rest, seen)), "passes": definitions(rest), "measures": measures_of_topics()}
        | shown.notes()
    )
    pairs = results.once(model_pairs)
    write_json(folder / "notes.json", notes(rest, seen, {name: pairs[name] for name in rest.benchmarks}) | told_of)
    write_json(metrics, headline_metrics(seen["leaderboard"]))


def file_columns() -> dict[str, dict[str, str]]:
    """Return the types of the columns of every file, by its name: tables in order, then the shapes of the topics."""
    files = {table.name: table.columns for table in TABLES if not table.is_topic}
    return files | {name: types_of(row) | CLUSTER_MARKS for name, row in SHAPES.items()}


def rows_of_file(name: str, tables: Tables) -> list[Cells]:
    """Return the rows of a file: those of a table, or those of one shape of all topics."""
    if name not in SHAPES:
        return tables[name]
    topics = [table for table in TABLES if table.is_topic]
    return [row for table in topics for row in tables[table.name] if _shape_of(row) is SHAPES[name]]


def _shape_of(row: Cells) -> type[ResultRow]:
    """Return the shape of a row of a topic by its keys: a hidden row has no other column."""
    return ContrastRow if "other_arm" in row else MeasureRow if "source" in row else CountRow


def released_tables(study: Study, folder: Path, release: Release) -> Tables:
    """Read the tables of a run as a public page shows them, whatever its own audience: numbers about few patients are hidden.

    Parameters
    ----------
    study : Study
        The run.
    folder : Path
        Its tables, as `write_tables` wrote them.
    release : Release
        The audience for which they were written.

    Returns
    -------
    dict of str to list of dict
        Cells by column, of the declared types; the mark of a hidden row is text.

    Raises
    ------
    DataError
        If a table is absent.
    """
    written = read_results(folder, [table.name for table in TABLES])
    cells = {table.name: [_read_cells(row, table.columns) for row in written[table.name]] for table in TABLES}
    if release.profile == PUBLIC:  # they were written as such
        return cells
    shown = public_tables(study, cells, {table.name: table.suppression for table in TABLES}, Release(PUBLIC, release.fewest))
    return without_few(shown, TABLES).tables


READERS: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": "true".__eq__, "str": str}


def _read_cells(row: Mapping[str, str], columns: Mapping[str, str]) -> Cells:
    return {name: None if not cell else cell if MARK.fullmatch(cell) else READERS[columns[name]](cell) for name, cell in row.items()}


def block_notes(study: Study, tables: Tables) -> dict[str, dict[str, str]]:
    """Return for every block of the page `takeaway`, one sentence that claims no more than the tables, and `n`, its counts."""
    simulated = {name for name, kind in study.readers.items() if kind == "simulated"}
    titles = {name: model.title for name, model in study.models.items()}
    lines: dict[str, Takeaway | None] = {}
    for table in TABLES:
        if table.takeaways is None:
            lines[table.name] = topic_takeaway(tables[table.name], table.measures, titles, simulated)
        else:
            lines |= {block: words(study, tables) for block, words in table.takeaways.items()}
    return {block: asdict(line) for block, line in lines.items() if line}


def headline_metrics(leaderboard: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Cells]]:
    """Pick the few numbers that a diff between two runs should show, by benchmark, model and metric."""
    found: dict[str, dict[str, Cells]] = {}
    for row in leaderboard:
        names = METRICS if row.get("pass1") is not None else (*METRICS, *BOUNDS)
        values = {name: round(row[name], 6) for name in names if row.get(name) is not None}
        found.setdefault(row["benchmark"], {})[row["model"]] = values
    return found


def measures_of_topics() -> dict[str, list[Cells]]:
    """Return the definitions of the measures of every topic, in the order of the page."""
    return {table.name: [asdict(measure) for measure in table.measures] for table in TABLES if table.is_topic}


def result_columns() -> str:
    """Return the JSON text of the columns of every file with their types, and of the topics (`records.result_columns`)."""
    return json.dumps({"files": file_columns(), "topics": list(measures_of_topics())}, indent=1) + "\n"
