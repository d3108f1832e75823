"""Answers of a model by item, read from a finished run or given, and the items of two sides paired: the only pairing of old and new answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.items import Arm, Runner, Strategy
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Score

HEADLINE = (str(Arm.FULL), str(Strategy.DIRECT))
MAJORITY = 0.5
"""An item passes when more than this share of its answers does."""
QUESTIONS, REFERENCES = "questions", "references"
"""What may differ for an item in both runs, so that its answers are not paired."""
REFERENCE = ("answer", "findings", "place", "established", "options")
"""Columns of the bundle of cases that hold the reference of an item."""


@dataclass(frozen=True)
class ItemOutcome:
    """The answers of one model to one item under one arm and strategy.

    Attributes
    ----------
    rows : list of Score
        The answers, missing ones included.
    expected : int
        Answers that the run asked for.
    request : str
        Digest of what was asked; empty if it is not known.
    can_pass : bool
        False without a reference, or for a structured item whose reference has no class.
    """

    rows: list[Score]
    expected: int
    request: str = ""
    can_pass: bool = True

    @cached_property
    def answered(self) -> bool:
        """True if no answer is missing."""
        return len(self.rows) >= self.expected and not any(row.missing for row in self.rows)

    @cached_property
    def graded(self) -> bool:
        """True if the item can pass, and no answer and no grade is missing."""
        return self.can_pass and self.answered and all(row.passed is not None for row in self.rows)

    @cached_property
    def passes(self) -> int:
        """Number of answers that pass."""
        return sum(bool(row.passed) for row in self.rows if not row.missing)

    @property
    def share(self) -> float:
        """Share of the expected answers that pass."""
        return self.passes / self.expected

    @property
    def passed(self) -> bool:
        """True if most of the expected answers pass."""
        return self.share > MAJORITY

    @cached_property
    def texts(self) -> dict[int, str]:
        """Digests of the answers by sample; samples that voted have one."""
        voted = self.rows[0].strategy == Strategy.SELF_CONSISTENCY
        return {0 if voted else row.repeat: row.text_sha256 for row in self.rows}


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


def requests_of(responses: Iterable[Response]) -> dict[tuple[str, str, str], str]:
    """Return the digest of each request by item, arm and strategy."""
    return {(row.item_id, row.arm, row.strategy): row.request_id for row in responses}


def _references(path: Path) -> dict[str, tuple[Any, ...]]:
    rows = pq.read_table(path, columns=["item_id", *REFERENCE]).to_pylist()
    return {row["item_id"]: tuple(tuple(cell) if isinstance(cell := row[name], list) else cell for name in REFERENCE) for row in rows}


def scores_by_item(scores: Iterable[Score]) -> dict[str, list[Score]]:
    """Group scores by item, sorted by its id."""
    rows: dict[str, list[Score]] = defaultdict(list)
    for row in scores:
        rows[row.item_id].append(row)
    return dict(sorted(rows.items()))


def outcomes_of(scores: Iterable[Score], requests: Mapping[tuple[str, str, str], str]) -> Answers:
    """Gather the answers of one model to one benchmark by arm, strategy and item."""
    sides: dict[tuple[str, str], list[Score]] = defaultdict(list)
    without = set[str]()
    for row in scores:
        sides[row.arm, row.strategy].append(row)
        no_class = row.runner == Runner.STRUCTURED and not row.missing and row.passed is None and not row.other_language
        if not row.scored or no_class:
            without.add(row.item_id)
    outcomes: dict[tuple[str, str], dict[str, ItemOutcome]] = {}
    for (arm, strategy), rows in sides.items():
        # as many samples as the runner has in any item; of samples that voted one is scored
        samples: dict[str, int] = defaultdict(lambda: 1)
        for row in rows:
            samples[row.runner] = max(samples[row.runner], 1 if strategy == Strategy.SELF_CONSISTENCY else row.repeat + 1)
        outcomes[arm, strategy] = {
            item: ItemOutcome(answers, samples[answers[0].runner], requests.get((item, arm, strategy), ""), item not in without)
            for item, answers in scores_by_item(rows).items()
        }
    return outcomes


class PairedItems(NamedTuple):
    """The items of two sides under one arm and strategy.

    `a` and `b` are the items that can pass. Of those on both sides `paired` have all answers and grades, and `unanswered` lack one. `answered`
    are the items with all answers, graded or not.
    """

    a: Mapping[str, ItemOutcome]
    b: Mapping[str, ItemOutcome]
    paired: list[str]
    other_question: list[str]
    other_reference: list[str]
    unanswered: list[str]
    answered: list[tuple[ItemOutcome, ItemOutcome]]

    @property
    def pairs(self) -> list[tuple[ItemOutcome, ItemOutcome]]:
        """The paired items on both sides."""
        return [(self.a[item], self.b[item]) for item in self.paired]

    def within(self, family: str) -> PairedItems:
        """Keep the items of one task family."""
        a, b = ({item: outcome for item, outcome in side.items() if outcome.rows[0].family == family} for side in self[:2])
        paired, question, reference, unanswered = ([item for item in items if item in a] for items in self[2:6])
        answered = [pair for pair in self.answered if pair[0].rows[0].family == family]
        return PairedItems(a, b, paired, question, reference, unanswered, answered)


def sides_of(
    a: Mapping[str, ItemOutcome],
    b: Mapping[str, ItemOutcome],
    references: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
    despite: Collection[str] = (),
) -> PairedItems:
    """Pair the items of two sides: the same reference, the same request, and no answer missing in either.

    Parameters
    ----------
    a, b : mapping of str to ItemOutcome
        The items of each side.
    references : pair of mappings
        The reference of each item at the time of each side.
    despite : collection of str
        `QUESTIONS`, `REFERENCES`: pair items although these differ.
    """
    can_pass = [{item: outcome for item, outcome in side.items() if outcome.can_pass} for side in (a, b)]
    sides = PairedItems(can_pass[0], can_pass[1], [], [], [], [], [])
    for item in sorted(a.keys() & b.keys()):
        known = item in sides.a and item in sides.b
        if REFERENCES not in despite and references[0].get(item) != references[1].get(item):
            sides.other_reference.extend([item] * known)
            continue
        if QUESTIONS not in despite and a[item].request != b[item].request:
            sides.other_question.extend([item] * known)
            continue
        if a[item].answered and b[item].answered:
            sides.answered.append((a[item], b[item]))
        if known:
            complete = a[item].graded and b[item].graded
            (sides.paired if complete else sides.unanswered).append(item)
    return sides
