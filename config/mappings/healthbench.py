"""HealthBench: the last message is the question, the others are the text of the case."""

from dataclasses import replace

from neuralmedbench.benchmarks.adapters.set_reader import SetRow
from neuralmedbench.benchmarks.question import Question
from neuralmedbench.errors import DataError


def question(row: SetRow) -> Question:
    """Read the conversation; the columns of the mapping have the rest."""
    *before, last = row["prompt"]
    if last["role"] == "assistant":
        message = "the last message of the conversation is the assistant's"
        raise DataError(message)
    turns = [f"{turn['role'].capitalize()}: {turn['content']}" for turn in before]
    text = "\n\n".join(("Conversation so far:", *turns)) if turns else ""
    return replace(row.by_columns(), question=last["content"], text=text)
