"""Changes between two revisions of a model: `revisions.csv`, and the sentences about them."""

from __future__ import annotations

from dataclasses import dataclass

from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.records.words import counted
from neuralmedbench.tables.changes import PASSED, answer_changes, pass_change, patients_of, same_answers
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.stored_runs import HEADLINE, PairedItems, outcomes_of, requests_of, sides_of
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import Takeaway, exploratory, largest


@dataclass(frozen=True, kw_only=True)
class RevisionRow(ModelRow):
    """Two revisions of one model, by pass or by leading diagnosis."""

    metric: str | None = None
    earlier_revision: str | None = None
    revision: str | None = None
    earlier_value: float | None = None
    value: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_difference: float | None = None
    disagreement: float | None = None
    noise_floor: float | None = None
    excess: float | None = None
    p_value: float | None = None
    same_text: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    n_repeated: int | None = None
    gained: int | None = None
    lost: int | None = None


def revision_rows(study: Study) -> list[RevisionRow]:
    """Rows of `revisions.csv`, for every model whose ledger holds answers of the previous revision."""
    rows: list[RevisionRow] = []
    for benchmark in study.benchmarks.values():
        for model, earlier in benchmark.earlier.items():
            if not earlier:
                continue
            head: Cells = {"benchmark": benchmark.name, "model": model}
            head |= {"earlier_revision": earlier[0].revision, "revision": study.models[model].revision}
            old = outcomes_of(earlier, requests_of(benchmark.earlier_responses[model]))
            new = outcomes_of(benchmark.scores[model], requests_of(benchmark.responses[model]))
            sides = sides_of(old.get(HEADLINE, {}), new.get(HEADLINE, {}))
            rows += [RevisionRow(**head, **cells) for cells in metric_rows(sides, study.vocabulary, study.settings)]
    return rows


def metric_rows(sides: PairedItems, vocabulary: Vocabulary, settings: IntervalSettings) -> list[Cells]:
    """Compare old and new answers by pass, with the paired difference of pass@1, and by leading diagnosis: cells of `revisions.csv`."""
    rows: list[Cells] = []
    for metric, (pairs, answers) in answer_changes(sides, vocabulary, settings).items():
        row: Cells = {"metric": metric, "disagreement": answers.disagreement, "noise_floor": answers.floor, "excess": answers.excess}
        row |= {"p_value": answers.p_value, "n_repeated": answers.repeated, "same_text": same_answers(pairs)}
        row |= {"n_items": len(pairs), "n_patients": patients_of(pairs)}
        if metric == PASSED:
            old, new, change = pass_change(pairs, settings)
            row |= {"earlier_value": old, "value": new, "difference": change.value, "low": change.low, "high": change.high}
            row |= {"p_difference": change.p_value, "gained": change.only_first, "lost": change.only_second}
        rows.append(row)
    return rows


def _change_sentence(study: Study, model: str, rows: list[Cells]) -> str:
    """Say what is otherwise in the new revision of a model."""
    title = study.models[model].title
    if all(row["same_text"] == 1 for row in rows):
        return f"The new revision of {title} gives the answers of the one before, word for word."
    rates = [row for row in rows if row["metric"] == PASSED]
    items, gained, lost = (sum(row[name] or 0 for row in rates) for name in ("n_items", "gained", "lost"))
    moved = f"In the new revision of {title} {gained + lost} of {counted(items, 'verdict')} changed ({gained} to passed, {lost} to failed)."
    return f"{moved} {exploratory(study, 'New minus old pass@1', rates)}".rstrip()


def revisions_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise what is otherwise in new revisions."""
    rows = tables["revisions"]
    if not rows:
        return Takeaway("No earlier revision of a model stands beside the present one.", "0 revisions")
    models = sorted({row["model"] for row in rows})
    parts = [_change_sentence(study, model, [row for row in rows if row["model"] == model]) for model in models]
    return Takeaway(" ".join(parts), f"{counted(len(models), 'model')} with an earlier revision; {largest(rows)}")


REVISIONS = Table(
    name="revisions",
    row=RevisionRow,
    rows=of_study(revision_rows),
    suppression=Suppression(f"{MODEL} metric earlier_revision revision"),
    takeaways={"changed": revisions_takeaway},
)
