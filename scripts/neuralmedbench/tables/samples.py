"""How many of the expected samples of an item came, and how often all of them are word for word the same: `samples.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from neuralmedbench.records.scores import Score
from neuralmedbench.tables.declare import MODEL, Suppression, Table, arm_labels, of_study
from neuralmedbench.tables.rows import ResultRow
from neuralmedbench.tables.study import BenchmarkStudy, Study


@dataclass(frozen=True, kw_only=True)
class SampleRow(ResultRow):
    """One model under one arm and strategy; the share `same_text` is 0 to 1."""

    benchmark: str
    model: str
    in_reference_pool: bool | None = None
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

    `samples_per_item` is the most that is expected of one item. Of `complete` items all expected samples came, of `partial` ones some, of
    those `without` none; refused, truncated and unreadable samples came. `repeated` items have at least two samples; of them `same_text`
    is the share whose samples are all the same, word for word: near 1 at a temperature above 0, pass@5 says no more than pass@1.
    """
    return [row for benchmark in study.benchmarks.values() for row in _rows(benchmark)]


def _rows(benchmark: BenchmarkStudy) -> Iterator[SampleRow]:
    patients = {item.item_id: item.patient_id for item in benchmark.outcomes.items}
    scores: dict[tuple[str, str, str], dict[str, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for model, rows in benchmark.scores.items():
        for row in rows:
            if row.item_id in patients:
                scores[model, row.arm, row.strategy][row.item_id].append(row)
    for key in benchmark.outcomes.counts:
        if items := scores.get((key.model, key.arm, key.strategy)):
            yield _row(benchmark.name, key, items, len({patients[item] for item in items}))


def _row(benchmark: str, key: tuple[str, str, str], items: Mapping[str, Sequence[Score]], patients: int) -> SampleRow:
    model, arm, strategy = key
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


TABLE = Table(
    name="samples",
    row=SampleRow,
    rows=of_study(sample_rows),
    suppression=Suppression(f"{MODEL} arm strategy samples_per_item", labels=arm_labels),
)
