"""Two finished runs side by side: rates, paired differences and items that changed sides, from their stored scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from neuralmedbench.estimates.contrasts import Difference, paired_difference, smallest_difference
from neuralmedbench.estimates.exact import holm_known
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, codes_of, patients_rate
from neuralmedbench.estimates.repeats import share_of_same_answers
from neuralmedbench.estimates.suppression import CellSize, Label, Mask, mask_of, suppressed_cells
from neuralmedbench.records.items import Family
from neuralmedbench.records.results import FEWEST, HIDDEN, PATIENT
from neuralmedbench.records.words import counted, items_of, listing, points, points_span
from neuralmedbench.tables.outcomes import DIRECT, FULL
from neuralmedbench.tables.rows import Cells, ResultRow, with_ends
from neuralmedbench.tables.shared_requests import joined_clusters
from neuralmedbench.tables.stored_runs import Answers, ItemOutcome, PairedItems, StoredRun, sides_of

WHOLE, PARTS = "whole", "parts"
"""The two families of comparisons: one for each benchmark and model; their task families, arms and strategies."""


@dataclass(frozen=True, kw_only=True)
class RunDifferenceRow(ResultRow):
    """One model on one benchmark in two runs, the second minus the first; over all items, one task family, one arm or one strategy."""

    comparisons: str
    benchmark: str
    model: str
    model_b: str
    revision_a: str | None = None
    revision_b: str | None = None
    arm: str
    strategy: str
    family: str
    a: float | None = None
    a_low: float | None = None
    a_high: float | None = None
    a_best: float | None = None
    a_worst: float | None = None
    b: float | None = None
    b_low: float | None = None
    b_high: float | None = None
    b_best: float | None = None
    b_worst: float | None = None
    paired_a: float | None = None
    paired_b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    significant: bool | None = None
    detectable: float | None = None
    gained: int | None = None
    lost: int | None = None
    same_answers: float | None = None
    n_items: int | None = None
    n_patients: int | None = None
    items_a: int | None = None
    items_b: int | None = None
    missing_a: int | None = None
    missing_b: int | None = None
    only_a: int | None = None
    only_b: int | None = None
    other_question: int | None = None
    other_reference: int | None = None
    unanswered: int | None = None


@dataclass(frozen=True, kw_only=True)
class ChangedItemRow(ResultRow):
    """One item that most answers of one run pass and most of the other do not; arm full, strategy direct."""

    benchmark: str
    model: str
    model_b: str
    item_id: str
    case_id: str
    family: str | None = None
    level: str | None = None
    change: str | None = None
    a_passes: int | None = None
    a_samples: int | None = None
    b_passes: int | None = None
    b_samples: int | None = None
    same_answer: bool | None = None


def _by_cluster(items: Sequence[ItemOutcome], settings: IntervalSettings, *others: Sequence[ItemOutcome]) -> ByPatient:
    """Return the patients of some items; those who share a request are one cluster."""
    patients = codes_of([one.row.patient_id for one in items])
    requests = [codes_of([one.request or one.row.item_id for one in side]) for side in (items, *others)]
    return ByPatient(patients, settings, joined_clusters(patients, requests) if items else None)


def _rate(items: Mapping[str, ItemOutcome], settings: IntervalSettings, name: str) -> Cells:
    """Return the rate of one run over its own items, patients alike, as on its leaderboard: above the allowed share of missing answers its bounds alone."""
    own = list(items.values())
    expected, graded = (sum(getattr(one, count) for one in own) for count in ("expected", "graded"))
    cells: Cells = {f"items_{name}": len(own), f"missing_{name}": expected - graded}
    if not graded:
        return cells
    by = _by_cluster(own, settings)
    for bound, extra in (("worst", 0), ("best", 1)):
        shares = [(one.passes + extra * (one.expected - one.graded)) / one.expected for one in own]
        cells[f"{name}_{bound}"] = patients_rate(np.array(shares), by).value
    if expected - graded > settings.max_missing_fraction * expected:
        return cells
    return cells | with_ends({name: patients_rate(np.array([one.share for one in own]), by)})


def run_difference(a: Sequence[ItemOutcome], b: Sequence[ItemOutcome], settings: IntervalSettings) -> Difference:
    """Return the paired difference of pass@1, second run minus first; both sequences hold the same items.

    It is 0 to 0 if every answer is the same word for word.
    """
    values = tuple(np.array([one.share for one in side], dtype=np.float64) for side in (a, b))
    found = paired_difference(values[1], values[0], _by_cluster(a, settings, b))
    if found.value == 0 and all(one.texts == other.texts for one, other in zip(a, b, strict=True)):
        return found._replace(low=0.0, high=0.0)
    return found


def difference_row(head: Cells, sides: PairedItems, settings: IntervalSettings) -> RunDifferenceRow:
    """Return the row of one comparison, without its correction."""
    a, b = ([side[item] for item in sides.paired] for side in (sides.a, sides.b))
    cells: Cells = head | {"n_items": len(a), "n_patients": len({one.row.patient_id for one in a})}
    for name, side in (("a", sides.a), ("b", sides.b)):
        cells |= _rate(side, settings, name)
    cells |= {"only_a": len(sides.a.keys() - sides.b.keys()), "only_b": len(sides.b.keys() - sides.a.keys())}
    cells |= {name: len(getattr(sides, name)) for name in ("other_question", "other_reference", "unanswered")}
    if a:
        found = run_difference(a, b, settings)
        changes = [_change(*pair) for pair in zip(a, b, strict=True)]
        by = _by_cluster(a, settings, b)
        for name, paired in (("paired_a", a), ("paired_b", b)):
            cells[name] = patients_rate(np.array([one.share for one in paired]), by).value
        cells |= {"difference": found.value, "low": found.low, "high": found.high, "p_value": found.p_value}
        # without correction: `corrected` makes it that of the family
        cells |= {"detectable": found.error, "gained": changes.count("gained"), "lost": changes.count("lost")}
        cells["same_answers"] = share_of_same_answers((one.texts, other.texts) for one, other in zip(a, b, strict=True))
    return RunDifferenceRow(**cells)


def _change(a: ItemOutcome, b: ItemOutcome) -> str:
    return "" if a.passed == b.passed else "gained" if b.passed else "lost"


def corrected(rows: Sequence[RunDifferenceRow], alpha: float) -> list[RunDifferenceRow]:
    """Correct the tests of one family by Holm's method, and give the smallest difference that each would show in 80 % of such studies."""
    p_values = [row.p_value for row in rows]
    tested = sum(p_value is not None for p_value in p_values)

    def one(row: RunDifferenceRow, p: float | None) -> RunDifferenceRow:
        error, patients = row.detectable, row.n_patients or 0
        detectable = smallest_difference(error, patients, alpha / tested) if error else None
        significant = None if p is None else p < alpha
        return replace(row, p_holm=p, significant=significant, detectable=detectable)

    return [one(row, p) for row, p in zip(rows, holm_known(p_values), strict=True)]


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
    a: StoredRun,
    b: StoredRun,
    settings: IntervalSettings,
    *,
    pairs: Mapping[str, str] | None = None,
    despite: Collection[str] = (),
    audience: Audience | None = None,
) -> RunComparison:
    """Compare two runs on the benchmarks and models that both have.

    Parameters
    ----------
    a, b : StoredRun
        The runs; differences are the second minus the first.
    settings : IntervalSettings
        Of all intervals.
    pairs : mapping of str to str, optional
        Models of the first run with another name in the second; all others are compared under their own name.
    despite : collection of str
        As in `sides_of`.
    audience : Audience, optional
        For whom the page is.
    """
    audience, named = audience or Audience(), dict(pairs or {})
    rows, changed, masks = list[RunDifferenceRow](), list[Cells](), dict[str, _ShownSets]()
    for benchmark, model in a.answers:
        other = named.get(model, model)
        if (benchmark, other) not in b.answers:
            continue
        head = {"benchmark": benchmark, "model": model, "model_b": other}
        head |= {"revision_a": a.revisions[benchmark, model], "revision_b": b.revisions[benchmark, other]}
        references = a.references.get(benchmark, {}), b.references.get(benchmark, {})
        sets = masks.setdefault(benchmark, _ShownSets())
        for cells, sides in _parts(a.answers[benchmark, model], b.answers[benchmark, other], references, despite):
            rows.append(difference_row(head | cells, sides, settings))
            sets.add(sides)
            if cells["comparisons"] == WHOLE and not (audience.public and benchmark in audience.patients):
                changed += _changed_items(head, sides)
    alpha = 1 - settings.confidence
    both = [row for name in (WHOLE, PARTS) for row in corrected([one for one in rows if one.comparisons == name], alpha)]
    place = {(row.comparisons, row.benchmark, row.model, row.arm, row.strategy, row.family): number for number, row in enumerate(rows)}
    both.sort(key=lambda row: place[row.comparisons, row.benchmark, row.model, row.arm, row.strategy, row.family])
    shown = _shown_rows(both, masks, audience)
    return RunComparison(differences=shown, changed=changed, hidden=sum(bool(row["mark"]) for row in shown), alpha=alpha)


def _parts(
    a: Answers, b: Answers, references: tuple[Mapping[str, Any], Mapping[str, Any]], despite: Collection[str]
) -> Iterator[tuple[Cells, PairedItems]]:
    """Yield all items under the arm full and the strategy direct, their task families, then every other arm and strategy of both runs."""
    for key in sorted(a.keys() & b.keys(), key=lambda key: (key != (FULL, DIRECT), key)):
        sides = sides_of(a[key], b[key], references, despite)
        cells = {"comparisons": WHOLE if key == (FULL, DIRECT) else PARTS, "arm": key[0], "strategy": key[1], "family": ""}
        yield cells, sides
        present = {one.row.family for side in (a[key], b[key]) for one in side.values()}
        if key == (FULL, DIRECT) and len(present) > 1:
            yield from ((cells | {"comparisons": PARTS, "family": str(name)}, sides.within(name)) for name in Family if name in present)


def _changed_items(head: Cells, sides: PairedItems) -> Iterator[Cells]:
    for item in sides.paired:
        one, other = sides.a[item], sides.b[item]
        if change := _change(one, other):
            row = ChangedItemRow(
                **{name: head[name] for name in ("benchmark", "model", "model_b")},
                item_id=item,
                case_id=one.row.case_id,
                family=one.row.family,
                level=one.row.level,
                change=change,
                a_passes=one.passes,
                a_samples=one.expected,
                b_passes=other.passes,
                b_samples=other.expected,
                same_answer=one.texts == other.texts,
            )
            yield dict(row)


class _ShownSets:
    """The sets of items of one benchmark that the rows of the page are about."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[int, str]] = {}
        self._sets = list[tuple[Mapping[str, ItemOutcome], Mapping[str, ItemOutcome], list[str]]]()

    def add(self, sides: PairedItems) -> None:
        """Add the sets of the next row: the items of both runs, and those that are paired."""
        for one in (*sides.a.values(), *sides.b.values()):
            self._items.setdefault(one.row.item_id, (len(self._items), one.row.patient_id))
        self._sets.append((sides.a, sides.b, sides.paired))

    def marks(self, fewest: int) -> list[str]:
        """Return the mark of every row: for few patients, for a set that shown ones would give away, or none."""
        place = {item: number for item, (number, _) in self._items.items()}
        masks: list[list[Mask]] = [[mask_of(place[item] for item in part) for part in sets] for sets in self._sets]
        # a row is one cell for each of its sets; equal sets are one part
        parts = {mask: (f"set {number}", "") for number, mask in enumerate(dict.fromkeys(mask for row in masks for mask in row))}
        cells: dict[Label, Mask] = {label: mask for mask, label in parts.items()}
        small, companions = suppressed_cells(cells, 0, CellSize([patient for _, patient in self._items.values()], fewest))
        of_rows = [{parts[mask] for mask in row} for row in masks]
        return [f"<{fewest}" if labels & small else HIDDEN if labels & companions else "" for labels in of_rows]


KEYS = ("comparisons", "benchmark", "model", "model_b", "revision_a", "revision_b", "arm", "strategy", "family")


def _shown_rows(rows: Sequence[RunDifferenceRow], sets: Mapping[str, _ShownSets], audience: Audience) -> list[Cells]:
    """Hide the numbers of rows that a public page may not show: `mark` says why, empty in a row that is shown."""
    limits = {name: audience.fewest if name in audience.patients else FEWEST for name in sets} if audience.public else {}
    marks = {name: iter(sets[name].marks(limit)) for name, limit in limits.items()}
    found = []
    for row in rows:
        mark = next(marks[row.benchmark]) if row.benchmark in marks else ""
        few = row.n_patients if 0 < (row.n_patients or 0) < FEWEST else None
        cells = {name: row[name] if not mark or name in KEYS else None for name in row}
        found.append(cells | {"n_patients": mark or row.n_patients, "few_patients": None if mark else few, "mark": mark})
    return found


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
    rows = [row for row in found.differences if row["comparisons"] == WHOLE and not row["mark"]]
    tested = [row for row in rows if row["p_value"] is not None]
    if not tested:
        why = (
            "no number may be shown"
            if any(row["mark"] for row in found.differences)
            else "no model answered the same question in both runs"
        )
        return f"Nothing can be compared: {why}."

    def size(row: Cells) -> str:
        return f"{items_of(row['n_items'], row['n_patients'], clusters.get(row['benchmark'], PATIENT), ' of ')} in both"

    def words(row: Cells) -> str:
        span = points_span(row["low"], row["high"])
        name = f"{titles.get(row['model'], row['model'])} on {titles.get(row['benchmark'], row['benchmark'])}"
        return f"{name} {points(row['difference'])} points ({f'{span}; ' if span else ''}{size(row)})"

    after = f"after Holm’s correction for {counted(len(tested), 'comparison')}" if len(tested) > 1 else "in the only comparison"
    left = sum(row["n_items"] < max(row["items_a"], row["items_b"]) for row in rows)
    beside = (
        f" {counted(left, 'comparison')} leave{'s' if left == 1 else ''} out items that were not the same or not answered in both."
        if left
        else ""
    )
    sizes = listing(list(dict.fromkeys(f"{titles.get(row['benchmark'], row['benchmark'])}: {size(row)}" for row in tested)))
    # an interval of 0 to 0 stands only where all answers of both are the same
    if all(row["same_answers"] == 1 and row["low"] == row["high"] == 0 and not (row["gained"] or row["lost"]) for row in tested):
        return f"Nothing changed: every answer is the same, word for word, and so is every outcome ({sizes}).{beside}"
    if shown := [row for row in tested if row["significant"]]:
        first = sorted(shown, key=lambda row: -abs(row["difference"]))
        rest = len(tested) - len(shown)
        others = f" In {'the other comparison' if rest == 1 else f'the other {rest} comparisons'} no change was shown." if rest else ""
        return f"Yes, pass@1 changed {after}: {listing([words(row) for row in first])}.{others}{beside}"
    if not any(row["difference"] or row["gained"] or row["lost"] for row in tested):
        return f"No outcome changed, though not every answer is the same word for word ({sizes}).{beside}"
    largest = max(tested, key=lambda row: abs(row["difference"]))
    seen = [row["detectable"] for row in tested if row["detectable"] is not None and row["detectable"] < 1]
    power = f" 8 of 10 such comparisons would show a difference of {points(median(seen), plus='')} points." if seen else ""
    lead = "the largest difference is that of " if len(tested) > 1 else ""
    return f"No change of pass@1 was shown {after}; {lead}{words(largest)}.{power}{beside}"
