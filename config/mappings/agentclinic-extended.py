"""AgentClinic: the whole case without its diagnosis, and without the management that follows from it."""

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.case_text import object_text
from neuralmedbench.benchmarks.question import Question

HIDDEN = {"Correct_Diagnosis", "Management_and_Follow_Up"}


def question(row: SetRow) -> Question:
    """Write the examination as text."""
    case = row["OSCE_Examination"]
    shown = {key: value for key, value in case.items() if key not in HIDDEN}
    return Question(text=object_text(shown), answer=case["Correct_Diagnosis"])
