"""LongHealth: the questions about one patient share all documents."""

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Question


def question(row: SetRow) -> list[Question]:
    """Ask every question of a patient."""
    documents = "\n\n---\n\n".join(row["texts"].values())
    return [
        Question(
            id=f"{row['_key']}-{asked['No']}",
            case=row["_key"],
            text=documents,
            question=asked["question"],
            options=tuple(asked[f"answer_{letter}"] for letter in "abcde"),
            answer=asked["correct"],
            tags=(f"diagnosis:{row['diagnosis']}",),
        )
        for asked in row["questions"]
    ]
