"""The words of an answer, plainly: the diagnosis of a line, the stated confidence, an answer that names nothing."""

from __future__ import annotations

import re

from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.sections import Sections

MAX_CANDIDATES = 5
MAX_WORDS = 14
"""A line of a differential with more words is an explanation, unless it is numbered."""

EXPLANATION = re.compile(r"\s[-–—]\s|:\s|\((?:confidence|probability|likelihood)?[:\s~]*\d{1,3}\s*%\)")
ABSTENTION = re.compile(
    r"(?:unknown|none|n a|not sure|uncertain|unclear|undetermined|indeterminate|inconclusive|no diagnosis|"
    r"(?:i )?(?:cannot|can not|am unable to|unable to|not possible to)\b.*|(?:cannot|could not) be determined|insufficient\b.*|"
    r"not enough information.*)"
)
CONFIDENCE = re.compile(r"(\d{1,3}(?:\.\d{1,10})?|\.\d{1,10})\s*(%?)(.*)")


def status_of(strict: bool) -> ParseStatus:
    """Give the status of an answer that could be read."""
    return ParseStatus.STRICT if strict else ParseStatus.REPAIRED


def abstains(name: str) -> bool:
    """Whether a line says that no diagnosis can be named."""
    return ABSTENTION.fullmatch(normal_form(name)) is not None


def diagnosis_of(text: str) -> str:
    """Give the diagnosis that a line names, without what explains it."""
    return clean(EXPLANATION.split(clean(text), maxsplit=1)[0].rstrip())


def clean(text: str) -> str:
    """Take off decoration, quotes and the full stop; a placeholder of the form that was left standing is empty."""
    plain = re.sub(r"[*_`]{1,3}", "", text).strip(" \t\"'.,;")
    return "" if re.fullmatch(r"<[^<>]*>", plain) else plain


def confidence_of(sections: Sections) -> tuple[float | None, bool]:
    """Read the stated confidence, 0 to 1, and say whether it stands as asked; None when there is none."""
    text = sections.text("CONFIDENCE")
    match = CONFIDENCE.match(re.sub(r"[*_`]", "", text).strip())
    if match is None:
        return None, not text
    value = float(match.group(1)) / (100 if match.group(2) else 1)
    return (value, match.group(0) == match.group(1) == text) if 0 <= value <= 1 else (None, False)


def in_order(sections: Sections, *headers: str) -> bool:
    """Whether the sections stand as asked; steps before them are asked for by some strategies."""
    return tuple(sections.lines) in {headers, ("REASONING", *headers)}
