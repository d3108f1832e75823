"""Rivals of a reference: the other diagnoses among which an open question is asked as a choice.

Every case lends its reference once in each of four rounds. So each diagnosis is offered five times as
often as it is right, and nothing but the case says which of five is the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.items import Family, Gold, Item, Runner
from neuralmedbench.records.vocabulary import Vocabulary, normal_form

ROUNDS = 4
"""Rivals of a case."""

TRIES = 50
"""Draws of the costs; a later round may have no place left that an earlier draw would have kept."""

Apart = npt.NDArray[np.bool_]


def add_rivals(built: BenchmarkItems, vocabulary: Vocabulary) -> tuple[BenchmarkItems, str]:
    """Give the items that ask for a diagnosis their rivals; rivals that a data set names itself stay.

    Parameters
    ----------
    built : BenchmarkItems
        Items and gold.
    vocabulary : Vocabulary
        Tells which diagnoses are near each other.

    Returns
    -------
    BenchmarkItems
        Each item with five names in alphabetical order, or none.
    str
        Why there are none; else empty.
    """
    gold = {row.item_id: row for row in built.gold if row.answer.strip()}
    if any(item.rivals for item in built.items):
        return built, ""
    asked = sorted((item for item in built.items if _asks_diagnosis(item) and item.item_id in gold), key=lambda item: item.item_id)
    references = [gold[item.item_id] for item in asked]
    kinds = [kind_of(row, vocabulary) for row in references]
    near = nearness(kinds, [item.patient_id for item in asked], vocabulary)
    seed = int(sha256_of_value([item.item_id for item in asked])[:16], 16)
    places = rival_places(near, seed)
    if places is None:
        return built, _reason(kinds)
    rivals = {
        item.item_id: tuple(sorted(references[place].answer for place in (number, *own)))
        for number, (item, own) in enumerate(zip(asked, places.tolist(), strict=True))
    }
    items = tuple(replace(item, rivals=rivals.get(item.item_id, ())) for item in built.items)
    return replace(built, items=items), ""


def _asks_diagnosis(item: Item) -> bool:
    return item.runner in (Runner.OPEN, Runner.DIALOGUE) and item.family is Family.DIFFERENTIAL_DIAGNOSIS and not item.given


def kind_of(gold: Gold, vocabulary: Vocabulary) -> str:
    """Return the key of a reference in the vocabulary; of one that it lacks, the normal form of its name."""
    known = vocabulary.of_whole_reference(gold.answer, gold.icd10)
    return known.key if known else normal_form(gold.answer)


def nearness(kinds: Sequence[str], patients: Sequence[Hashable], vocabulary: Vocabulary) -> Apart:
    """Return which cases cannot lend each other their references, shape (cases, cases); every case is near itself.

    Near are cases of one patient, and diagnoses of which one is the other, wider, narrower, or a sibling.
    """
    names = sorted(set(kinds))
    wider = {name: _line_of(name, vocabulary) for name in names}
    near = np.array([[_are_near(one, other, wider, vocabulary) for other in names] for one in names], dtype=bool).reshape(len(names), -1)
    codes = np.array([names.index(kind) for kind in kinds], dtype=np.int64)
    members = np.unique(np.array([str(patient) for patient in patients]), return_inverse=True)[1]
    return near[codes[:, None], codes] | (members[:, None] == members)


def _line_of(kind: str, vocabulary: Vocabulary) -> frozenset[str]:
    """Return a diagnosis with all its wider terms."""
    above = vocabulary.ancestors(kind) if kind in vocabulary.diagnoses else ()
    return frozenset({kind, *(entry.key for entry in above)})


def _are_near(one: str, other: str, wider: Mapping[str, frozenset[str]], vocabulary: Vocabulary) -> bool:
    if one in wider[other] or other in wider[one]:
        return True
    parents = [vocabulary.diagnoses[kind].parent if kind in vocabulary.diagnoses else "" for kind in (one, other)]
    return bool(parents[0]) and parents[0] == parents[1]


def rival_places(near: Apart, seed: int) -> npt.NDArray[np.int64] | None:
    """Choose the rivals of every case by four permutations of the cases.

    Parameters
    ----------
    near : ndarray of bool, shape (cases, cases)
        Cases whose references cannot be offered together.
    seed : int
        Seed of the costs.

    Returns
    -------
    ndarray of int or None, shape (cases, 4)
        The cases that lend their references: each case once in every column. Each permutation is the linear assignment with the lowest
        cost, drawn evenly. None if no draw of `TRIES` has four.

    Examples
    --------
    >>> rival_places(np.eye(5, dtype=bool), 1).sum(axis=1).tolist()
    [10, 9, 8, 7, 6]
    >>> rival_places(np.eye(4, dtype=bool), 1) is None
    True
    """
    if len(near) <= ROUNDS:
        return None
    for number in range(TRIES):
        places = _permutations(near, np.random.default_rng([seed, number]))
        if places is not None:
            return places
    return None


def _permutations(near: Apart, rng: np.random.Generator) -> npt.NDArray[np.int64] | None:
    from scipy.optimize import linear_sum_assignment

    taken, size, columns = near.copy(), len(near), []
    for _ in range(ROUNDS):
        # no sum of allowed costs reaches that of one which is not
        costs = np.where(taken, size + 1.0, rng.random(near.shape))
        column = linear_sum_assignment(costs)[1]
        if taken[np.arange(size), column].any():
            return None
        columns.append(column)
        taken |= near[column]
    return np.stack(columns, axis=1)


def _reason(kinds: Sequence[str]) -> str:
    """Say why there are no rivals."""
    counts = Counter(kinds)
    head = "no question is asked as a choice"
    if len(counts) <= ROUNDS:
        return f"{head}: it needs {ROUNDS + 1} different diagnoses, found {len(counts)}; take the arm out, or add cases"
    most = max(counts.values())
    if most * (ROUNDS + 1) > len(kinds):
        return f"{head}: {most} of {len(kinds)} cases have one diagnosis, expected at most a fifth; take the arm out, or add cases"
    return f"{head}: too many of the {len(kinds)} diagnoses are near each other in the vocabulary; take the arm out, or add cases"
