"""Tables of a run as a public page may show them: no number in them is about few patients who are not public."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neuralmedbench.estimates.suppression import CellSize, Label, suppressed_cells, two_weights_tell
from neuralmedbench.records.results import FEWEST, HIDDEN, NOT_SHOWN, PASS1_PATIENTS, RANKED_DIFFERENTIAL, RANKING
from neuralmedbench.tables.calibrated import CALIBRATED, SCORE
from neuralmedbench.tables.clinicians.opinions import RATERS
from neuralmedbench.tables.confidence import COVERAGE
from neuralmedbench.tables.declare import Cells, Suppression, Table, Tables
from neuralmedbench.tables.parts import RoundPatients, parts_of
from neuralmedbench.tables.study import BenchmarkStudy, Study


class BenchmarkDisclosure:
    """Suppression for one benchmark of patients who are not public."""

    def __init__(self, study: Study, benchmark: BenchmarkStudy, fewest: int) -> None:
        parts = parts_of(study, benchmark)
        sizes = CellSize(parts.patients, fewest)
        self.fewest = fewest
        self.nothing = len({*parts.patients}) < fewest or sizes.few(parts.total)
        """True if the whole benchmark is about few patients."""
        self.small, self.companions = (set[Label](), set[Label]()) if self.nothing else suppressed_cells(parts.cells, parts.total, sizes)
        self.two_weights = _tell_by_two_weights(benchmark, fewest)
        """True if a mean over items and one over patients tell together of few patients: then only means over items are shown."""
        self._most = _most_of_a_patient(benchmark)
        self.answers_of_a_patient = self._most["question"] * benchmark.config.samples

    def least(self, rule: Suppression, row: Cells) -> int:
        """Return the count from which a row is certainly about enough patients."""
        return self.fewest * (self._most[row["unit"]] if "unit" in row else 1)

    def mark(self, rule: Suppression, row: Cells) -> str:
        """Return the mark of a row that is hidden, for few patients or because of other rows; empty if it is shown."""
        labels: Sequence[Label] = rule.labels(row)
        few = f"<{self.fewest}" if rule.patients and self.least(rule, row) == self.fewest else f"<{self.fewest} patients"
        if (self.nothing and rule.whole) or not self.small.isdisjoint(labels):
            return few
        if rule.patients and 0 < (row.get(rule.patients) or 0) < self.least(rule, row):
            return few
        return HIDDEN if not self.companions.isdisjoint(labels) else ""


def _tell_by_two_weights(benchmark: BenchmarkStudy, fewest: int) -> bool:
    outcomes = benchmark.outcomes
    masks = [np.ones(len(outcomes.items), dtype=bool)]
    for key, counts in outcomes.counts.items():
        masks += [outcomes.expected(key), outcomes.expected(key) & (counts.missing == 0)]
    items = {tuple(np.bincount(outcomes.patients[mask])) for mask in masks}
    return any(two_weights_tell([number for number in counts if number], fewest) for counts in items)


WEIGH_PATIENTS = frozenset({"pairs", "decomposition", "readers", "contamination", "revisions", "readiness", "title"})
"""Tables whose numbers weigh patients alike, beside the contrasts."""


def weighs_patients(table: str, row: Cells) -> bool:
    """Return True for a row whose numbers weigh patients alike, of answers whose mean over items stands in another table."""
    return table in WEIGH_PATIENTS or bool(row.get("other_arm")) or row.get("measure") == PASS1_PATIENTS


def _most_of_a_patient(benchmark: BenchmarkStudy) -> dict[str, int]:
    """Return the largest number of cases, pictures and questions of one patient: a count of n may be of n divided by it patients."""
    # pictures and text have no case table: count the cases of items
    cases = Counter(str(case["patient_id"]) for case in benchmark.flow)
    cases = cases or Counter(patient for patient, _ in {(item.patient_id, item.case_id) for item in benchmark.items})
    pictures = Counter(patient for patient, _ in {(item.patient_id, image.image_id) for item in benchmark.items for image in item.images})
    questions = Counter(item.patient_id for item in benchmark.items)
    files = cases if benchmark.flow else pictures
    counts = {"case": cases, "picture": pictures, "question": questions, "file": files, "series": files}
    return {unit: max(own.values(), default=1) for unit, own in counts.items()}


class RoundDisclosure:
    """Suppression for rounds in which clinicians rated answers about patients who are not public."""

    def __init__(self, study: Study, benchmarks: frozenset[str], fewest: int) -> None:
        self.fewest, self._patients = fewest, RoundPatients(study)
        self.rounds = {row.round_id for row in study.ratings if row.item_id.partition("/")[0] in benchmarks}

    def mark(self, rule: Suppression, row: Cells) -> str:
        """Return the mark of a row that is hidden; empty if it is shown."""
        if row["round_id"] not in self.rounds:
            return ""
        if rule.patients:
            return f"<{self.fewest}" if 0 < (row.get(rule.patients) or 0) < self.fewest else ""
        return f"<{self.fewest} patients" if self._patients.count(row) < self.fewest else ""


def suppressed_rows(
    rule: Suppression,
    rows: Sequence[Cells],
    of_rows: Sequence[Sequence[BenchmarkDisclosure | RoundDisclosure]],
    disclosures: Mapping[str, BenchmarkDisclosure],
) -> list[str]:
    """Return the mark of every row of one table.

    `<10` (or another limit) for few patients, `(hidden)` for secondary suppression with such a row, empty for a row that is shown.
    """
    marks = [
        next((mark for disclosure in found if (mark := disclosure.mark(rule, row))), "") for row, found in zip(rows, of_rows, strict=True)
    ]
    _mark_secondary(rule, rows, marks, disclosures)
    _mark_coverages(rows, marks, disclosures)
    return marks


def _mark_secondary(rule: Suppression, rows: Sequence[Cells], marks: list[str], disclosures: Mapping[str, BenchmarkDisclosure]) -> None:
    """Hide another row of a group whose only hidden rows are about few patients: the total, where it is in the group, else the smallest."""
    groups: dict[object, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.get("benchmark") in disclosures and (group := rule.group(row)) is not None:
            groups[group].append(place)

    def count(place: int) -> int:
        return int(rows[place].get(rule.patients) or 0)

    # secondary suppression: one hidden row of a group could be derived from its total
    for places in groups.values():
        disclosure = disclosures[rows[places[0]]["benchmark"]]
        hidden, left = ([place for place in places if bool(marks[place]) is wanted and count(place)] for wanted in (True, False))
        if hidden and left and not any(count(place) >= disclosure.least(rule, rows[place]) for place in hidden):
            marks[min(left, key=lambda place: (rows[place].get("step") != "listed", count(place), place))] = HIDDEN


def _mark_coverages(rows: Sequence[Cells], marks: list[str], disclosures: Mapping[str, BenchmarkDisclosure]) -> None:
    """Hide coverages so close to the next one that few patients may lie between them; the coverage of all answers is kept."""
    # coverages of one curve, from the highest
    curves: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.get("slice") == COVERAGE and row["benchmark"] in disclosures and not marks[place]:
            curves[row["benchmark"], row["model"], row["source"]].append(place)
    for (benchmark, *_), places in curves.items():
        step = disclosures[benchmark].fewest * disclosures[benchmark].answers_of_a_patient
        end = max(rows[places[0]]["n_answers"], 1) * 1.0
        for place in sorted(places, key=lambda place: -float(rows[place]["value_of_slice"])):
            coverage = float(rows[place]["value_of_slice"])
            kept = coverage * rows[place]["n_answers"]
            if kept < step or (coverage < 1 and end - kept < step):
                marks[place] = f"<{disclosures[benchmark].fewest}"
            else:
                end = kept


PUBLIC, PATIENT = "public", "patient"
OF_DIFFERENTIAL = {
    "pass1": ("differential_items", "differential_patients"),
    "pass5": ("pass5", "pass5_low", "pass5_high"),
    "candidates5": ("candidates5", "candidates5_low", "candidates5_high"),
    "all_right": ("all_right",),
}
"""Cells of the leaderboard about the items of a ranked differential, by the rate over these with which they are hidden."""
CORRECTED = ("calibrated", "calibrated_low", "calibrated_high")

ABOUT_CASES = ("cases", "flow")
"""Blocks that count single cases."""

ABOUT_CALLS = frozenset({"left", "cost", "methods"})
"""Blocks that are not about patients."""


@dataclass(frozen=True)
class Release:
    """Audience of the tables: `internal` hides nothing; `public` hides numbers about fewer patients than `fewest`."""

    profile: str = "internal"
    fewest: int = 10


@dataclass(frozen=True)
class PublicTables:
    """Tables of a run after suppression.

    Attributes
    ----------
    tables : dict of str to list of dict
        As written: a hidden row keeps its key columns, and one cell marks it as hidden.
    visible : dict of str to list of dict
        The same without hidden rows, for sentences.
    study : Study
        The run without the benchmarks of which nothing is shown.
    disclosure : dict
        Amount hidden, and of which benchmarks; empty when no benchmark is of patients who are not public.
    few : tuple of str
        Titles of other benchmarks with fewer than `FEWEST` patients in all.
    """

    tables: Tables
    visible: Tables
    study: Study
    disclosure: Cells = field(default_factory=dict)
    few: tuple[str, ...] = ()

    def blocks(self, blocks: Mapping[str, Cells]) -> Cells:
        """Return the lines above the blocks; blocks that count single cases or are wholly hidden state that instead."""
        if not self.disclosure and not self.few:
            return dict(blocks)
        nothing = {"takeaway": f"Not shown: fewer than {self.disclosure.get('fewest', FEWEST)} patients.", "n": "not shown"}
        hidden = {} if self.study.benchmarks else dict.fromkeys(blocks.keys() - ABOUT_CALLS, nothing)
        if not self.disclosure:
            return {**blocks, **{name: line for name, line in hidden.items() if name not in ABOUT_CASES}}
        whose = ", ".join(self.disclosure["benchmarks"])
        cases = {"takeaway": f"Single cases are not counted where patients are not public ({whose}).", "n": "not shown"}
        return {**blocks, **hidden, **dict.fromkeys(ABOUT_CASES, cases)}

    def sentences(self) -> list[str]:
        """Name the benchmarks of which nothing is shown."""
        nothing = self.disclosure.get("nothing_of", ())
        return [
            f"{title}: fewer than {self.disclosure['fewest']} patients, so a public report shows no number about it." for title in nothing
        ] + [f"{title}: fewer than {FEWEST} patients, so a public report shows no rate of it." for title in self.few]

    def notes(self) -> Cells:
        """Return the notes for the page."""
        return {"disclosure": self.disclosure} if self.disclosure else {}


def public_tables(study: Study, tables: Tables, rules: Mapping[str, Suppression | None], release: Release) -> PublicTables:
    """Hide numbers about few patients; tables are unchanged if the profile is internal or all patients are public."""
    kept = {name: benchmark for name, benchmark in study.benchmarks.items() if benchmark.audit.kind == PATIENT}
    if release.profile != PUBLIC or not kept:
        return PublicTables(tables, tables, study)
    disclosures = {name: BenchmarkDisclosure(study, benchmark, release.fewest) for name, benchmark in kept.items()}
    rounds = RoundDisclosure(study, frozenset(kept), release.fewest)
    # hide rows table by table, then the cells of the leaderboard that repeat hidden ones
    public = {name: _public_rows(name, rules[name], rows, disclosures, rounds) for name, rows in tables.items()}
    _follow_the_rated(public)
    _follow_the_differential(public)
    for one in public["leaderboard"]:
        if one.row["benchmark"] in disclosures and disclosures[one.row["benchmark"]].two_weights:
            _empty(one, RANKING)
    gone = {name for name, disclosure in disclosures.items() if disclosure.nothing}
    left = {name: benchmark for name, benchmark in study.benchmarks.items() if name not in gone}
    disclosure = {
        "fewest": release.fewest,
        "cells": sum(_count_filled(one.row) - _count_shown(one) for own in public.values() for one in own),
        "benchmarks": [benchmark.config.title for benchmark in kept.values()],
        "nothing_of": [kept[name].config.title for name in kept if name in gone],
    }
    return PublicTables(
        {name: [one.after for one in own if one.after is not None] for name, own in public.items()},
        {name: [one.visible for one in own if one.visible is not None] for name, own in public.items()},
        replace(study, benchmarks=left),
        disclosure,
    )


@dataclass
class _PublicRow:
    """A row, as it is written and as sentences see it; None where it is left out."""

    row: Cells
    after: Cells | None
    visible: Cells | None


def _public_rows(
    table: str, rule: Suppression | None, rows: Sequence[Cells], disclosures: Mapping[str, BenchmarkDisclosure], rounds: RoundDisclosure
) -> list[_PublicRow]:
    if rule is None:
        return [_PublicRow(row, row, row) for row in rows]
    nothing = {benchmark for benchmark, disclosure in disclosures.items() if disclosure.nothing}
    if nothing:
        # the order of the models of a wholly hidden benchmark would reveal its ranks
        places = {benchmark: place for place, benchmark in enumerate(dict.fromkeys(row.get("benchmark") for row in rows))}
        rows = sorted(rows, key=lambda row: (places[row.get("benchmark")], row.get("model", "") if row.get("benchmark") in nothing else ""))
    of_rows = [_disclosures_of(row, disclosures, rounds) for row in rows]
    marks = suppressed_rows(rule, rows, of_rows, disclosures)
    for place, (row, found) in enumerate(zip(rows, of_rows, strict=True)):
        if weighs_patients(table, row) and any(isinstance(one, BenchmarkDisclosure) and one.two_weights for one in found):
            marks[place] = marks[place] or f"<{found[0].fewest}"
    public = [_public_row(rule, row, mark, found) for row, mark, found in zip(rows, marks, of_rows, strict=True)]
    seen = set[tuple[object, ...]]()
    for one, mark in zip(public, marks, strict=True):
        if mark and one.after is not None:  # hidden rows of a flow have lost their reasons, so that several may be equal
            cells = tuple(one.after.values())
            if cells in seen:
                one.after = None
            seen.add(cells)
    return public


def _disclosures_of(
    row: Cells, disclosures: Mapping[str, BenchmarkDisclosure], rounds: RoundDisclosure
) -> list[BenchmarkDisclosure | RoundDisclosure]:
    if "round_id" in row:
        return [rounds] if row["round_id"] in rounds.rounds else []
    benchmark = disclosures.get(row.get("benchmark", ""))
    return [benchmark] if benchmark else []


def _public_row(rule: Suppression, row: Cells, mark: str, found: Sequence[BenchmarkDisclosure | RoundDisclosure]) -> _PublicRow:
    if not found:
        return _PublicRow(row, row, row)
    if rule.each or (mark and not rule.mark):
        return _PublicRow(row, None, None)
    if mark:
        after = {column: row[column] for column in rule.keys.split() if column in row} | {rule.mark: mark}
        return _PublicRow(row, after | ({rule.says: NOT_SHOWN} if rule.says and row.get(rule.says) else {}), None)
    visible = row | dict.fromkeys(rule.always.split())
    return _PublicRow(row, visible, visible)


def _follow_the_rated(public: Mapping[str, list[_PublicRow]]) -> None:
    """Empty the cells of the leaderboard that repeat clinicians' ratings of few patients."""
    # models whose corrected rate is hidden
    corrected = {"measure": CALIBRATED, "source": SCORE, "value_of_slice": RATERS[False]}
    rated = {
        (one.row["benchmark"], one.row["model"])
        for one in public["calibrated"]
        if one.visible is None and corrected.items() <= one.row.items()
    }
    for one in public["leaderboard"]:
        if (one.row["benchmark"], one.row["model"]) in rated:
            _empty(one, CORRECTED)


def _follow_the_differential(public: Mapping[str, list[_PublicRow]]) -> None:
    """Empty the cells of the leaderboard about the items of a ranked differential where their rate in topic `rates` is hidden."""
    hidden = {
        (one.row["benchmark"], one.row["model"], one.row["measure"])
        for one in public["rates"]
        if one.row["slice"] == RANKED_DIFFERENTIAL and not one.visible
    }
    for one in public["leaderboard"]:
        for measure, columns in OF_DIFFERENTIAL.items():
            if (one.row["benchmark"], one.row["model"], measure) in hidden:
                _empty(one, columns)


def _empty(one: _PublicRow, columns: Sequence[str]) -> None:
    for row in (one.after, one.visible):
        if row is not None:
            row.update(dict.fromkeys(column for column in columns if column in row))


def _count_filled(row: Cells) -> int:
    return sum(value not in (None, "") for value in row.values())


def _count_shown(one: _PublicRow) -> int:
    return 0 if one.after is None else sum(value not in (None, "") and one.after.get(column) == value for column, value in one.row.items())


RANKS = ("tier", "rank", "rank_low", "rank_high")
"""Columns that are hidden with the rates that they follow from."""


def without_few(shown: PublicTables, tables: Iterable[Table]) -> PublicTables:
    """Empty the numbers of marked rows: a public report shows no rate of fewer than five patients, whoever they are.

    Sentences see no such row, and nothing of a benchmark that has no more patients.
    """
    shown = replace(shown, tables=_without_few_differentials(shown.tables), visible=_without_few_differentials(shown.visible))
    hidden = {*RANKS, "answer"}
    numbers = {table.name: [name for name, kind in table.columns.items() if kind == "float" or name in hidden] for table in tables}
    whole = {row["benchmark"] for row in shown.tables["leaderboard"] if row.get("few_patients")}
    study = shown.study
    return replace(
        shown,
        tables={
            name: [
                row | dict.fromkeys(column for column in numbers[name] if column in row) if row.get("few_patients") else row for row in rows
            ]
            for name, rows in shown.tables.items()
        },
        visible={name: [row for row in rows if not row.get("few_patients")] for name, rows in shown.visible.items()},
        study=replace(study, benchmarks={name: one for name, one in study.benchmarks.items() if name not in whole}),
        few=tuple(one.config.title for name, one in study.benchmarks.items() if name in whole),
    )


def _without_few_differentials(tables: Tables) -> Tables:
    """Empty the cells of the leaderboard about the items of a ranked differential if these are of fewer than five patients."""
    cells = [column for columns in OF_DIFFERENTIAL.values() for column in columns]
    board = [row | dict.fromkeys(cells) if 0 < (row.get("differential_patients") or 0) < FEWEST else row for row in tables["leaderboard"]]
    return {**tables, "leaderboard": board}
