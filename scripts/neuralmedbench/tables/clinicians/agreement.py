"""Agreement between the raters of a round before adjudication, and reliability of each of them: `agreement.csv`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from neuralmedbench.estimates.agreement import RaterTerms, pair_coefficients, pair_terms
from neuralmedbench.estimates.concordance import MOST_UNDEFINED
from neuralmedbench.estimates.intervals import ByPatient, Floats, Ints
from neuralmedbench.ratings.form import RatingForm
from neuralmedbench.records.scores import Rating, RatingPart, response_key
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.tables.declare import Cells, Count, Flag, Number, ResultRow, Suppression, Table, Text
from neuralmedbench.tables.study import Study

RoundKey = tuple[str, bool]
"""A round, and True for its simulated raters, who are never mixed with clinicians."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Values of one axis before any adjudication; every answer that a rater was shown has a row, with or without a value.

    Attributes
    ----------
    raters : tuple of str
        Columns: all raters of the round, by name.
    first, second : ndarray of float, shape (answers, raters)
        Values of the first and of the second showing; NaN where there is none.
    unjudged : ndarray of int, shape (raters,)
        Number of answers that a rater saw and could not judge on this axis.
    by : ByPatient
        Patients of the answers: all patients of the round, on every axis.
    scale : ndarray of float, shape (points,)
        Points of the axis on the form, ascending.
    """

    axis: str
    raters: tuple[str, ...]
    first: Floats
    second: Floats
    unjudged: Ints
    by: ByPatient
    scale: Floats


def rated_rounds(study: Study) -> dict[RoundKey, list[Rating]]:
    """Return the ratings by round and kind of raters, without those of adjudicators."""
    groups: dict[RoundKey, list[Rating]] = defaultdict(list)
    for row in study.ratings:
        if not row.adjudicated:
            groups[row.round_id, row.simulated].append(row)
    return dict(sorted(groups.items()))


def panels(ratings: Sequence[Rating], study: Study) -> Iterator[Panel]:
    """Yield the panels of one round: the rated axes of the form, then the errors that at least one rater marked."""
    drawn = [row for row in ratings if row.part in {RatingPart.SAMPLE, RatingPart.AGAIN}]
    places = [response_key(row) for row in drawn]
    keys, raters, axes = sorted(set(places)), sorted({row.rater_id for row in drawn}), sorted({row.axis for row in drawn})
    # fill one array for all axes: axis, showing, answer, rater
    row_of, column_of, axis_of = ({name: place for place, name in enumerate(names)} for names in (keys, raters, axes))
    shape = (len(axes), 2, len(keys), len(raters))
    values, unjudged = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    for row, key in zip(drawn, places, strict=True):
        place = (axis_of[row.axis], int(row.part is RatingPart.AGAIN), row_of[key], column_of[row.rater_id])
        if row.value is None:
            unjudged[place] = True
        else:
            values[place] = row.value
    # answers that a rater judged on any axis
    judged = ~np.isnan(values).all(axis=0)
    patient_of = {item.item_id: item.patient_id for benchmark in study.benchmarks.values() for item in benchmark.items}
    by = ByPatient([patient_of.get(key[0], key[0]) for key in keys], study.settings)
    for axis in (*[axis for axis in study.form.axes if axis in axis_of], *[axis for axis in axes if axis not in study.form.axes]):
        given = values[axis_of[axis]]
        if axis.startswith(ERROR_AXIS):  # a rater who judged the answer and marked nothing reports that the error is absent
            given = np.where(np.isnan(given) & judged, 0.0, given)
        yield Panel(
            axis=axis,
            raters=tuple(raters),
            first=given[0],
            second=given[1],
            unjudged=unjudged[axis_of[axis]][0].sum(axis=0),
            by=by,
            scale=scale_of(axis, study.form, given),
        )


def scale_of(axis: str, form: RatingForm, values: Floats) -> Floats:
    """Return the points of an axis: those of the form; 0 to 2 for an error; the range of the given values if the form no longer has the axis."""
    if axis in form.axes:
        low, high = form.axes[axis].lowest, form.axes[axis].highest
    elif axis.startswith(ERROR_AXIS):
        low, high = 0, 2
    else:
        known = values[~np.isnan(values)]
        low, high = (int(known.min()), int(known.max())) if known.size else (0, 1)
    return np.arange(low, max(high, low + 1) + 1, dtype=np.float64)


FLOOR_S = 10.0
"""Seconds: the least time to look at the pictures, read an answer and judge it on every line. (Our rule.)"""

MOST_BELOW, TOO_FAST = 0.1, "too fast"
"""A rater with more than this share of answers below the floor is marked. (Our rule.)"""


def _of_rater(rater: str, ratings: Sequence[Rating], study: Study) -> Iterator[Cells]:
    """Yield the rows of a rater over all axes."""
    seconds: dict[object, float | None] = {}
    judged: dict[object, bool] = {}
    for row in ratings:
        shown = (response_key(row), row.part, row.text_sha256)
        seconds[shown] = row.seconds
        if row.part is RatingPart.SAMPLE:
            judged[shown] = judged.get(shown, False) or row.value is not None
    head = {"between": RATER, "rater_a": rater, "n_raters": 1}
    yield head | _share("judged", judged.values())
    for measure, met in _controls(ratings, study).items():
        yield head | _share(measure, met)
    times = np.array([value for value in seconds.values() if value is not None])
    if times.size:
        # answers that were rated faster than anyone can read them
        below = _share("below_floor", times < FLOOR_S)
        yield head | below | {"note": TOO_FAST if below["value"] > MOST_BELOW else ""}
        yield head | {"measure": "median_seconds", "value": float(np.median(times)), "n_responses": times.size}


def _share(measure: str, met: Iterable[bool]) -> Cells:
    values = list(met)
    return {"measure": measure, "value": float(np.mean(values)) if values else None, "n_responses": len(values)}


def _controls(ratings: Sequence[Rating], study: Study) -> dict[str, list[bool]]:
    """Return for every right control whether it passes, and for every wrong one whether it does not, on the axis that decides a pass."""
    rule = study.form.passes
    if rule is None:
        return {}
    on_axis = [row for row in ratings if row.axis == rule.axis]
    right, wrong = ([row.value for row in on_axis if row.part is part] for part in (RatingPart.CONTROL_RIGHT, RatingPart.CONTROL_WRONG))
    return {
        "controls_right": [value is not None and value >= rule.from_ for value in right],
        "controls_wrong": [value is not None and value < rule.from_ for value in wrong],
    }


def _severities(panel: Panel) -> Iterator[Cells]:
    """Yield the mean distance of each rater from the mean of the other raters of the same answers, in points; positive: higher values."""
    distance = _from_others(panel.first)
    shared = ~np.isnan(distance)
    draws = panel.by.resampled_means(distance)
    for place, rater in enumerate(panel.raters):
        answers, patients = int(shared[:, place].sum()), panel.by.at(shared[:, place]).clusters
        if answers:
            low, high = panel.by.percentiles(draws[:, place], patients)
            value = float(distance[shared[:, place], place].mean())
            head = {"between": RATER, "rater_a": rater, "n_raters": 1, "measure": "severity"}
            yield head | {"value": value, "low": low, "high": high, "n_responses": answers, "n_patients": patients}


def _from_others(values: Floats) -> Floats:
    """Return the distance of each value from the mean of the answer's other raters: shape (answers, raters), NaN without another rater."""
    known = ~np.isnan(values)
    others = known.sum(axis=1, keepdims=True) - known
    total = np.where(known, values, 0.0).sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known & (others > 0), values - (total - values) / others, np.nan)


ALL, PAIR, SELF, RATER = "all", "pair", "self", "rater"
"""Values of the column `between`: all raters of the round, two of them, a rater's first and second showing, or one rater."""

CHUNK = 64
"""Pairs of raters that are resampled at once: 50 raters make 1,225 pairs, which together would take gigabytes."""

OF_PAIRS, OF_SHOWINGS = ("kappa_quadratic", "icc_2_1", "within_one"), ("kappa_quadratic", "same", "within_one")
"""Coefficients of two raters, and of a rater's two showings."""


@dataclass(frozen=True, kw_only=True)
class AgreementRow(ResultRow):
    """One coefficient of agreement on one axis of one round, or one number of a rater, on one axis or over all."""

    round_id: str
    simulated: Flag = None
    axis: Text = None
    between: Text = None
    rater_a: Text = None
    rater_b: Text = None
    measure: str
    value: Number = None
    low: Number = None
    high: Number = None
    n_responses: Count = None
    n_patients: Count = None
    n_raters: Count = None
    undefined: Count = None
    note: Text = None


def agreement_rows(study: Study) -> list[AgreementRow]:
    """Rows of `agreement.csv`.

    By round, axis and `between`; simulated raters have separate rows. Controls and adjudicated values are left out, and second showings
    count only for the agreement of a rater with himself. Stale ratings count: the raters of an answer saw the same text. Of a `rater` there
    are the shares of answers that he `judged` and of controls that pass, or do not, as they should, the share of answers `below_floor` and
    `median_seconds`, which say nothing of a patient; and `severity` by axis of the form.
    """
    rows = []
    for (round_id, simulated), ratings in rated_rounds(study).items():
        head: Cells = {"round_id": round_id, "simulated": simulated}
        for panel in panels(ratings, study):
            rows += [AgreementRow(**head, axis=panel.axis, **row) for row in _agreement_of_axis(panel)]
            if panel.axis in study.form.axes:
                rows += [AgreementRow(**head, axis=panel.axis, **row) for row in _severities(panel)]
        for rater in sorted({row.rater_id for row in ratings}):
            of_rater = _of_rater(rater, [row for row in ratings if row.rater_id == rater], study)
            rows += [AgreementRow(**head, axis="", **row) for row in of_rater]
    return rows


def _agreement_of_axis(panel: Panel) -> Iterator[Cells]:
    yield from _of_all_raters(panel)
    if panel.axis.startswith(ERROR_AXIS):
        return  # errors are marked too rarely for pairs of raters
    if len(panel.raters) > 1:
        pairs = list(combinations(range(len(panel.raters)), 2))
        one, other = (panel.first[:, [pair[side] for pair in pairs]] for side in (0, 1))
        names = [{"between": PAIR, "rater_a": panel.raters[a], "rater_b": panel.raters[b], "n_raters": 2} for a, b in pairs]
        yield from _pair_rows(panel, pair_terms(one, other), names, OF_PAIRS)
    again = pair_terms(panel.first, panel.second)
    if again[..., 0].any():
        names = [{"between": SELF, "rater_a": rater, "n_raters": 1} for rater in panel.raters]
        yield from _pair_rows(panel, again, names, OF_SHOWINGS)
        # all raters together, as single raters repeat few answers
        pooled = again.sum(axis=1, keepdims=True)
        yield from _pair_rows(panel, pooled, [{"between": SELF, "n_raters": int(again[..., 0].any(axis=0).sum())}], OF_SHOWINGS)


def _of_all_raters(panel: Panel) -> Iterator[Cells]:
    """Yield the coefficients of all raters together, over the answers that at least two of them rated."""
    known = ~np.isnan(panel.first)
    shared, active = known.sum(axis=1) > 1, known.any(axis=0)
    answers, patients, raters = panel.first[shared][:, active], panel.by.codes[shared], int(active.sum())
    head = {"between": ALL, "n_raters": raters}
    few = {0: "no answer was rated by two", 1: "one answer was rated by two"}
    if note := "fewer than two raters gave a value" if raters < 2 else few.get(len(answers), ""):
        for measure in RaterTerms.COEFFICIENTS:
            yield head | {"measure": measure, "n_responses": len(answers), "n_patients": len(np.unique(patients)), "note": note}
        return
    # resamples are rows of weights times the sums per patient
    made = RaterTerms(answers, panel.scale)
    sums = panel.by.sums(made.terms, shared)
    points, draws = made.coefficients(sums.sum(axis=0)), made.coefficients(panel.by.weights @ sums)
    for measure in RaterTerms.COEFFICIENTS:
        counted = made.complete if measure.startswith("icc") else np.ones(len(answers), dtype=bool)
        count = {"n_responses": int(counted.sum()), "n_patients": len(np.unique(patients[counted]))}
        reason = "no two answers were rated by all raters" if measure.startswith("icc") and made.complete.sum() < 2 else ""
        row = _coefficient_row(panel.by, measure, float(points[measure]), draws[measure], patients=count["n_patients"], reason=reason)
        yield head | count | row


def _pair_rows(panel: Panel, terms: Floats, names: list[Cells], wanted: tuple[str, ...]) -> Iterator[Cells]:
    """Yield the wanted coefficients of many pairs; `terms` has the shape (answers, pairs, 7)."""
    for start in range(0, len(names), CHUNK):
        some = terms[:, start : start + CHUNK]
        sums = panel.by.sums(some.reshape(len(some), -1))
        drawn = panel.by.weights @ sums
        points = pair_coefficients(sums.sum(axis=0).reshape(some.shape[1:]))
        draws = pair_coefficients(drawn.reshape(-1, *some.shape[1:]))
        for place, name in enumerate(names[start : start + CHUNK]):
            known = some[:, place, 0] > 0
            answers, patients = int(some[:, place, 0].sum()), panel.by.at(known).clusters
            reason = "" if answers > 1 else "fewer than two answers"
            for measure in wanted:
                value, draw = float(points[measure][place]), draws[measure][:, place]
                row = _coefficient_row(panel.by, measure, value, draw, patients=patients, reason=reason)
                yield name | {"n_responses": answers, "n_patients": patients} | row


def _coefficient_row(by: ByPatient, measure: str, value: float, draws: Floats, *, patients: int, reason: str) -> Cells:
    """Return one estimate; resamples without a value are counted, and too many of them leave no interval."""
    if reason or np.isnan(value):
        return {"measure": measure, "note": reason or "every rating is the same"}
    undefined = int(np.isnan(draws).sum())
    notes = [f"{undefined} of {len(draws)} resamples have no value"] if undefined else []
    low, high = None, None
    if undefined > MOST_UNDEFINED * len(draws):
        notes.append("no interval")
    else:
        low, high = by.percentiles(draws, patients)
        if low is None:
            notes.append("no interval: one patient" if patients < 2 else "no interval: nothing varies over patients")
    return {"measure": measure, "value": value, "low": low, "high": high, "undefined": undefined, "note": "; ".join(notes)}


AGREEMENT = Table(
    name="agreement",
    row=AgreementRow,
    rows=agreement_rows,
    suppression=Suppression("round_id simulated axis between rater_a rater_b measure note"),
)
