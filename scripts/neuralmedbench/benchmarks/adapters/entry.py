"""What an adapter returns for each row of its data set, and the description of the set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.records.items import Axis, Disclosure, Gold
from neuralmedbench.records.questions import Question, Refusal


@dataclass(frozen=True, kw_only=True)
class QuestionEntry:
    """One question with its answer and its pictures.

    Attributes
    ----------
    question : Question
        What is asked; `file` of its pictures is a key of `pictures`.
    gold : Gold or None
        What is right, with the question's id in the place of the item's; None when the set does not tell.
    pictures : mapping of str to Path or bytes
        Each picture's file, or its bytes where the set holds them inside a table.
    disclosures : tuple of Disclosure
        What an arm may show, with the question's id in the place of the item's.
    """

    question: Question
    gold: Gold | None = None
    pictures: Mapping[str, Path | bytes] = field(default_factory=dict)
    disclosures: tuple[Disclosure, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set that can be imported.

    Attributes
    ----------
    name, title : str
        Its name on the command line, and in the report.
    home : str
        Where it is to be had.
    licence : str
        As its authors state it.
    files : str
        What has to lie in the folder.
    axis : Axis
        Side of the Two-Axis Framework.
    expected : int
        Questions of the published set; 0 when not known.
    read : callable
        Reads a folder and gives an entry, or a refusal, for every row.
    label_policy : str
        `none` where modality, sequence or plane are answers.
    samples : int
        Answers per request: 1 where there is one right letter or label, 5 for open answers.
    """

    name: str
    title: str
    home: str
    licence: str
    files: str
    axis: Axis
    expected: int
    read: Callable[[SourceFolder], Iterator[QuestionEntry | Refusal]]
    label_policy: str = "full"
    samples: int = 1
