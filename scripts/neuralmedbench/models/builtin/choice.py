"""Questions with options: what the prompt offers, and which option reads most like the words before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from neuralmedbench.models.protocol import Message
from neuralmedbench.records.questions import LETTERS

END_OF_EXAMPLES = "The examples end here. Now comes what you answer."
EXAMPLE = re.compile(r"Example \d+, ")


@dataclass(frozen=True)
class Choice:
    """A question with options.

    Attributes
    ----------
    case, question : str
        What stands before the question (headings too), and the question.
    options : tuple of str
        In the order of their letters.
    """

    case: str
    question: str
    options: tuple[str, ...]


def read_choice(text: str) -> Choice:
    """Read question and options of a prompt; of several lists of options the last one, because the form stands below what is quoted.

    Parameters
    ----------
    text : str
        A user message.

    Returns
    -------
    Choice
        Without options when it offers none.
    """
    head, form, _ = f"\n{text}".rpartition("\n\nAnswer in this form:")
    before, offer, block = head.rpartition("\nOptions:\n")
    if not (form and offer):
        return Choice("", "", ())
    case, _, question = before.rpartition("\nQuestion: ")
    options: list[str] = []
    for line in block.split("\n"):
        letter = LETTERS[len(options) : len(options) + 1]
        if letter and line.startswith(f"{letter}. "):
            options.append(line[3:])
        elif options:
            options[-1] += f"\n{line}"
    return Choice(case.strip(), question.strip(), tuple(options))


def without_examples(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Take answered examples of other patients out of a conversation: the baselines learn nothing from them, and they are another's words."""
    return tuple(
        replace(
            message,
            text=message.text.rpartition(END_OF_EXAMPLES)[2].lstrip() if END_OF_EXAMPLES in message.text else message.text,
            images=tuple(image for image in message.images if not EXAMPLE.match(image.label)),
        )
        for message in messages
    )
