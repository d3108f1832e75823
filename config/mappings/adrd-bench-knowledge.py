"""ADRD-Bench, knowledge: numbers of rows of seven other sets, which lie in subfolders of their names."""

from collections.abc import Iterator
from dataclasses import replace

from neuralmedbench.benchmarks.adapters.rows import QuestionEntry
from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.records.questions import Refusal

SETS = {
    "PubMedQA": "pubmedqa",
    "HEAD-QA": "head-qa",
    "MedBullets": "medbullets",
    "MedMCQA": "medmcqa",
    "MedQA": "medqa",
    "MEDEC": "medec",
    "MedHallu": "medhallu",
}


def question(row: SetRow) -> Iterator[QuestionEntry | Refusal]:
    """Yield the numbered rows of another set, as its own mapping reads them; a row that is absent is refused."""
    published = row["Benchmark Name"]
    for split, listed in row["Dataset"].items():
        if published in SETS:
            yield from _numbered(row, SETS[published], split, listed["Indices"])
        else:
            reason = f"`SETS` has no mapping for {published}"
            yield from (Refusal(where=f"{published}/{split}, row {number}", reason=reason) for number in listed["Indices"])


def _numbered(row: SetRow, name: str, split: str, numbers: list[int]) -> Iterator[QuestionEntry | Refusal]:
    letters = [f"[{sign.lower()}{sign.upper()}]" if sign.isalpha() else sign for sign in split]
    pattern = f"{name}/*{''.join(letters)}*"
    absent = set(numbers)
    for number, other in enumerate(row.others(name, pattern)):
        if number in absent:
            absent.remove(number)
            for entry in other.entries():
                yield _renamed(entry, f"{name}-{split}-{number}", name)
    for number in sorted(absent):
        reason = f"this row of {name}/{split} is not in the subfolder {name}"
        yield Refusal(where=f"{name}/{split}, row {number}", reason=reason, question_id=f"{name}-{split}-{number}")


def _renamed(entry: QuestionEntry | Refusal, name: str, source: str) -> QuestionEntry | Refusal:
    if isinstance(entry, Refusal):
        return replace(entry, question_id=name)
    asked = replace(entry.question, question_id=name, case_id="", tags=(*entry.question.tags, f"source:{source}"))
    gold = replace(entry.gold, item_id=name) if entry.gold else None
    return replace(entry, question=asked, gold=gold)
