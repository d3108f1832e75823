"""Thoughts that a model writes before its answer, in the marks of model families; they are no part of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

OPENING, CLOSING = "<think>", "</think>"
NAMES = r"(?:\w+:)?(?:think(?:ing)?|thoughts?|reasoning|scratchpad|reflection)"
MARK = re.compile(
    # tags of most models; Mistral; Kimi; MedGemma; Gemma 4; Cohere; gpt-oss
    rf"(?P<opening><{NAMES}>|\[THINK\]|◁think▷|<unused94>(?:thought\b)?|<\|channel>thought\b|<\|START_THINKING\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)\b[^<]{0,80}<\|message\|>)"
    rf"|</{NAMES}>|\[/THINK\]|◁/think▷|<unused95>|<channel\|>|<\|END_THINKING\|>(?:\s*<\|START_RESPONSE\|>)?"
    r"|(?:<\|end\|>\s*)?(?:<\|start\|>assistant)?<\|channel\|>final\b(?:[^<]|<\|constrain\|>){0,80}<\|message\|>|assistantfinal",
    re.IGNORECASE,
)
"""A mark that begins a thought (`opening`), or one that ends it."""
LAST = re.compile(r"\s*(?:<\|(?:return|end|END_RESPONSE)\|>\s*)+\Z", re.IGNORECASE)
"""Marks behind an answer."""
SENTENCE_ENDS, QUOTES = frozenset(".!?:;)…。！？*>|"), "`'\"“”‘’«»("
GOES_ON = re.compile(
    r"[^\S\n]*[,.;:!?)]|[^\S\n]+(?:is|are|was|were|means?|and|or|not|in|at|as|to|of|that|which|has|tag|tags|mark|marks|token|tokens|ends?|closes?"
    r"|does|should|would|will|can|may|must|here|there|when|before|after|by)\b"
)
"""What follows a closing mark that a sentence speaks of."""
WORD = re.compile(r"[^\S\n]*[,.;:!?)]|[^\S\n]+[a-z]")
"""The same of an opening mark: a thought begins with a capital or on a line of its own."""
NEAR = 80
WRAPPER = re.compile(r"</((?:final_)?answer|response|final)>\s*\Z", re.IGNORECASE)
BOX = re.compile(r"<\|(?:begin|end)_of_box\|>")
"""Marks of GLM around the answer itself."""
THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.IGNORECASE | re.DOTALL)
"""Thoughts that recorded answers hold: what was asked next, and so the keys of later turns, follow from an answer without them."""


class ThoughtEnd(StrEnum):
    """How the thought of a reply ended.

    Attributes
    ----------
    CLOSED
        Between two marks, or in a field of its own.
    LONE
        By a closing mark alone: the server's template opens the thought.
    NEVER
        Not at all: no answer follows.
    """

    CLOSED = "closed"
    LONE = "lone"
    NEVER = "never"


@dataclass(frozen=True)
class SplitReply:
    """A reply without its thoughts, and how these ended; None: it has none."""

    answer: str
    end: ThoughtEnd | None = None


def split_thoughts(text: str, marks: Sequence[str] = ()) -> SplitReply:
    """Take the thoughts out of a reply.

    Parameters
    ----------
    text : str
        The reply.
    marks : sequence of str
        Opening and closing mark of the model, if they are none of the usual ones.

    Returns
    -------
    SplitReply
        A text without thoughts stays as it is. A mark that a sentence speaks of is none.

    Examples
    --------
    >>> split_thoughts("B? No.</think>A").answer, split_thoughts("The tag </think> is not used. ANSWER: B").answer
    ('A', 'The tag </think> is not used. ANSWER: B')
    """
    whole = text
    for written, tag in zip(marks, (OPENING, CLOSING), strict=False):
        text = text.replace(written, tag) if written else text
    parts, kept, start = list[str](), list[str](), 0
    opened: re.Match[str] | None = None
    end: ThoughtEnd | None = None
    for mark in MARK.finditer(text):
        if mark["opening"]:
            opened = opened or mark
            continue
        if _is_spoken_of(text, mark) and (opened is None or _is_spoken_of(text, opened)):
            opened = None
            continue
        kept.append(text[start : (opened or mark).start()])
        if opened is None:  # a closing mark alone: all before it is a thought
            before = "".join(kept)
            if end:
                parts.append(before)
            kept = []
            end = end or (ThoughtEnd.LONE if before.strip() else None)
        start, opened, end = mark.end(), None, end or ThoughtEnd.CLOSED
    if opened and not _is_spoken_of(text, opened):
        kept.append(text[start : opened.start()])
        start, end = len(text), end or ThoughtEnd.NEVER
    answer = "".join([*kept, text[start:]])
    if not end:
        return SplitReply(_unwrapped(whole))
    if not answer.strip():  # another closing mark behind the answer
        answer = next((part for part in reversed(parts) if part.strip()), "")
    return SplitReply(_unwrapped(LAST.sub("", answer)), end)


def without_thoughts(text: str) -> str:
    """Return a text without the thoughts in it."""
    return split_thoughts(text).answer


def answer_of(content: str, marks: Sequence[str] = (), *, reasoning: str = "", cut: bool = False) -> tuple[str, str]:
    """Return the answer of a reply without thoughts, and how these ended (`ThoughtEnd`; empty if there are none).

    Parameters
    ----------
    content : str
        The reply, perhaps with thoughts in it.
    marks : sequence of str
        `thought_marks` of the model.
    reasoning : str
        Thoughts that came apart; a parser may have put the answer there, behind a closing mark.
    cut : bool
        True if the reply met its limit.

    Returns
    -------
    (str, str)
        Thoughts alone refuse nothing: they are kept in place of the answer, between tags, and nothing is read from them. Nothing is kept of
        those that were cut off.
    """
    split = split_thoughts(content, marks)
    if cut and marks and not marks[0] and not split.end:  # the server's template begins the thought
        return "", ThoughtEnd.NEVER
    if split.answer.strip() or (not split.end and not reasoning):
        end = split.end or (ThoughtEnd.CLOSED if reasoning else "")
        return split.answer.lstrip() if end else split.answer, end
    apart = split_thoughts(reasoning, marks)
    if apart.end is ThoughtEnd.LONE and apart.answer.strip():
        return apart.answer.strip(), ThoughtEnd.LONE
    if cut:
        return "", split.end or ThoughtEnd.CLOSED
    if content.strip():
        return content.strip() if is_only_thoughts(content) else f"{OPENING}{content.strip()}", split.end or ""
    return f"{OPENING}{reasoning}{CLOSING}", ThoughtEnd.CLOSED


def _is_spoken_of(text: str, mark: re.Match[str]) -> bool:
    """Return True if a mark is a word of a sentence, or quoted."""
    before = text[max(0, mark.start() - NEAR) : mark.start()].rpartition("\n")[2].rstrip(" ")
    after = text[mark.end() : mark.end() + NEAR]
    if not before:
        return False
    if before[-1] in QUOTES and after[:1] in tuple(f"{QUOTES})"):
        return True
    return before[-1] not in SENTENCE_ENDS and (WORD if mark["opening"] else GOES_ON).match(after) is not None


def _unwrapped(text: str) -> str:
    """Return what stands between `<answer>` and `</answer>` at the end of a text, or in a box; a text without them stays as it is."""
    last = WRAPPER.search(text, max(0, len(text) - NEAR))
    if last:
        first = list(re.finditer(rf"<{last[1]}>", text, re.IGNORECASE))[-1:]
        text = text[first[0].end() if first else 0 : last.start()].strip()
    return BOX.sub("", text)


def is_only_thoughts(text: str) -> bool:
    """Return True if a text holds thoughts, ended or not, and no answer.

    Examples
    --------
    >>> is_only_thoughts("<think>B or C?"), is_only_thoughts("<think>B or C?</think> C"), is_only_thoughts("")
    (True, False, False)
    """
    return bool(text.strip()) and not without_thoughts(text).strip()
