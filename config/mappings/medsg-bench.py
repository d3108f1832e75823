"""MedSG-Bench: boxes are pixels of the pictures, here they are asked for and named in fractions."""

import re
from collections.abc import Sequence
from dataclasses import replace

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Picture, Question, Value
from neuralmedbench.errors import DataError

SIZE = (336, 336)
MARKS = re.compile(r"<image>|<\|(?:object_ref|box)_(?:start|end)\|>")
BOX = re.compile(r"\((\d+),\s*(\d+)\),\s*\((\d+),\s*(\d+)\)")
PATIENT = re.compile(r"([^/_]+)_[^/]*casenum_([^/_]+)")
FILE = re.compile(r"Task\d/.+$")


def question(row: SetRow) -> Question:
    """Ask for a box in the pictures of a sequence; the patient of the first picture is the cluster."""
    size = row.get("size") or SIZE
    patient = PATIENT.search(row["images"][0])
    words = MARKS.sub("", row["question"]).strip()

    def in_words(match: re.Match[str]) -> str:
        return str([round(edge, 3) for edge in _fractions([float(edge) for edge in match.groups()], size)])

    return replace(
        row.by_columns(),
        patient="-".join(patient.groups()) if patient else "",
        question=BOX.sub(in_words, words),
        values=(Value(name="box", rule="box", reference=_fractions(row["answer"], size)),),
        pictures=tuple(Picture(file=name[0], role="part") for path in row["images"] if (name := FILE.search(path))),
    )


def _fractions(box: Sequence[float], size: Sequence[float]) -> list[float]:
    fractions = [edge / size[place % 2] for place, edge in enumerate(box)]
    if max(fractions) > 1 or min(fractions) < 0:
        message = "a box is not within its picture"
        raise DataError(message)
    return fractions
