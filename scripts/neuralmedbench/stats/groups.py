"""Groups of items for which rates are given: what they are about, how they are shown, tags of their data set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neuralmedbench.records.items import DIAGNOSES
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.stats.outcomes import Outcomes
from neuralmedbench.stats.study import Study

NORMAL = "normal"
"""Key of the vocabulary's entry for a scan without abnormality."""

Mask = npt.NDArray[np.bool_]


def item_groups(study: Study, outcomes: Outcomes) -> Iterator[tuple[str, str, Mask]]:
    """Give the groups of a benchmark's items: what they are grouped by, which group, and its items (shape (items,)).

    Tags `name:value` of a data set are groups; the language is one only where a set has several.
    """
    columns = {
        "family": [str(item.family) for item in outcomes.items],
        "level": [str(item.level) for item in outcomes.items],
        "diagnosis": [gold.answer if item.family in DIAGNOSES else "" for item, gold in zip(outcomes.items, outcomes.gold, strict=True)],
        "sequence": [_only_sequence({image.sequence for image in item.images}) for item in outcomes.items],
        "normal_control": ["true" if is_normal(gold.answer, study.vocabulary) else "" for gold in outcomes.gold],
        "year": [item.date[:4] for item in outcomes.items],
        "language": _if_several([item.language for item in outcomes.items]),
        "lesion_shown": ["" if item.lesion_shown is None else str(item.lesion_shown).lower() for item in outcomes.items],
    }
    for part, values in columns.items():
        for value in sorted(set(values) - {""}):
            yield part, value, np.array([entry == value for entry in values], dtype=bool)
    for tag in sorted({tag for item in outcomes.items for tag in item.tags if ":" in tag}):
        part, _, value = tag.partition(":")
        yield part, value, np.array([tag in item.tags for item in outcomes.items], dtype=bool)


def _if_several(values: list[str]) -> list[str]:
    return values if len(set(values)) > 1 else [""] * len(values)


def _only_sequence(sequences: set[str]) -> str:
    return next(iter(sequences)) if len(sequences) == 1 else ""


def is_normal(answer: str, vocabulary: Vocabulary) -> bool:
    """Whether a reference says that there is no abnormality."""
    found = vocabulary.find(answer)
    return found is not None and found.key == NORMAL
