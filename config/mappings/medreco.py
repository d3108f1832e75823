"""MedReCo-DB: question and options stand in the words of a conversation, the patient in the id."""

import re
from dataclasses import replace

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Picture, Question

SAME_PATIENT = re.compile(r"(p\d{8})/.*and.*/\1/")
RIGHT = re.compile(r'"answer":\s*"([A-D])"')


def question(row: SetRow) -> Question | None:
    """Ask about two examinations of one patient; rows of two patients are left out."""
    patient = SAME_PATIENT.search(row["id"])
    if patient is None:
        return None
    words, answer = row["conversations.0.value"], RIGHT.search(row["conversations.1.value"])
    earlier, present = row["image"]
    return replace(
        row.by_columns(),
        patient=patient[1],
        question=_entry(words, "question"),
        options=tuple(_entry(words, letter) for letter in "ABCD"),
        answer=answer[1] if answer else "",
        pictures=(Picture(file=earlier, role="prior"), Picture(file=present, role="current")),
    )


def _entry(words: str, name: str) -> str:
    """Return an entry of the conversation, which is nearly JSON."""
    entry = re.search(rf'(?m)"{name}":\s*"(.*?)",?\s*$', words)
    return entry[1] if entry else ""
