"""Ratings as arrays: one panel a round, kind of raters and axis, answers by raters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neuralmedbench.estimates.intervals import Floats, Ints
from neuralmedbench.ratings.form import RatingForm
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.scores import Rating, RatingPart
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.tables.study import Study

Named = tuple[str, bool]
"""A round, and whether its raters are simulated: the two never mix."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Values of one axis before any adjudication; an answer has a row when a rater was shown it, a value or not.

    Attributes
    ----------
    raters : tuple of str
        Columns: all raters of the round, by name.
    first, second : ndarray of float, shape (answers, raters)
        Values of the first and of the second showing; NaN where there is none.
    unjudged : ndarray of int, shape (raters,)
        Answers that a rater saw and could not judge on this axis.
    patients : ndarray of int, shape (answers,)
        Patient of each answer, numbered over the whole round.
    clusters : int
        Patients of the round.
    scale : ndarray of float, shape (points,)
        Points of the axis on the form, ascending.
    """

    axis: str
    raters: tuple[str, ...]
    first: Floats
    second: Floats
    unjudged: Ints
    patients: Ints
    clusters: int
    scale: Floats


def rated_rounds(study: Study) -> dict[Named, list[Rating]]:
    """Give the ratings by round and kind of raters, without those of adjudicators."""
    groups: dict[Named, list[Rating]] = defaultdict(list)
    for row in study.ratings:
        if not row.adjudicated:
            groups[row.round_id, row.simulated].append(row)
    return dict(sorted(groups.items()))


def panels(ratings: Sequence[Rating], study: Study) -> Iterator[Panel]:
    """Give the panels of one round: the axes of the form that were rated, then the errors that somebody marked.

    Parameters
    ----------
    ratings : sequence of Rating
        One round and kind of raters, as :func:`rated_rounds` gives it; controls are passed over.
    study : Study
        The run: patients and form.
    """
    drawn = [row for row in ratings if row.part in {RatingPart.SAMPLE, RatingPart.AGAIN}]
    places = [response_key(row) for row in drawn]
    keys, raters, axes = sorted(set(places)), sorted({row.rater_id for row in drawn}), sorted({row.axis for row in drawn})
    row_of, column_of, axis_of = ({name: place for place, name in enumerate(names)} for names in (keys, raters, axes))
    shape = (len(axes), 2, len(keys), len(raters))
    values, unjudged = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    for row, key in zip(drawn, places, strict=True):
        place = (axis_of[row.axis], int(row.part is RatingPart.AGAIN), row_of[key], column_of[row.rater_id])
        if row.value is None:
            unjudged[place] = True
        else:
            values[place] = row.value
    judged = ~np.isnan(values).all(axis=0)
    patient_of = {item.item_id: item.patient_id for benchmark in study.benchmarks.values() for item in benchmark.items}
    names, patients = np.unique(np.array([patient_of.get(key[0], key[0]) for key in keys], dtype=str), return_inverse=True)
    for axis in (*[axis for axis in study.form.axes if axis in axis_of], *[axis for axis in axes if axis not in study.form.axes]):
        given = values[axis_of[axis]]
        if axis.startswith(ERROR_AXIS):  # who judged the answer and marked nothing says that the error is absent
            given = np.where(np.isnan(given) & judged, 0.0, given)
        yield Panel(
            axis=axis,
            raters=tuple(raters),
            first=given[0],
            second=given[1],
            unjudged=unjudged[axis_of[axis]][0].sum(axis=0),
            patients=patients.astype(np.int64).reshape(-1),
            clusters=len(names),
            scale=scale_of(axis, study.form, given),
        )


def scale_of(axis: str, form: RatingForm, values: Floats) -> Floats:
    """Points of an axis: those of the form, 0 to 2 of an error; of an axis that the form has no more, whole numbers over what was given."""
    if axis in form.axes:
        low, high = form.axes[axis].lowest, form.axes[axis].highest
    elif axis.startswith(ERROR_AXIS):
        low, high = 0, 2
    else:
        known = values[~np.isnan(values)]
        low, high = (int(known.min()), int(known.max())) if known.size else (0, 1)
    return np.arange(low, max(high, low + 1) + 1, dtype=np.float64)
