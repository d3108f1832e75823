"""CXReasonBench: the ladder of a case, one file a stage, and the authors' guided path as a retry."""

import re
from collections.abc import Iterator
from typing import Any

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Picture, Question, QuestionRound, Value

PATIENT = re.compile(r"p\d{8}")
ONE_PART = {"inclusion", "carina_angle", "descending_aorta_tortuous"}
"""Tasks with one right part; the others have several."""
TWO_RANGES = {"projection"}
"""Tasks with a right and a left range."""


def question(row: SetRow) -> Question:
    """Ask every stage of a case; a stage with several questions has a round for each."""
    task, name = row["_path"].split("/")[1], row["_file"]
    part = "letter" if task in ONE_PART else "letters"
    measure = "letters" if task in TWO_RANGES else "letter"

    def stage(path: str) -> Any:
        return row.json(f"qa/{task}/{path}/*/{name}.json")

    rounds = [
        *_rounds(row, "first_answer", "letter", folder="files"),
        *_rounds(stage("path1/stage1"), "criterion", "letter", rung="criterion"),
    ]
    if row.has(f"qa/{task}/path1/stage1.5/*/{name}.json"):
        rounds += _rounds(stage("path1/stage1.5"), "refined_criterion", "letter")
    rounds += [
        *_rounds(stage("path1/stage2"), "anatomy", part, rung="anatomy", folder="segmask_bodypart"),
        *_rounds(stage("path1/stage3"), "measurement", measure, rung="measurement"),
        *_rounds(stage("path1/stage4"), "decision", "letter", rung="decision"),
        *_rounds(stage("path2/stage1"), "guided_anatomy", "letter", rung="anatomy", folder="segmask_bodypart", retry=True),
        *_rounds(stage("path2/stage2"), "guided_measurement", measure, rung="measurement", folder="pnt_on_cxr", retry=True),
        *_rounds(stage("path2/stage3"), "guided_decision", "letter", rung="decision", retry=True),
    ]
    patient = PATIENT.search(row["img_path"][0])
    return Question(id=f"{task}-{name}", patient=patient[0] if patient else "", rounds=tuple(rounds), tags=(f"task:{task}",))


def _rounds(asked: Any, name: str, rule: str, *, rung: str = "", folder: str = "", retry: bool = False) -> Iterator[QuestionRound]:
    """Yield the rounds of a stage; pictures that are not told apart by question are shown with the first."""
    several = isinstance(asked["question"], list)
    questions = asked["question"] if several else [asked["question"]]
    answers = asked["answer"] if several else [asked["answer"]]
    paths = asked["img_path"] if folder else []
    apart = several and bool(paths) and all(isinstance(path, list) for path in paths)
    for place, (words, answer) in enumerate(zip(questions, answers, strict=True)):
        shown = paths[place] if apart else [] if place else paths
        yield QuestionRound(
            question=words,
            values=(Value(name=f"{name}_{place + 1}" if place else name, rule=rule, reference=answer),),
            pictures=tuple(Picture(file=f"{folder}/{path.lstrip('/')}", role="part") for path in shown),
            stage=rung,
            retry=retry,
        )
