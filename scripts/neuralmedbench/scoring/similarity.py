"""Semantic similarity of an answer to the reference: a description, never a verdict.

Embeddings do not separate a synonym from a near miss: on hand-written hard pairs of clinical terms the area under the curve
was 0.16, worse than chance. The numbers stand beside the vocabulary's verdict so that the report can show just that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


class Encoder(Protocol):
    """What turns a text into vectors."""

    def encode(self, texts: Sequence[str]) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Encode texts.

        Parameters
        ----------
        texts : sequence of str
            Texts, none of them blank.

        Returns
        -------
        list of (ndarray, ndarray)
            For each text its unit vector, shape (D,), and the unit vectors of its tokens, shape (T, H), the first and the
            last of them the encoder's own start and end marks.
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
        Each different text is encoded once.

    Returns
    -------
    list of SimilarityRow
        One row a response; both values are None where rank 1 is empty.
    """
    rows = [(row, *_texts(row, items[row.item_id], gold[row.item_id], vocabulary)) for row in responses]
    texts = sorted({text for _, *pair in rows for text in pair if text})
    vectors = dict(zip(texts, encoder.encode(texts), strict=True)) if texts else {}
    values = {(a, b): _compare(vectors[a], vectors[b]) for _, a, b in rows if a and b}
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
            cosine=values.get((answer, reference), (None, None))[0],
            bertscore_f1=values.get((answer, reference), (None, None))[1],
        )
        for row, answer, reference in rows
    ]


def bertscore_f1(candidate: npt.NDArray[np.float64], reference: npt.NDArray[np.float64]) -> float:
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
    cosines = candidate @ reference.T
    precision = float(cosines.max(axis=1)[1:-1].mean())
    recall = float(cosines.max(axis=0)[1:-1].mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _wanted(response: Response, items: Mapping[str, Item], gold: Mapping[str, Gold]) -> bool:
    item = items[response.item_id]
    named = item.runner is not Runner.STRUCTURED and item.family is not Family.LESION_RECOGNITION
    return named and response.state is ResponseState.OK and bool(item.item_id in gold and gold[item.item_id].answer.strip())


def _texts(response: Response, item: Item, gold: Gold, vocabulary: Vocabulary) -> tuple[str, str]:
    differential = parse_answer(response.text, item).differential
    return (_written_out(differential[0], vocabulary) if differential else "", _written_out(gold.answer, vocabulary))


def _written_out(text: str, vocabulary: Vocabulary) -> str:
    entry = vocabulary.find(text)
    abbreviated = entry is not None and normal_form(text) in {normal_form(term) for term in entry.abbreviations}
    return entry.name if entry is not None and abbreviated else text.strip()


def _compare(
    first: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]], second: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
) -> tuple[float, float]:
    return round(float(first[0] @ second[0]), DECIMALS), round(bertscore_f1(first[1], second[1]), DECIMALS)
