"""MM-NeuroOnco: several questions about one picture; the patient of BraTS 2021 stands in its path."""

import re

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Picture, Question

PATIENT = re.compile(r"BraTS2021_\d{5}")


def question(row: SetRow) -> list[Question]:
    """Ask every question about a picture."""
    patient = PATIENT.search(row["image_path"])
    return [
        Question(
            id=f"{row['id']}-{number}",
            case=str(row["id"]),
            patient=patient[0] if patient else "",
            question=asked.get("question", ""),
            options=asked.get("options", ()),
            answer=asked.get("answer", ""),
            pictures=(Picture(file=row["image_path"]),),
            tags=(f"question_type:{asked['question_type']}",),
        )
        for number, asked in enumerate(row["vqa_pairs"], start=1)
    ]
