"""Completeness and form of the answers: topics `samples` and `validity`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from neuralmedbench.records.items import Item, Runner
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.records.thoughts import is_only_thoughts
from neuralmedbench.records.value_rules import fields_of
from neuralmedbench.scoring.parse import plain_text
from neuralmedbench.scoring.structured.form import STEPS, form_of
from neuralmedbench.scoring.structured_answer import FIELDS, find_answer_object
from neuralmedbench.tables.declare import ALL, Cells, CountRow, Measure, ModelRows, of_benchmarks, topic
from neuralmedbench.tables.outcomes import headline
from neuralmedbench.tables.study import BenchmarkStudy, Study

SAMPLES_PER_ITEM = "samples_per_item"
"""Slice of the counts of samples: the largest number expected of one item."""


@of_benchmarks
def sample_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[CountRow]:
    """Completeness of the samples of an item, and whether they differ.

    Over items that have a reference; refused, truncated and unreadable samples came. `slice` has
    the largest number expected of one item.
    """
    answers = benchmark.outcomes.answers
    for condition in answers.spans:
        model, arm, strategy = condition
        samples = answers.of(condition)
        items = [rows for rows in samples.by_item() if rows]
        if not items:
            continue
        # identical texts have identical digests
        came = [[row.text_sha256 for row in rows if not row.missing] for rows in items]
        complete = sum(len(texts) == len(rows) for texts, rows in zip(came, items, strict=True))
        without = sum(not texts for texts in came)
        repeated = [set(texts) for texts in came if len(texts) > 1]
        made, number = ModelRows("samples", study, benchmark, model), len(items)
        cells: Cells = {"arm": arm, "strategy": strategy, "slice": SAMPLES_PER_ITEM} | made.sizes(samples.asked)
        cells["value_of_slice"] = str(max(map(len, items)))
        for measure, count in (("complete", complete), ("partial", number - complete - without), ("without", without)):
            yield made.count(measure, count, number, **cells)
        yield made.count("same_text", sum(len(texts) == 1 for texts in repeated), len(repeated), **cells)


SAMPLE_MEASURES = (
    Measure("complete", "With all", "Items of which every expected sample came.", "number"),
    Measure("partial", "With some", "Items of which some of the expected samples came.", "number"),
    Measure("without", "With none", "Items of which no sample came.", "number"),
    Measure(
        "same_text",
        "All the same",
        "Items whose samples are the same word for word, of those with several.",
    ),
)

SAMPLES = topic("samples", sample_rows, SAMPLE_MEASURES, takeaways={})
PARSED = (ParseStatus.STRICT, ParseStatus.REPAIRED, ParseStatus.FAILED)


@of_benchmarks
def validity_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[CountRow]:
    """Form of the answers, by runner: how many can be used, and where the others stop.

    The four `parse_...` add up to the answers that came, refused and truncated ones included;
    `thoughts_alone` is part of `parse_failed`. Structured answers also have the steps of
    `form.STEPS`, each of which counts only answers that pass the steps before it.
    """
    # runners ask for different forms, so each has rows of its own
    runners = [runner for runner in Runner if any(item.runner == runner for item in benchmark.items)]
    for model, scores in benchmark.scores.items():
        made = ModelRows("validity", study, benchmark, model)
        for runner in runners:
            own = [row for row in headline(scores) if row.runner == runner]
            cells = {"slice": "runner", "value_of_slice": str(runner), "n_patients": len({row.patient_id for row in own})}
            for step, count, of in _steps(benchmark, runner, own):
                yield made.count(step, count, of, **cells)


def _steps(benchmark: BenchmarkStudy, runner: Runner, scores: list[Score]) -> Iterator[tuple[str, int, int]]:
    """Yield step, number of answers that pass it, and of how many."""
    came = [row for row in scores if not row.missing]
    if scores:
        yield "answered", len(came), len(scores)
    if not came:
        return
    states = Counter(row.parse_status for row in came)
    for status in (*PARSED, ParseStatus.CONTRADICTED) if runner is Runner.CHOICE else PARSED:
        yield f"parse_{status}", states[status], len(came)
    thoughts = sum(row.state == ResponseState.OK and is_only_thoughts(row.text) for row in came)
    if thoughts:
        yield "thoughts_alone", thoughts, len(came)
    if runner is Runner.STRUCTURED:
        items = {item.item_id: item for item in benchmark.items}
        # of an item that is asked in stages a score holds the last text alone
        passed = [_count_passed(row, items[row.item_id]) for row in came if not items[row.item_id].turns]
        for place, step in enumerate(STEPS):
            if passed:
                yield step, sum(number > place for number in passed), len(passed)


def _count_passed(score: Score, item: Item) -> int:
    """Count the steps that one answer passes; an unreadable answer passes none."""
    value = (
        None
        if score.parse_status == ParseStatus.FAILED
        else find_answer_object(plain_text(score.text), fields_of(item.answer_schema) or FIELDS)[0]
    )
    return form_of(item.answer_schema).passed(value)


FORM_MEASURES = (
    Measure("answered", "Answers received", "Answers received, of all expected."),
    Measure("parse_strict", "As asked", "Answers in the requested form, of those that came."),
    Measure("parse_repaired", "Repaired format", "Answers read in another common format, of those received."),
    Measure(
        "parse_contradicted",
        "Letter contradicts words",
        "Choices whose letter stands before the words of another option, of those that came.",
    ),
    Measure("parse_failed", "Unreadable", "Answers that could not be read, of those that came."),
    Measure(
        "required_fields",
        "All fields",
        "Structured answers that are an object with every field, of those that came.",
    ),
    Measure(
        "enums",
        "Valid labels",
        "Structured answers whose every value is also a listed label or can be read.",
    ),
    Measure(
        "consistency",
        "Consistent",
        "Structured answers whose fields are also consistent with each other.",
    ),
    Measure(
        "parse",
        "An object",
        "Structured answers that are an object, of those that came.",
        main=False,
    ),
    Measure(
        "thoughts_alone",
        "Thoughts alone",
        "Answers with thoughts and nothing after them, of those that came.",
        main=False,
    ),
)

VALIDITY = topic(
    "validity",
    validity_rows,
    FORM_MEASURES,
    labels=lambda row: [(f"{ALL} items", ""), ("runner", row["value_of_slice"])],
)
