"""`agreement.csv`: how far the raters of a round agree before anything is adjudicated, with intervals over patients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.agreement import (
    ac2,
    coincidences,
    complete_rows,
    icc,
    ordinal_alpha,
    paired,
    pairs_of,
    quadratic_kappa,
    shares_of_pairs,
    weighted_shares,
)
from neuralmedbench.estimates.intervals import Floats, IntervalSettings, cluster_sums, percentile_interval, resampling_weights
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.tables.clinicians.raters import Panel, panels, rated_rounds
from neuralmedbench.tables.declare import Suppression, Table, of_study
from neuralmedbench.tables.rows import Cells, ResultRow
from neuralmedbench.tables.study import Study

ALL, PAIR, SELF = "all", "pair", "self"
"""Between whom: all raters of the round, two of them, or a rater's first and second showing."""

MOST_UNDEFINED = 0.1
"""Above this share of resamples without a value there is no interval: what is left is no sample of the coefficient."""

CHUNK = 64
"""Pairs of raters that are resampled at once: 50 raters make 1,225 pairs, which together would take gigabytes."""

Coefficients = Callable[[Floats], Mapping[str, Floats]]


@dataclass(frozen=True, kw_only=True)
class AgreementRow(ResultRow):
    """One coefficient of agreement on one axis of one round."""

    round_id: str
    simulated: bool | None = None
    axis: str | None = None
    between: str | None = None
    rater_a: str | None = None
    rater_b: str | None = None
    measure: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n_responses: int | None = None
    n_patients: int | None = None
    n_raters: int | None = None
    undefined: int | None = None
    note: str | None = None


def agreement_rows(study: Study) -> list[AgreementRow]:
    """Rows of `agreement.csv`.

    By round, axis, and between whom; simulated raters in rows of their own.
    """
    rows = []
    for (round_id, simulated), ratings in rated_rounds(study).items():
        for panel in panels(ratings, study):
            rows += [
                AgreementRow(round_id=round_id, simulated=simulated, axis=panel.axis, **row) for row in _axis_rows(panel, study.settings)
            ]
    return rows


def _axis_rows(panel: Panel, settings: IntervalSettings) -> Iterator[Cells]:
    yield from _estimates(panel, settings)
    if panel.axis.startswith(ERROR_AXIS):
        return  # of so many rare marks pairs of raters tell little
    pairs = pairs_of(len(panel.raters))
    if len(panel.raters) > 1:
        one, other = (panel.first[:, [pair[side] for pair in pairs]] for side in (0, 1))
        names = [{"between": PAIR, "rater_a": panel.raters[a], "rater_b": panel.raters[b], "n_raters": 2} for a, b in pairs]
        yield from _pair_rows(panel, paired(one, other), names, settings, _of_pair)
    again = paired(panel.first, panel.second)
    if again[..., 0].any():
        names = [{"between": SELF, "rater_a": rater, "n_raters": 1} for rater in panel.raters]
        yield from _pair_rows(panel, again, names, settings, _of_showings)
        pooled = again.sum(axis=1, keepdims=True)
        yield from _pair_rows(panel, pooled, [{"between": SELF, "n_raters": int(again[..., 0].any(axis=0).sum())}], settings, _of_showings)


def _estimates(panel: Panel, settings: IntervalSettings) -> Iterator[Cells]:
    """Coefficients of all raters together, over the answers that two of them rated."""
    known = ~np.isnan(panel.first)
    shared, active = known.sum(axis=1) > 1, known.any(axis=0)
    answers, patients, raters = panel.first[shared][:, active], panel.patients[shared], int(active.sum())
    head = {"between": ALL, "n_raters": raters}
    wanted = ("alpha_ordinal", "ac2_quadratic", "icc_2_1", "icc_2_k", "same", "within_one")
    few = {0: "no answer was rated by two", 1: "one answer was rated by two"}
    if note := "fewer than two raters gave a value" if raters < 2 else few.get(len(answers), ""):
        for measure in wanted:
            yield head | {"measure": measure, "n_responses": len(answers), "n_patients": len(np.unique(patients)), "note": note}
        return
    scale = panel.scale
    one, other = (answers[:, [pair[side] for pair in pairs_of(raters)]] for side in (0, 1))
    parts = [coincidences(answers, scale), weighted_shares(answers, scale), complete_rows(answers), paired(one, other).sum(axis=1)]
    edges = np.cumsum([part.shape[1] for part in parts])[:-1]

    def coefficients(sums: Floats) -> dict[str, Floats]:
        table, shares, rows, pairs = np.split(sums, edges, axis=-1)
        found = (ordinal_alpha(table), ac2(shares, scale), *icc(rows), *shares_of_pairs(pairs))
        return dict(zip(wanted, found, strict=True))

    complete = parts[2][:, 0] > 0
    counted = {name: complete if name.startswith("icc") else np.ones(len(answers), dtype=bool) for name in wanted}
    sums = cluster_sums(np.concatenate(parts, axis=1), patients, panel.clusters)
    points, draws = _drawn(sums, coefficients, settings)
    for measure in wanted:
        count = {"n_responses": int(counted[measure].sum()), "n_patients": len(np.unique(patients[counted[measure]]))}
        reason = "no two answers were rated by all raters" if measure.startswith("icc") and complete.sum() < 2 else ""
        yield head | count | _row(measure, float(points[measure]), draws[measure], settings, patients=count["n_patients"], reason=reason)


def _of_pair(sums: Floats) -> dict[str, Floats]:
    """Give the coefficients of two raters: kappa, ICC(2,1) and the share within one point."""
    known, one, other, squares, apart = (sums[..., place] for place in range(5))
    # of two raters the square of an answer's sum is twice its sum of squares less the squared difference
    return {
        "kappa_quadratic": quadratic_kappa(sums),
        "icc_2_1": icc(np.stack([known, 2 * squares - apart, squares, one, other], axis=-1))[0],
        "within_one": shares_of_pairs(sums)[1],
    }


def _of_showings(sums: Floats) -> dict[str, Floats]:
    same, near = shares_of_pairs(sums)
    return {"kappa_quadratic": quadratic_kappa(sums), "same": same, "within_one": near}


def _pair_rows(panel: Panel, parts: Floats, names: list[Cells], settings: IntervalSettings, coefficients: Coefficients) -> Iterator[Cells]:
    """Rows of many pairs; `parts` has the shape (answers, pairs, 7)."""
    for start in range(0, len(names), CHUNK):
        some = parts[:, start : start + CHUNK]
        flat = cluster_sums(some.reshape(len(some), -1), panel.patients, panel.clusters)
        points, draws = _drawn(flat, _of_shape(coefficients, some.shape[1:]), settings)
        for place, name in enumerate(names[start : start + CHUNK]):
            known = some[:, place, 0] > 0
            answers, patients = int(some[:, place, 0].sum()), len(np.unique(panel.patients[known]))
            for measure, values in points.items():
                row = _row(
                    measure, float(values[place]), draws[measure][:, place], settings, patients=patients,
                    reason="" if answers > 1 else "fewer than two answers",
                )  # fmt: skip
                yield name | {"n_responses": answers, "n_patients": patients} | row


def _of_shape(coefficients: Coefficients, shape: tuple[int, ...]) -> Coefficients:
    """Take sums in one row a patient to the shape (pairs, 7) that the coefficients of pairs read."""
    return lambda sums: coefficients(sums.reshape(*sums.shape[:-1], *shape))


def _drawn(sums: Floats, coefficients: Coefficients, settings: IntervalSettings) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
    """Coefficients of all patients, and of every resample of them: shapes (...) and (resamples, ...)."""
    weights = resampling_weights(len(sums), settings.resamples, settings.seed)
    return coefficients(sums.sum(axis=0)), coefficients(weights @ sums)


def _row(measure: str, value: float, draws: Floats, settings: IntervalSettings, *, patients: int, reason: str) -> Cells:
    """Give one estimate; resamples without a value are counted, and too many of them leave no interval."""
    if reason or np.isnan(value):
        return {"measure": measure, "note": reason or "every rating is the same"}
    undefined = int(np.isnan(draws).sum())
    notes = [f"{undefined} of {len(draws)} resamples have no value"] if undefined else []
    low, high = None, None
    if undefined > MOST_UNDEFINED * len(draws):
        notes.append("no interval")
    else:
        low, high = percentile_interval(draws, patients, settings.confidence)
        if low is None:
            notes.append("no interval: one patient" if patients < 2 else "no interval: nothing varies over patients")
    return {"measure": measure, "value": value, "low": low, "high": high, "undefined": undefined, "note": "; ".join(notes)}


TABLE = Table(
    name="agreement",
    row=AgreementRow,
    rows=of_study(agreement_rows),
    suppression=Suppression("round_id simulated axis between rater_a rater_b measure note"),
)
