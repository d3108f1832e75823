"""TemMed-Bench: a row names a pair of visits and one of its questions by number; another file has them."""

import re

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Picture, Question
from neuralmedbench.errors import DataError

PATIENT = re.compile(r"patient\d+")
VISITS = "TestSet_VQA_ReportGeneration.json"


def question(row: SetRow) -> Question:
    """Ask one question about a pair of visits."""
    pair, number = int(row["img_id"]), int(row["question_id"])
    visits = row.json(VISITS)
    if pair >= len(visits) or number >= len(visits[pair]["VQA_Final"]):
        message = f"{VISITS} has no such pair of visits, or no such question"
        raise DataError(message)
    visit = visits[pair]
    asked = visit["VQA_Final"][number]
    patient = PATIENT.search(visit["image_path"])
    return Question(
        id=f"{pair}-{number}",
        case=str(pair),
        patient=patient[0] if patient else "",
        question=asked["VQA_question"],
        options=("Yes", "No"),
        answer=asked["VQA_answer"].removesuffix("."),
        pictures=(_picture(visit["historical_image_path"], "prior"), _picture(visit["image_path"], "current")),
    )


def _picture(path: str, role: str) -> Picture:
    """Return a picture of CheXpert Plus; its path in the list ends in .jpg or .png, its file in .png."""
    return Picture(file=f"PNG/{path.rpartition('.')[0]}.png", role=role)
