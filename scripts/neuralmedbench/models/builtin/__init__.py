"""Reference models that run inside the command: no key, no GPU, no download. They are baselines, not vision-language models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from neuralmedbench.errors import ConfigError
from neuralmedbench.models.builtin.answer import Answerer
from neuralmedbench.models.builtin.encoder import Encoder
from neuralmedbench.models.builtin.fusion import FusionReader
from neuralmedbench.models.builtin.image import ImageReader
from neuralmedbench.models.builtin.opinion import Reader
from neuralmedbench.models.builtin.text import TextReader
from neuralmedbench.models.protocol import BuiltinModel
from neuralmedbench.records.vocabulary import Vocabulary

encoder = cache(Encoder)
"""The one encoder of the process: its weights are loaded when the first text is read."""

READERS: dict[str, Callable[[Vocabulary], Reader]] = {
    "text": lambda vocabulary: TextReader(vocabulary, encoder()),
    "image": ImageReader,
    "fusion": lambda vocabulary: FusionReader(TextReader(vocabulary, encoder()), ImageReader(vocabulary)),
}


def build(model_id: str, vocabulary: Vocabulary) -> BuiltinModel:
    """Make a built-in model.

    Parameters
    ----------
    model_id : str
        `text`, `image` or `fusion`.
    vocabulary : Vocabulary
        The diagnoses that it may name, with their descriptions.

    Returns
    -------
    BuiltinModel
        It keeps what it has read and measured, so one instance should answer all requests of a job.

    Raises
    ------
    ConfigError
        If there is no such model.
    """
    if model_id not in READERS:
        message = f"there is no built-in model {model_id!r}; choose one of {', '.join(READERS)}"
        raise ConfigError(message)
    return Answerer(READERS[model_id](vocabulary))
