"""Right diagnoses that count only with the right side, region, picture or box: `evidence.csv`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import Floats, rate_interval
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.words import listing
from neuralmedbench.scoring.evidence import ASKED
from neuralmedbench.tables.declare import MODEL, Suppression, Table, of_study
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import FULL, Key, Outcomes, headline
from neuralmedbench.tables.rows import Cells, ModelRow, Tables, with_ends
from neuralmedbench.tables.study import BenchmarkStudy, Study
from neuralmedbench.tables.words import Takeaway, begun, largest, rows_of_best, share, size_of, value_share

PLAIN, ALL_OF_IT = "plain", "all"
KNOWN = "evidence known"
"""Label of the items that the rows are about, for suppression."""

IMPLIED = ("point", "box_0.3")
"""Kinds that a right box at the larger overlap mostly implies: no sentence lists them beside it."""

WORDS = {
    "side": "side",
    "region": "region",
    "slice": "picture",
    "point": "point",
    "box_0.3": "box (overlap 0.3)",
    "box_0.5": "box (overlap 0.5)",
}


@dataclass(frozen=True, kw_only=True)
class EvidenceRow(ModelRow):
    """One model, and one kind of evidence that a right diagnosis needs to count."""

    arm: str = ""
    evidence: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    unread: int | None = None
    n_answers: int | None = None
    n_items: int | None = None
    n_patients: int | None = None
    note: str | None = None


def evidence_rows(study: Study) -> list[EvidenceRow]:
    """Rows of `evidence.csv`: arm full, and arms that show the same in another layout; strategy direct.

    All rows of a benchmark are over the same items: those with a ranked differential for which the reference knows every kind of evidence
    that the answer form asks for and that it knows of any item. `plain` is pass@1; the others count an answer only if the evidence is right
    too, `all` only if all of it is. The difference is that to `plain`, by item, so that it is never above 0: its interval is that of the
    share of the answers that lose their credit.
    """
    return [EvidenceRow(benchmark=benchmark.name, **row) for benchmark in study.benchmarks.values() for row in _rows(study, benchmark)]


def evidence_items(benchmark: BenchmarkStudy, arm: str = FULL) -> tuple[list[str], Mask]:
    """Return the kinds of evidence that are asked for and known of an item, and a mask of the items of which an arm shows all of them."""
    outcomes = benchmark.outcomes

    def known_under(name: str) -> dict[str, frozenset[str]]:
        rows = [row for scores in benchmark.scores.values() for row in headline(scores, name) if row.evidence]
        # what the reference knows is the same for all answers to an item
        return {row.item_id: frozenset(row.evidence or ()) for row in rows}

    full = known_under(FULL)
    known = full if arm == FULL else known_under(arm)
    kinds = [kind for kind in ASKED[benchmark.config.answer_form] if any(kind in own for own in full.values())]
    of_items = [bool(kinds) and set(kinds) <= known.get(item.item_id, frozenset()) for item in outcomes.items]
    return kinds, np.array(of_items, dtype=bool) & outcomes.ranked


def _rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[Cells]:
    for arm in (FULL, *benchmark.layouts):
        yield from _rows_under(study, benchmark, str(arm))


def _rows_under(study: Study, benchmark: BenchmarkStudy, arm: str) -> Iterator[Cells]:
    outcomes = benchmark.outcomes
    kinds, mask = evidence_items(benchmark, arm)
    if not mask.any():
        return
    unknown = [WORDS[kind] for kind in ASKED[benchmark.config.answer_form] if kind not in kinds]
    note = f"not known of any item: {listing(unknown)}" if unknown else ""
    for model in study.models:
        key = Key(model, arm)
        if key not in outcomes.counts:
            continue
        by = outcomes.by_patient(study.settings, key)
        credited = _shares_with_evidence(benchmark, key, kinds, mask)
        plain = credited[PLAIN]
        there = ~np.isnan(plain)
        if not there.any():
            continue
        sizes: Cells = {
            "unread": _unread(benchmark, key, outcomes, there),
            "n_answers": int(outcomes.counts[key].samples[there].sum()),
            "n_items": int(there.sum()),
            "n_patients": len(set(outcomes.patients[there].tolist())),
            "note": note,
        }
        for name, values in credited.items():
            rate, lost = rate_interval(values, by), rate_interval(plain - values, by)
            row: Cells = {"model": model, "arm": arm, "evidence": name, "value": rate.value, "low": rate.low, "high": rate.high}
            if name != PLAIN:
                ends = (None if end is None else 0.0 - end for end in (lost.value, lost.high, lost.low))
                row |= with_ends({"difference": tuple(ends)})
            yield row | sizes


def _shares_with_evidence(benchmark: BenchmarkStudy, key: Key, kinds: list[str], mask: Mask) -> dict[str, Floats]:
    """Return the share of an item's answers that count, by kind of evidence; shape (items,), NaN outside the common items."""
    outcomes = benchmark.outcomes
    plain = np.where(mask, outcomes.pass1_of_complete_items(key), np.nan)
    place = {item.item_id: index for index, item in enumerate(outcomes.items)}
    needed: dict[str, tuple[str, ...]] = {kind: (kind,) for kind in kinds}
    if len(kinds) > 1:
        needed[ALL_OF_IT] = tuple(kinds)
    sums = {name: np.zeros(len(outcomes.items)) for name in needed}
    for row in headline(benchmark.scores[key.model], key.arm):
        if row.passed and row.evidence is not None and row.item_id in place:
            for name, parts in needed.items():
                sums[name][place[row.item_id]] += all(row.evidence.get(part, False) for part in parts)
    return {PLAIN: plain} | {name: np.where(np.isnan(plain), np.nan, outcomes.counts[key].mean_of(total)) for name, total in sums.items()}


def _unread(benchmark: BenchmarkStudy, key: Key, outcomes: Outcomes, there: Mask) -> int:
    items = {item.item_id for item, used in zip(outcomes.items, there, strict=True) if used}
    rows = headline(benchmark.scores[key.model], key.arm)
    return sum(row.item_id in items and row.state == ResponseState.OK and bool(row.evidence_unread) for row in rows)


def evidence_takeaway(study: Study, tables: Tables) -> Takeaway:
    """State what is left of the best model's pass@1 where the evidence must be right too."""
    parts, used = [], list[Cells]()
    for name, benchmark in study.benchmarks.items():
        own = {row["evidence"]: row for row in rows_of_best(tables["evidence"], tables, name) if row["arm"] == FULL}
        plain, kinds = own.get(PLAIN), [kind for kind in own if kind not in (PLAIN, ALL_OF_IT)]
        whole = own.get(ALL_OF_IT) or (own[kinds[0]] if kinds else None)
        if not (plain and whole) or plain["value"] is None or whole["value"] is None:
            continue
        used.append(plain)
        needed = listing([WORDS[kind] for kind in kinds if kind not in IMPLIED or kind == kinds[-1]])
        ends = {"p": "difference", "p_low": "difference_high", "p_high": "difference_low"}
        lost = share({end: None if whole[name] is None else -whole[name] for end, name in ends.items()}, "p")
        parts.append(
            f"{benchmark.config.title}: {study.models[plain['model']].title} passes {value_share(plain)} of"
            f" {size_of(plain)}; if the {needed} must be right too, {value_share(whole)}:"
            f" {lost} of the answers lose their credit."
        )
    if parts:
        return Takeaway(begun(" ".join(parts), study), largest(used))
    nothing = "No item with a ranked differential has a known side or place that answers were asked for."
    return Takeaway("No ranked model answered such an item." if tables["evidence"] else nothing, largest(tables["evidence"]))


TABLE = Table(
    name="evidence",
    row=EvidenceRow,
    rows=of_study(evidence_rows),
    suppression=Suppression(f"{MODEL} arm evidence", labels=lambda row: [(KNOWN, "")]),
    takeaways={"evidence": evidence_takeaway},
)
