"""Options of a choice that are pictures: each belongs to one letter."""

from __future__ import annotations

from collections.abc import Sequence

from neuralmedbench.records.items import OPTION, Runner
from neuralmedbench.records.questions import LETTERS, Question, QuestionImage


def option_name(place: int) -> str:
    """Text of an option that is a picture and has no other, by its place from 0: the label under which the picture is shown."""
    return f"Option {LETTERS[place]}"


def problem_of_options(question: Question) -> str:
    """Say why pictures cannot be options of a question; empty when they can, or there are none."""
    pictures = [image for image in question.images if image.role == OPTION]
    if not pictures:
        return ""
    if question.runner is not Runner.CHOICE:
        return "a picture is an option of a question that has none"
    if {image.label for image in pictures} - set(question.options):
        return "the label of a picture that is an option is no option's text"
    if len({image.label for image in pictures}) < len(pictures):
        return "two pictures are one option"
    if len({image.file for image in pictures}) < len(pictures):
        return "two options are the same picture"
    return ""


def in_letter_order(question: Question) -> Sequence[QuestionImage]:
    """Pictures of a question of choice: those that it is about, behind them those that are options, in the order of their letters."""
    places = {text: place for place, text in enumerate(question.options, start=1)}
    return sorted(question.images, key=lambda image: places[image.label] if image.role == OPTION else 0)
