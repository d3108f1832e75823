"""Scores of a finished run as they were stored, and the items of two runs paired."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.items import Runner, Strategy
from neuralmedbench.records.scores import Score

MAJORITY = 0.5
"""An item passes when more than this share of its answers does."""
QUESTIONS, REFERENCES = "questions", "references"
"""What may differ for an item in both runs, so that its answers are not paired."""
REFERENCE = ("answer", "findings", "place", "established", "options")
"""Columns of the bundle of cases that hold the reference of an item."""


class ItemOutcome(NamedTuple):
    """The answers of one model to one item under one arm and strategy: samples expected, graded and passed, and what was asked and answered.

    `texts` are the digests of the answers by sample; of samples that voted there is one.
    """

    row: Score
    expected: int
    graded: int
    passes: int
    request: str
    texts: dict[int, str]

    @property
    def share(self) -> float:
        """Share of the expected answers that pass; a missing one does not."""
        return self.passes / self.expected

    @property
    def passed(self) -> bool:
        """True if most of the expected answers pass."""
        return self.share > MAJORITY

    @property
    def complete(self) -> bool:
        """True if no answer and no grade is missing."""
        return self.graded >= self.expected


Answers = Mapping[tuple[str, str], Mapping[str, ItemOutcome]]
"""Items by id, by arm and strategy."""


@dataclass(frozen=True)
class StoredRun:
    """A finished run, read from its folder of results.

    Attributes
    ----------
    name : str
        Name of the run.
    answers : dict of (str, str) to Answers
        By benchmark and model, of the revision that the run's tables are about.
    revisions : dict of (str, str) to str
        Their revisions.
    references : dict of str to dict of str to tuple
        By benchmark and item, what the bundle of cases holds of the reference.
    """

    name: str
    answers: dict[tuple[str, str], Answers] = field(default_factory=dict)
    revisions: dict[tuple[str, str], str] = field(default_factory=dict)
    references: dict[str, dict[str, tuple[Any, ...]]] = field(default_factory=dict)


def read_stored_run(name: str, results: Path, models: Iterable[Mapping[str, Any]], revisions: Mapping[str, str]) -> StoredRun:
    """Read the scores of a finished run, with the requests that were answered and the references of that time.

    Parameters
    ----------
    name : str
        Name of the run.
    results : Path
        Folder of its results.
    models : iterable of dict
        Entry `models` of its provenance: benchmark, model and revision.
    revisions : dict of str to str
        Another revision of a model, whose scores the run must still hold.

    Raises
    ------
    ConfigError
        If the run holds no answers of that revision.
    """
    run = StoredRun(name)
    for entry in models:
        benchmark, model = str(entry["benchmark"]), str(entry["model"])
        revision = revisions.get(model, str(entry["revision"]))
        scores = [row for row in read_records(results / "scores" / benchmark / f"{model}.parquet", Score) if row.revision == revision]
        if not scores and revision != str(entry["revision"]):
            message = f"{model}@{revision}: the run {name} holds no answers of this revision to {benchmark}; it has {entry['revision']}"
            raise ConfigError(message)
        run.answers[benchmark, model] = outcomes_of(scores, _requests(results / "responses" / benchmark / f"{model}.parquet", revision))
        run.revisions[benchmark, model] = revision
        if benchmark not in run.references:
            run.references[benchmark] = _references(results / "cases" / f"{benchmark}.parquet")
    return run


def _requests(path: Path, revision: str) -> dict[tuple[str, str, str], str]:
    rows = pq.read_table(path, columns=["item_id", "arm", "strategy", "revision", "request_id"]).to_pylist()
    return {(row["item_id"], row["arm"], row["strategy"]): row["request_id"] for row in rows if row["revision"] == revision}


def _references(path: Path) -> dict[str, tuple[Any, ...]]:
    rows = pq.read_table(path, columns=["item_id", *REFERENCE]).to_pylist()
    return {row["item_id"]: tuple(tuple(cell) if isinstance(cell := row[name], list) else cell for name in REFERENCE) for row in rows}


def outcomes_of(scores: Iterable[Score], requests: Mapping[tuple[str, str, str], str]) -> Answers:
    """Count the scores of one model on one benchmark by arm, strategy and item; items that cannot pass are left out."""
    rows: dict[tuple[str, str], dict[str, list[Score]]] = defaultdict(lambda: defaultdict(list))
    without = set[str]()  # items without a reference, or structured ones whose reference has no class
    for row in scores:
        rows[row.arm, row.strategy][row.item_id].append(row)
        no_class = row.runner == Runner.STRUCTURED and not row.missing and row.passed is None and not row.other_language
        if not row.scored or no_class:
            without.add(row.item_id)
    found: dict[tuple[str, str], dict[str, ItemOutcome]] = {}
    for (arm, strategy), items in rows.items():
        # as many samples as the runner has in any item; of samples that voted one is scored
        samples: dict[str, int] = defaultdict(lambda: 1)
        for row in (row for own in items.values() for row in own):
            samples[row.runner] = max(samples[row.runner], 1 if strategy == Strategy.SELF_CONSISTENCY else row.repeat + 1)
        found[arm, strategy] = {
            item: ItemOutcome(
                row=own[0],
                expected=samples[own[0].runner],
                graded=sum(not row.missing and row.passed is not None for row in own),
                passes=sum(bool(row.passed) for row in own if not row.missing),
                request=requests.get((item, arm, strategy), ""),
                texts={0 if strategy == Strategy.SELF_CONSISTENCY else row.repeat: row.text_sha256 for row in own},
            )
            for item, own in sorted(items.items())
            if item not in without
        }
    return found


class PairedItems(NamedTuple):
    """The items of both runs under one arm and strategy, by whether their answers are paired."""

    a: Mapping[str, ItemOutcome]
    b: Mapping[str, ItemOutcome]
    paired: list[str]
    other_question: list[str]
    other_reference: list[str]
    unanswered: list[str]

    def within(self, family: str) -> PairedItems:
        """Keep the items of one task family."""
        a, b = ({item: one for item, one in side.items() if one.row.family == family} for side in (self.a, self.b))
        paired, question, reference, unanswered = ([item for item in part if item in a] for part in self[2:])
        return PairedItems(a, b, paired, question, reference, unanswered)


def sides_of(
    a: Mapping[str, ItemOutcome],
    b: Mapping[str, ItemOutcome],
    references: tuple[Mapping[str, Any], Mapping[str, Any]],
    despite: Collection[str] = (),
) -> PairedItems:
    """Pair the items of two runs: the same reference, the same request, and no answer missing in either.

    Parameters
    ----------
    a, b : mapping of str to ItemOutcome
        The items of each run.
    references : pair of mappings
        The reference of each item at the time of each run.
    despite : collection of str
        `QUESTIONS`, `REFERENCES`: pair items although these differ.
    """
    parts: dict[str, list[str]] = {"paired": [], "other_question": [], "other_reference": [], "unanswered": []}
    for item in sorted(a.keys() & b.keys()):
        if REFERENCES not in despite and references[0].get(item) != references[1].get(item):
            parts["other_reference"].append(item)
        elif QUESTIONS not in despite and a[item].request != b[item].request:
            parts["other_question"].append(item)
        else:
            parts["paired" if a[item].complete and b[item].complete else "unanswered"].append(item)
    return PairedItems(a, b, **parts)
