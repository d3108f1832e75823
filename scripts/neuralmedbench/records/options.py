"""The options of a choice item as an arm shows them: in another order, or without the right one; and the way back from a letter."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

from neuralmedbench.records.items import OPTION, Item, Runner
from neuralmedbench.records.questions import LETTERS

SHUFFLED = re.compile(r"options_shuffled-(\d+)")
"""Name of an arm that shows the options in another order, with its seed."""

NONE_ARM, NONE_OF_THE_ABOVE = "none_of_the_above", "None of the above"
"""The arm that takes the right option away, and the text that stands in its place."""

REFERS = re.compile(
    r"\b(?:above|below|foregoing|preceding)\b|\b(?:all|both|none|neither|any|either) of (?:these|them|the (?:options|choices|answers))\b"
    r"|^\W*(?:both\s+|only\s+|options?\s+)?\(?[A-J]\)?(?:\s*(?:,|and|or|&|\+|/)\s*\(?[A-J]\)?)+(?:\s+only)?\W*$",
    re.IGNORECASE,
)
"""An option that speaks of other options, so that it says something else in another order: `all of the above`, `A and C`."""
NAMED = re.compile(r"\b(?:option|choice|answer)s?\s+\(?[A-J]\b")
"""A question that names an option by its letter."""


def option_name(place: int) -> str:
    """Return the text of an option that is a picture, by its index from 0: the label under which the picture is shown."""
    return f"Option {LETTERS[place]}"


def is_movable(item: Item) -> bool:
    """Return True if the options of a choice item say the same in any order, and without one of them."""
    texts = (item.question, *(turn.question for turn in item.turns))
    apart = item.runner is Runner.CHOICE and len(item.options) > 1
    return apart and not any(map(REFERS.search, item.options)) and not any(map(NAMED.search, texts))


def option_order(item_id: str, options: int, seed: int) -> tuple[int, ...]:
    """Return the order in which an arm of shuffled options shows those of an item.

    Parameters
    ----------
    item_id : str
        The item.
    options : int
        Number of its options.
    seed : int
        Seed of the arm, from 1.

    Returns
    -------
    tuple of int
        For each place the index of the option that stands there. The orders of seeds 1 to `options` are the rotations of one order that the
        digest of the item fixes, so that every option stands once in every place (a Latin square); the next `options` seeds are those of
        another order, and so on.

    Examples
    --------
    >>> sorted(option_order("b/q1", 3, seed)[0] for seed in (1, 2, 3))
    [0, 1, 2]
    """
    square, turn = divmod(seed - 1, options)
    fixed = sorted(range(options), key=lambda index: hashlib.sha256(f"{item_id}\n{square}\n{index}".encode()).hexdigest())
    return (*fixed[turn:], *fixed[:turn])


def order_under(item: Item, arm: str) -> tuple[int, ...]:
    """Return for each place the index of the option that an arm shows there."""
    shuffled = SHUFFLED.fullmatch(arm) if item.runner is Runner.CHOICE else None
    return option_order(item.item_id, len(item.options), int(shuffled[1])) if shuffled else tuple(range(len(item.options)))


def in_order(item: Item, order: Sequence[int]) -> Item:
    """Show the options of an item in another order; their pictures move with them, and a picture is called by its new letter."""
    renamed = {item.options[old]: option_name(new) for new, old in enumerate(order) if item.options[old] == option_name(old)}
    pictured = {image.label for image in item.images if image.role == OPTION}
    texts = {text: renamed.get(text, text) if text in pictured else text for text in item.options}
    options = tuple(texts[item.options[old]] for old in order)
    images = [replace(image, label=texts[image.label]) if image.role == OPTION else image for image in item.images]
    # pictures of options come last, in the order of their letters
    images.sort(key=lambda image: options.index(image.label) + 1 if image.role == OPTION else 0)
    return replace(item, options=options, images=tuple(images))


def without_right_option(item: Item, letter: str) -> Item:
    """Put "None of the above" in the place of the option with a letter; its picture goes."""
    place = LETTERS.index(letter)
    gone = item.options[place]
    options = (*item.options[:place], NONE_OF_THE_ABOVE, *item.options[place + 1 :])
    images = tuple(image for image in item.images if image.role != OPTION or image.label != gone)
    return replace(item, options=options, images=images)


def as_asked(item: Item, arm: str, *, right: str = "") -> Item:
    """Return an item with the options that an arm shows; `right` is the letter of the right option, where it is known."""
    if item.runner is not Runner.CHOICE:
        return item
    if arm == NONE_ARM and right:
        return without_right_option(item, right)
    return in_order(item, order_under(item, arm)) if SHUFFLED.fullmatch(arm) else item
