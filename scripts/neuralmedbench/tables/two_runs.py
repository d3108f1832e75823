"""Two sides compared: runs, revisions, or a model before and now. Paired differences, items that changed sides, and the answer in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.contrasts import smallest_difference
from neuralmedbench.estimates.exact import holm_known
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.estimates.suppression import CellSize, mask_of, suppressed_cells
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.items import Family
from neuralmedbench.records.results import FEWEST, HIDDEN, PATIENT
from neuralmedbench.records.scores import Score
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.records.words import counted, items_of, listing, points, points_span
from neuralmedbench.tables.changes import HEADLINE, LEADER, LEFT_OUT, PASSED, PairedItems, Side, paired_items, records_of_items
from neuralmedbench.tables.declare import Cells, Count, Flag, Number, ResultRow, Text
from neuralmedbench.tables.groups import Mask

Sides = Mapping[tuple[str, str], Side]
MAJORITY = 0.5
"""An item passes when more than this share of its answers does."""
WHOLE, PARTS = "whole", "parts"
"""The two families of comparisons: one for each benchmark and model; their task families, arms and strategies."""
TESTS = ("p_value", "p_passes", "p_leaders")
"""The tests of a comparison: pass@1, and the passes and leading diagnoses of items beyond the noise of repeats."""


@dataclass(frozen=True, kw_only=True)
class RunDifferenceRow(ResultRow):
    """One model on one benchmark in two runs, the second minus the first; over all items, one task family, one arm or one strategy."""

    comparisons: str
    benchmark: str
    model: str
    model_b: str
    revision_a: Text = None
    revision_b: Text = None
    arm: str
    strategy: str
    family: str
    a: Number = None
    b: Number = None
    difference: Number = None
    low: Number = None
    high: Number = None
    p_value: Number = None
    p_passes: Number = None
    p_leaders: Number = None
    p_holm: Number = None
    changed: Flag = None
    detectable: Number = None
    gained: Count = None
    lost: Count = None
    same_answers: Number = None
    n_items: Count = None
    n_patients: Count = None
    only_a: Count = None
    only_b: Count = None
    other_question: Count = None
    other_reference: Count = None
    unanswered: Count = None


@dataclass(frozen=True, kw_only=True)
class ChangedItemRow(ResultRow):
    """One item that most answers of one run pass and most of the other do not; arm full, strategy direct."""

    benchmark: str
    model: str
    model_b: str
    item_id: str
    case_id: str
    family: Text = None
    level: Text = None
    change: Text = None
    a_passes: Count = None
    a_samples: Count = None
    b_passes: Count = None
    b_samples: Count = None
    same_answer: Flag = None


def difference_row(head: Cells, sides: PairedItems, vocabulary: Vocabulary, settings: IntervalSettings) -> RunDifferenceRow:
    """Return the row of one comparison, without its correction."""
    cells: Cells = head | sides.sizes(sides.paired) | {name: int(sides.sets[name].sum()) for name in LEFT_OUT}
    if head["comparisons"] == WHOLE:
        changes = sides.answer_changes(vocabulary, settings)
        tests = {"p_passes": PASSED, "p_leaders": LEADER}
        cells |= {name: changes[metric][1].p_value for name, metric in tests.items() if metric in changes}
    if sides.paired.any():
        old, new, change = sides.pass_change(settings)
        cells |= {"a": old, "b": new}
        cells |= {"difference": change.value, "low": change.low, "high": change.high, "p_value": change.p_value}
        cells |= {"gained": change.only_first, "lost": change.only_second, "same_answers": sides.same_answers(sides.paired)}
        # without correction: `corrected` makes it that of the family
        cells["detectable"] = change.error
    return RunDifferenceRow(**cells)


def corrected(rows: Sequence[RunDifferenceRow], alpha: float) -> list[RunDifferenceRow]:
    """Correct all tests of one family by Holm's method, and give the smallest difference that each would show in 80 % of such studies.

    A comparison is a change if one of its tests is below the level; `p_holm` is that of pass@1.
    """
    p_values = holm_known([row[name] for row in rows for name in TESTS])
    tested = sum(p_value is not None for p_value in p_values)
    results = []
    for number, row in enumerate(rows):
        tests = p_values[number * len(TESTS) :][: len(TESTS)]
        known = [p_value for p_value in tests if p_value is not None]
        changed = min(known) < alpha if known else None
        detectable = smallest_difference(row.detectable, row.n_patients or 0, alpha / tested) if row.detectable else None
        results.append(replace(row, p_holm=tests[0], changed=changed, detectable=detectable))
    return results


@dataclass(frozen=True)
class Audience:
    """For whom the page is: of the benchmarks in `patients` a public page (`public`) shows no single case and no number of few patients."""

    public: bool = False
    fewest: int = 10
    patients: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """Two runs compared.

    Attributes
    ----------
    differences, changed : list of dict
        Rows of `RunDifferenceRow` and `ChangedItemRow`, as they may be shown.
    hidden : int
        Rows of differences whose numbers are not shown.
    alpha : float
        Level of the corrected tests.
    """

    differences: list[Cells]
    changed: list[Cells]
    hidden: int = 0
    alpha: float = 0.05


def compare_runs(
    a: Sides,
    b: Sides,
    vocabulary: Vocabulary,
    settings: IntervalSettings,
    *,
    pairs: Mapping[str, str] | None = None,
    despite: Collection[str] = (),
    audience: Audience | None = None,
) -> RunComparison:
    """Compare two runs on the benchmarks and models that both have.

    Parameters
    ----------
    a, b : mapping of (str, str) to Side
        The runs, by benchmark and model; differences are the second minus the first.
    vocabulary : Vocabulary
        For names of leading diagnoses.
    settings : IntervalSettings
        Of all intervals.
    pairs : mapping of str to str, optional
        Models of the first run with another name in the second; all others are compared under their own name.
    despite : collection of str
        As in `changes.paired_items`.
    audience : Audience, optional
        For whom the page is.
    """
    audience, named = audience or Audience(), dict(pairs or {})
    rows, changed = list[RunDifferenceRow](), list[Cells]()
    # the items of all sides of a benchmark, and the sets of them that its rows are about
    benchmarks = {benchmark for benchmark, _ in a}
    items = {name: records_of_items([side for run in (a, b) for key, side in run.items() if key[0] == name]) for name in benchmarks}
    sets: dict[str, list[list[Mask]]] = {name: [] for name in benchmarks}
    for (benchmark, model), old in a.items():
        other = named.get(model, model)
        new = b.get((benchmark, other))
        if new is None:
            continue
        head = {"benchmark": benchmark, "model": model, "model_b": other, "revision_a": old.revision, "revision_b": new.revision}
        for cells, sides in _parts(old, new, items[benchmark], despite):
            rows.append(difference_row(head | cells, sides, vocabulary, settings))
            sets[benchmark].append([sides.sets[name] for name in ("a", "b", "paired", "answered")])
            if cells["comparisons"] == WHOLE and not (audience.public and benchmark in audience.patients):
                changed += _changed_items(head, sides)
    alpha = 1 - settings.confidence
    families = {name: iter(corrected([row for row in rows if row.comparisons == name], alpha)) for name in (WHOLE, PARTS)}
    marks = {name: iter(_marks(items[name], of_rows, name, audience)) for name, of_rows in sets.items()}
    shown = [_shown(next(families[row.comparisons]), next(marks[row.benchmark])) for row in rows]
    return RunComparison(differences=shown, changed=changed, hidden=sum(bool(row["mark"]) for row in shown), alpha=alpha)


def _parts(old: Side, new: Side, items: Sequence[Score], despite: Collection[str]) -> Iterator[tuple[Cells, PairedItems]]:
    """Yield all items under the arm full and the strategy direct, their task families, then every other arm and strategy of both runs."""
    for condition, sides in paired_items(old, new, items, despite):
        cells = {"comparisons": WHOLE if condition == HEADLINE else PARTS, "arm": condition[0], "strategy": condition[1], "family": ""}
        yield cells, sides
        present = {item.family for item in sides.some(sides.sets["a"] | sides.sets["b"])}
        if condition == HEADLINE and len(present) > 1:
            yield from ((cells | {"comparisons": PARTS, "family": str(name)}, sides.of_family(name)) for name in Family if name in present)


def _changed_items(head: Cells, sides: PairedItems) -> Iterator[Cells]:
    """Yield the items that most answers of one side alone pass."""
    passed, identical = [samples.mean("passed") > MAJORITY for samples in sides.samples], sides.identical
    for place in np.flatnonzero(sides.paired & (passed[0] != passed[1])).tolist():
        item = sides.items[place]
        old, new = (rows[place] for rows in sides.rows)
        row = ChangedItemRow(
            **{name: head[name] for name in ("benchmark", "model", "model_b")},
            item_id=item.item_id,
            case_id=item.case_id,
            family=item.family,
            level=item.level,
            change="gained" if passed[1][place] else "lost",
            a_passes=sum(bool(row.passed) for row in old),
            a_samples=len(old),
            b_passes=sum(bool(row.passed) for row in new),
            b_samples=len(new),
            same_answer=bool(identical[place]),
        )
        yield dict(row)


def _marks(items: Sequence[Score], sets: Sequence[Sequence[Mask]], benchmark: str, audience: Audience) -> list[str]:
    """Return the mark of every row of a benchmark: for few patients, for a set of items that shown ones would give away, or none."""
    if not audience.public:
        return [""] * len(sets)
    fewest = audience.fewest if benchmark in audience.patients else FEWEST
    masks = [[mask_of(np.flatnonzero(part).tolist()) for part in of_row] for of_row in sets]
    # a row is one cell for each of its sets; equal sets are one part
    parts = {mask: (f"set {number}", "") for number, mask in enumerate(dict.fromkeys(mask for of_row in masks for mask in of_row))}
    cells = {label: mask for mask, label in parts.items()}
    small, companions = suppressed_cells(cells, 0, CellSize([item.patient_id for item in items], fewest))
    labels = [{parts[mask] for mask in of_row} for of_row in masks]
    return [f"<{fewest}" if of_row & small else HIDDEN if of_row & companions else "" for of_row in labels]


KEYS = ("comparisons", "benchmark", "model", "model_b", "revision_a", "revision_b", "arm", "strategy", "family")


def _shown(row: RunDifferenceRow, mark: str) -> Cells:
    """Hide the numbers of a row that a public page may not show: `mark` says why, empty in a row that is shown."""
    few = row.n_patients if 0 < (row.n_patients or 0) < FEWEST else None
    cells = {name: row[name] if not mark or name in KEYS else None for name in row}
    return cells | {"n_patients": mark or row.n_patients, "few_patients": None if mark else few, "mark": mark}


def comparison_answer(found: RunComparison, titles: Mapping[str, str], clusters: Mapping[str, str]) -> str:
    """Answer "did anything change?" in one or two sentences that claim no more than the corrected comparisons.

    Parameters
    ----------
    found : RunComparison
        The comparison.
    titles : mapping of str to str
        Titles of models and benchmarks by name.
    clusters : mapping of str to str
        By benchmark, what is counted as patients (`records.results.CLUSTER_MARKS`).

    Returns
    -------
    str
        Sentences about the comparisons of whole benchmarks that are shown.
    """
    whole = [row for row in found.differences if row["comparisons"] == WHOLE and not row["mark"]]
    rows = [row for row in whole if any(row[test] is not None for test in TESTS)]
    if not rows:
        hidden = any(row["mark"] for row in found.differences)
        why = "no number may be shown" if hidden else "no model answered the same question in both runs"
        return f"Nothing can be compared: {why}."
    tests = sum(row[test] is not None for row in rows for test in TESTS)
    after = f"after Holm’s correction for {tests} tests" if tests > 1 else "in the only test"
    partial = sum(any(row[name] for name in LEFT_OUT) for row in whole)
    verb = "leaves" if partial == 1 else "leave"
    left_out = f" {counted(partial, 'comparison')} {verb} out items that were not the same or not answered in both." if partial else ""
    words = [(_title(row, titles), _size(row, clusters)) for row in rows]
    changes = [_change_words(row, found.alpha, *text) for row, text in zip(rows, words, strict=True) if row["changed"]]
    if not changes:
        return f"{_unchanged_words(rows, after, words)}{left_out}"
    rest = len(rows) - len(changes)
    others = f" In {'the other comparison' if rest == 1 else f'the other {rest} comparisons'} no change was shown." if rest else ""
    return f"Yes, {after}: {listing(changes)}.{others}{left_out}"


def _title(row: Cells, titles: Mapping[str, str]) -> str:
    return " on ".join(titles.get(row[name], row[name]) for name in ("model", "benchmark"))


def _size(row: Cells, clusters: Mapping[str, str]) -> str:
    return f"{items_of(row['n_items'], row['n_patients'], clusters.get(row['benchmark'], PATIENT), ' of ')} in both"


def _difference_words(row: Cells, size: str) -> str:
    span = points_span(row["low"], row["high"])
    return f"{points(row['difference'])} points ({f'{span}; ' if span else ''}{size})"


def _change_words(row: Cells, alpha: float, title: str, size: str) -> str:
    if row["p_holm"] is not None and row["p_holm"] < alpha:
        return f"pass@1 of {title} changed by {_difference_words(row, size)}"
    rate = "" if row["difference"] is None else f" (pass@1 {points(row['difference'])} points)"
    return f"answers of {title} differ more than repeats do{rate}"


def _unchanged_words(rows: Sequence[Cells], after: str, words: Sequence[tuple[str, str]]) -> str:
    """Say of comparisons without a change whether anything differs, and how large a difference would have been shown."""
    repeats = any(row[test] is not None for row in rows for test in TESTS[1:])
    noise = "No more answers differ than repeats do." if repeats else "How much repeats differ is not known."
    if all(row["p_value"] is None for row in rows):
        return f"No change was shown {after}. {noise}"
    sizes = listing([f"{title}: {size}" for title, size in words])
    # an interval of 0 to 0 stands only where all answers of both are the same
    if all(row["same_answers"] == 1 and row["low"] == row["high"] == 0 for row in rows):
        return f"Nothing changed: every answer is the same, word for word, and so is every outcome ({sizes})."
    if not any(row["difference"] or row["gained"] or row["lost"] for row in rows):
        return f"No outcome changed, though not every answer is the same word for word ({sizes}). {noise}"
    largest = max(range(len(rows)), key=lambda number: abs(rows[number]["difference"] or 0))
    title, size = words[largest]
    seen = [row["detectable"] for row in rows if row["detectable"] is not None and row["detectable"] < 1]
    power = f" 8 of 10 such comparisons would show a difference of {points(median(seen), plus='')} points." if seen else ""
    lead = "the largest difference is that of " if len(rows) > 1 else ""
    return f"No change was shown {after}; {lead}pass@1 of {title}: {_difference_words(rows[largest], size)}. {noise}{power}"


REFERENCE = ("answer", "findings", "place", "established", "options")
"""Columns of the bundle of cases that hold the reference of an item."""


def read_sides(name: str, results: Path, models: Iterable[Mapping[str, Any]], revisions: Mapping[str, str]) -> dict[tuple[str, str], Side]:
    """Return the answers of a finished run by benchmark and model, with the requests and the references of that time.

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
    sides, references = dict[tuple[str, str], Side](), dict[str, dict[str, tuple[Any, ...]]]()
    for entry in models:
        benchmark, model = str(entry["benchmark"]), str(entry["model"])
        revision = revisions.get(model, str(entry["revision"]))
        scores = [row for row in read_records(results / "scores" / benchmark / f"{model}.parquet", Score) if row.revision == revision]
        if not scores and revision != str(entry["revision"]):
            message = f"{model}@{revision}: the run {name} holds no answers of this revision to {benchmark}; it has {entry['revision']}"
            raise ConfigError(message)
        if benchmark not in references:
            references[benchmark] = _references(results / "cases" / f"{benchmark}.parquet")
        requests = _requests(results / "responses" / benchmark / f"{model}.parquet", revision)
        sides[benchmark, model] = Side(revision, scores, requests, references[benchmark])
    return sides


def _requests(path: Path, revision: str) -> dict[tuple[str, str, str], str]:
    rows = pq.read_table(path, columns=["item_id", "arm", "strategy", "revision", "request_id"]).to_pylist()
    return {(row["item_id"], row["arm"], row["strategy"]): row["request_id"] for row in rows if row["revision"] == revision}


def _references(path: Path) -> dict[str, tuple[Any, ...]]:
    rows = pq.read_table(path, columns=["item_id", *REFERENCE]).to_pylist()
    return {row["item_id"]: tuple(tuple(cell) if isinstance(cell := row[name], list) else cell for name in REFERENCE) for row in rows}
