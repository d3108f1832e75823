"""Load `question(row)` of a data set and call it; its errors give line and class, never words of a row."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.rows import QuestionEntry
from neuralmedbench.benchmarks.question import Question
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.questions import Refusal

Asked = Question | QuestionEntry | Refusal
"""What a function may return: a question, or an entry or refusal of another set."""


class SetFunction:
    """The function of a set.

    Raises
    ------
    ConfigError
        If its file cannot be loaded, or has no function `question`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._question = self._loaded()

    def __call__(self, row: Any) -> list[Asked]:
        """Return the questions of a row, none if it is left out; DataError if the function fails or returns something else."""
        try:
            made = self._question(row)
            questions = [] if made is None else list(made) if isinstance(made, Iterable) else [made]
        except DataError:
            raise
        except Exception as error:
            raise DataError(self._fault(error)) from None
        if made is not None and not questions:
            message = "the row has no question"
            raise DataError(message)
        for question in questions:
            if not isinstance(question, Asked):
                kind = type(question).__name__
                message = f"{self._name}: `question(row)` returned {kind}; expected Question, a list of them, or None"
                raise DataError(message)
        return questions

    def _loaded(self) -> Callable[[Any], Any]:
        spec = importlib.util.spec_from_file_location(f"mapping_{self._path.stem}", self._path.resolve())
        try:
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except Exception as error:
            raise ConfigError(self._fault(error)) from None
        if not hasattr(module, "question"):
            message = f"{self._name}: expected a function `question(row)`"
            raise ConfigError(message)
        return module.question

    @property
    def _name(self) -> str:
        return f"{self._path.parent.name}/{self._path.name}"

    def _fault(self, error: Exception) -> str:
        """Return the line of the file where an error began, and its class: its words may be those of a row."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == self._path.resolve()]
        number = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        return f"{self._name}{f', line {number}' if number else ''}: {type(error).__name__}"
