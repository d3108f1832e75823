"""Completeness and form of the answers: `samples.csv` and `validity.csv`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from neuralmedbench.records.items import Item, Runner
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.records.thoughts import is_only_thoughts
from neuralmedbench.records.value_rules import fields_of
from neuralmedbench.records.words import counted, percent
from neuralmedbench.scoring.parse import plain_text
from neuralmedbench.scoring.structured.form import STEPS, form_of
from neuralmedbench.scoring.structured_answer import FIELDS, find_answer_object
from neuralmedbench.tables.declare import ALL, MODEL, Suppression, Table, arm_labels, of_study
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.rows import Cells, ModelRow, Tables
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway


@dataclass(frozen=True, kw_only=True)
class SampleRow(ModelRow):
    """One model under one arm and strategy; the share `same_text` is 0 to 1."""

    arm: str
    strategy: str
    samples_per_item: int
    n_items: int
    n_patients: int
    complete: int
    partial: int
    without: int
    repeated: int
    same_text: float | None


def sample_rows(study: Study) -> list[SampleRow]:
    """Count the samples of every model under every arm and strategy, over items that have a reference.

    `samples_per_item` is the largest number expected of one item. `complete` items have all expected samples, `partial` ones some,
    `without` none; refused, truncated and unreadable samples are present. `repeated` items have at least two samples; `same_text`
    is the share of them whose samples are identical word for word. If it is near 1 at a temperature above 0, pass@5 adds nothing to pass@1.
    """
    return [row for benchmark in study.benchmarks.values() for row in _sample_rows(benchmark)]


def _sample_rows(benchmark: BenchmarkStudy) -> Iterator[SampleRow]:
    patients = {item.item_id: item.patient_id for item in benchmark.outcomes.items}
    scores: dict[tuple[str, str, str], dict[str, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for model, rows in benchmark.scores.items():
        for row in rows:
            if row.item_id in patients:
                scores[model, row.arm, row.strategy][row.item_id].append(row)
    for key in benchmark.outcomes.counts:
        if items := scores.get((key.model, key.arm, key.strategy)):
            yield _sample_row(benchmark.name, key, items, len({patients[item] for item in items}))


def _sample_row(benchmark: str, key: tuple[str, str, str], items: Mapping[str, Sequence[Score]], patients: int) -> SampleRow:
    model, arm, strategy = key
    # identical texts have identical digests
    came = {item: [row.text_sha256 for row in rows if not row.missing] for item, rows in items.items()}
    complete = sum(len(texts) == len(items[item]) for item, texts in came.items())
    without = sum(not texts for texts in came.values())
    repeated = [set(texts) for texts in came.values() if len(texts) > 1]
    return SampleRow(
        benchmark=benchmark,
        model=model,
        arm=arm,
        strategy=strategy,
        samples_per_item=max(len(rows) for rows in items.values()),
        n_items=len(items),
        n_patients=patients,
        complete=complete,
        partial=len(items) - complete - without,
        without=without,
        repeated=len(repeated),
        same_text=sum(len(texts) == 1 for texts in repeated) / len(repeated) if repeated else None,
    )


SAMPLES = Table(
    name="samples",
    row=SampleRow,
    rows=of_study(sample_rows),
    suppression=Suppression(f"{MODEL} arm strategy samples_per_item", labels=arm_labels),
)


PARSED = (ParseStatus.STRICT, ParseStatus.REPAIRED, ParseStatus.FAILED)


@dataclass(frozen=True, kw_only=True)
class ValidityRow(ModelRow):
    """One step of the check of form, for one model and runner."""

    runner: str | None = None
    step: str
    share: float | None = None
    count: int | None = None
    n: int | None = None


def validity_rows(study: Study) -> list[ValidityRow]:
    """Rows of `validity.csv`: arm full, strategy direct.

    `answered` is a share of the expected answers; every other step is a share of the answers that are present, refused and truncated ones
    included. `parse_strict`, `parse_repaired`, `parse_failed` and, of choices, `parse_contradicted` (a letter before the words of another
    option) add up to all of them; `thoughts_alone` is the part of `parse_failed` that never came to an answer, where there is any. Structured answers also have the steps of `form.STEPS`, each of which counts only answers that pass the
    steps before it.
    """
    rows = []
    for benchmark in study.benchmarks.values():
        # runners ask for different forms, so each has rows of its own
        runners = [runner for runner in Runner if any(item.runner == runner for item in benchmark.items)]
        for model, scores in benchmark.scores.items():
            for runner in runners:
                own = [row for row in headline(scores) if row.runner == runner]
                rows += [
                    ValidityRow(benchmark=benchmark.name, model=model, runner=str(runner), **row) for row in _steps(benchmark, runner, own)
                ]
    return rows


def _steps(benchmark: BenchmarkStudy, runner: Runner, scores: list[Score]) -> list[Cells]:
    came = [row for row in scores if not row.missing]
    rows = [_step("answered", len(came), len(scores))] if scores else []
    if not came:
        return rows
    states = Counter(row.parse_status for row in came)
    parsed = (*PARSED, ParseStatus.CONTRADICTED) if runner is Runner.CHOICE else PARSED
    rows += [_step(f"parse_{status}", states[status], len(came)) for status in parsed]
    thoughts = sum(row.state == ResponseState.OK and is_only_thoughts(row.text) for row in came)
    rows += [_step("thoughts_alone", thoughts, len(came))] if thoughts else []
    if runner is Runner.STRUCTURED:
        items = {item.item_id: item for item in benchmark.items}
        # of an item that is asked in stages a score holds the last text alone
        passed = [_count_passed(row, items[row.item_id]) for row in came if not items[row.item_id].turns]
        rows += [_step(step, sum(number > place for number in passed), len(passed)) for place, step in enumerate(STEPS) if passed]
    return rows


def _count_passed(score: Score, item: Item) -> int:
    """Count the steps that one answer passes; an unreadable answer passes none."""
    value = (
        None
        if score.parse_status == ParseStatus.FAILED
        else find_answer_object(plain_text(score.text), fields_of(item.answer_schema) or FIELDS)[0]
    )
    return form_of(item.answer_schema).passed(value)


def _step(step: str, count: int, n: int) -> Cells:
    return {"step": step, "share": count / n, "count": count, "n": n}


def validity_takeaway(study: Study, tables: Tables) -> Takeaway:
    """Summarise how many answers have the requested form."""
    rows = [row for row in tables["validity"] if row["step"] == "parse_strict"]
    kept, asked = (sum(row[name] or 0 for row in rows) for name in ("count", "n"))
    if not asked:
        return Takeaway("No answer has been asked for yet.", "0 answers")
    return Takeaway(f"{percent(kept / asked)} of the answers came in the form that was asked for.", counted(asked, "answer"))


VALIDITY = Table(
    name="validity",
    row=ValidityRow,
    rows=of_study(validity_rows),
    suppression=Suppression(
        f"{MODEL} runner step", mark="n", patients="", labels=lambda row: [(f"{ALL} items", ""), ("runner", row["runner"])]
    ),
    takeaways={"form": validity_takeaway},
)
