"""Semantic similarity of an answer to the reference: a description, never a verdict.

Embeddings do not separate a synonym from a near miss: on hand-written hard pairs of clinical terms the area under the curve
was 0.16, worse than chance. The numbers stand beside the vocabulary's verdict so that the report can show just that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neuralmedbench.records.items import Family, Gold, Item, Runner
from neuralmedbench.records.keys import text_digest
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import SimilarityRow
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.scoring.parse import parse_answer

DECIMALS = 6
"""Batches of another size change a similarity by about 1e-7."""


Vectors = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
"""Of a text: its unit vector, shape (D,), and the unit vectors of its tokens, shape (T, H), the first and the last of them the encoder's marks."""


class Encoder(Protocol):
    """What turns a text into vectors."""

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        """Encode texts.

        Parameters
        ----------
        texts : sequence of str
            Different texts, none of them blank.

        Yields
        ------
        tuple of str and Vectors
            Each text once with its vectors, in the order that is fastest: a few at a time, because the tokens of all would fill the memory.
        """
        ...


def comparable(responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold]) -> list[Response]:
    """Responses whose rank 1 has a reference to be compared with; structured answers and lesion answers have none."""
    return [response for response in responses if _wanted(response, items, gold)]


def similarity_rows(
    responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], vocabulary: Vocabulary, encoder: Encoder
) -> list[SimilarityRow]:
    """Compare rank 1 of every answer with the reference.

    Parameters
    ----------
    responses : iterable of Response
        Answers of all models to one benchmark, all of them `comparable`.
    items, gold : mapping
        By item id.
    vocabulary : Vocabulary
        An answer that is an abbreviation is written out before it is compared.
    encoder : Encoder
        Each different text is encoded once, each different pair compared once.

    Returns
    -------
    list of SimilarityRow
        One row a response; both values are None where rank 1 is empty. `expanded` where an abbreviation was written out: such a pair is equal
        because the vocabulary says so, and tells nothing about the encoder.
    """
    rows = [(row, *_texts(row, items[row.item_id], gold[row.item_id], vocabulary)) for row in responses]
    values = _compared({(answer.text, reference.text) for _, answer, reference in rows if answer.text and reference.text}, encoder)
    return [
        SimilarityRow(
            item_id=row.item_id,
            benchmark=row.benchmark,
            arm=row.arm,
            strategy=row.strategy,
            model=row.model,
            revision=row.revision,
            repeat=row.repeat,
            text_sha256=text_digest(row.text),
            cosine=values.get((answer.text, reference.text), (None, None))[0],
            bertscore_f1=values.get((answer.text, reference.text), (None, None))[1],
            expanded=answer.expanded or reference.expanded,
        )
        for row, answer, reference in rows
    ]


def bertscore_f1(candidate: npt.NDArray[np.floating], reference: npt.NDArray[np.floating]) -> float:
    """BERTScore F1 without idf weights and without rescaling.

    Parameters
    ----------
    candidate, reference : ndarray, shape (T, H)
        Unit vectors of tokens; the first and the last token are the encoder's marks: they may be matched, but do not count.

    Returns
    -------
    float
        Harmonic mean of precision and recall of greedy matching; 0 when a text has no token of its own.
    """
    if len(candidate) <= 2 or len(reference) <= 2:
        return 0.0
    cosines = candidate.astype(np.float64) @ reference.astype(np.float64).T
    precision = float(cosines.max(axis=1)[1:-1].mean())
    recall = float(cosines.max(axis=0)[1:-1].mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _wanted(response: Response, items: Mapping[str, Item], gold: Mapping[str, Gold]) -> bool:
    item = items[response.item_id]
    named = item.runner is not Runner.STRUCTURED and item.family is not Family.LESION_RECOGNITION
    return named and response.state is ResponseState.OK and bool(item.item_id in gold and gold[item.item_id].answer.strip())


@dataclass(frozen=True)
class _Compared:
    """A text as it is compared, and whether it is an abbreviation that was written out."""

    text: str
    expanded: bool = False


def _texts(response: Response, item: Item, gold: Gold, vocabulary: Vocabulary) -> tuple[_Compared, _Compared]:
    differential = parse_answer(response.text, item).differential
    return (_written_out(differential[0], vocabulary) if differential else _Compared("")), _written_out(gold.answer, vocabulary)


def _written_out(text: str, vocabulary: Vocabulary) -> _Compared:
    entry = vocabulary.find(text)
    if entry is not None and normal_form(text) in {normal_form(term) for term in entry.abbreviations}:
        return _Compared(entry.name, expanded=True)
    return _Compared(text.strip())


def _compared(pairs: Iterable[tuple[str, str]], encoder: Encoder) -> dict[tuple[str, str], tuple[float, float]]:
    """Compare answers with references: the vectors of the references, which are few, are held, those of an answer while it is compared."""
    wanted: dict[str, list[str]] = defaultdict(list)
    for answer, reference in sorted(pairs):
        wanted[answer].append(reference)
    held = dict(encoder.encode(sorted({reference for references in wanted.values() for reference in references})))
    answers = chain(((text, held[text]) for text in wanted if text in held), encoder.encode([text for text in wanted if text not in held]))
    return {(answer, reference): _compare(vectors, held[reference]) for answer, vectors in answers for reference in wanted[answer]}


def _compare(first: Vectors, second: Vectors) -> tuple[float, float]:
    cosine = float(first[0].astype(np.float64) @ second[0].astype(np.float64))
    return round(cosine, DECIMALS), round(bertscore_f1(first[1], second[1]), DECIMALS)
