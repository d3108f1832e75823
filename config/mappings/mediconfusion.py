"""MediConfusion: a row has one question, which is asked of each of two pictures."""

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Picture, Question


def question(row: SetRow) -> list[Question]:
    """Ask the question of both pictures; they are a pair."""
    return [
        Question(
            id=f"{row['_key']}-{number}",
            case=row["_key"],
            pair=row["_key"],
            question=row["question"],
            options=(row["option_A"], row["option_B"]),
            answer=row[f"im_{number}_correct"],
            pictures=(Picture(file=f"images/{row[f'im_{number}_local']}.jpg"),),
            tags=tuple(f"category:{category}" for category in row[f"category_{number}"]),
        )
        for number in (1, 2)
    ]
