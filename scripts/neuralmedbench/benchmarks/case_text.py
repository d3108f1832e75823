"""Text of a case: the vignette before the question that closes it, and nested records as lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from neuralmedbench.benchmarks.adapters.paths import listed
from neuralmedbench.benchmarks.adapters.rows import cell_text
from neuralmedbench.errors import DataError

SENTENCE = re.compile(r"""[.!?。？！]["'”’)\]]*(?=\s)|[。？！]["'”’)\]]*(?=\S)|\n+""")
"""Ends of sentences; Chinese ones need no following space."""
SHORT = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|e\.g|i\.e|vs|cf|approx|ca|no|fig|figs|dr|mr|mrs|ms|prof|st|resp|incl|max|min|temp|hr|wt|yr|yrs|mo|wk|sec|lab)\.$",
    re.IGNORECASE,
)
"""Abbreviations whose full stop does not end a sentence, and initials."""
ASKS = re.compile(r"""[?？]["'”’)\]]*\s*$""")
MAX_DEPTH = 50
"""Deeper objects are refused: no person wrote them."""
CAMEL = re.compile(r"[a-z]{2,}(?:[A-Z][a-z]+)+")
"""Names such as `timeAtOnset`; `HbA1c` and `pH` are no such names."""


def vignette_and_lead_in(text: str) -> tuple[str, str]:
    """Split an examination question into the vignette and the lead-in.

    The lead-in starts at the last run of sentences with a question mark, or at the last sentence if there is none, and includes all that
    follows.

    Examples
    --------
    >>> vignette_and_lead_in("A man of 60 falls. Dr. Who sees a tremor. What is it? Which drug helps?")
    ('A man of 60 falls. Dr. Who sees a tremor.', 'What is it? Which drug helps?')
    >>> vignette_and_lead_in("Which lobe is affected? Fluid is bright.")
    ('', 'Which lobe is affected? Fluid is bright.')
    """
    sentences = _sentences(text.strip())
    asking = [place for place, sentence in enumerate(sentences) if ASKS.search(sentence)]
    first = asking[-1] if asking else len(sentences) - 1
    while first > 0 and first - 1 in asking:
        first -= 1
    return "".join(sentences[:first]).strip(), "".join(sentences[first:]).strip()


def _sentences(text: str) -> list[str]:
    """Split a text after every sentence; the parts joined are the text."""
    # a candidate end counts unless the full stop belongs to an abbreviation or a lower-case letter follows
    cuts, begin = [0], 0
    for found in SENTENCE.finditer(text):
        before, after = text[begin : found.end()], text[found.end() :].lstrip()
        # a lower-case letter continues the sentence, as in "approx. two weeks"
        if before.strip() and after and not ("." in found[0] and (SHORT.search(before.rstrip()) or after[0].islower())):
            cuts.append(found.end())
            begin = found.end()
    return [text[start:end] for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def object_text(value: Any) -> str:
    r"""Write a nested record as text: a line for every value below the names of its keys, in the order of the file.

    Empty values are left out, with keys that have no other. Keys lose their underscores; booleans are `yes` and `no`.

    Raises
    ------
    DataError
        If it holds bytes, or has more than 50 levels.

    Examples
    --------
    >>> print(object_text({"Chest_X-Ray": "Normal.", "Blood": {"WBC": 9, "CRP": None}, "Seen": ["Rash", {"Site": "arm"}]}))
    Chest X-Ray: Normal.
    Blood:
      WBC: 9
    Seen:
      - Rash
      - Site: arm
    """
    return "\n".join(_lines(listed(value)))


def readable(key: str) -> str:
    """Return the name of a key as words.

    Examples
    --------
    >>> readable("Chest_X-Ray"), readable("timeAtOnset"), readable("HbA1c")
    ('Chest X-Ray', 'time at onset', 'HbA1c')
    """
    if CAMEL.fullmatch(key):
        key = re.sub(r"(?=[A-Z])", " ", key).lower()
    return " ".join(key.replace("_", " ").split())


def _lines(value: Any, depth: int = 0) -> list[str]:
    if depth > MAX_DEPTH:
        message = f"a record has more than {MAX_DEPTH} levels; leave its deepest part out"
        raise DataError(message)
    if isinstance(value, Mapping):
        blocks = [_headed(readable(str(key)), part, _lines(part, depth + 1)) for key, part in value.items()]
        return [line for block in blocks for line in block]
    if isinstance(value, list | tuple):
        entries = [_lines(part, depth + 1) for part in value]
        return [line for entry in entries if entry for line in (f"- {entry[0]}", *(f"  {line}" for line in entry[1:]))]
    text = ("no", "yes")[value] if isinstance(value, bool) else cell_text(value)
    return [line.strip() for line in text.splitlines() if line.strip()]


def _headed(name: str, value: Any, lines: Sequence[str]) -> list[str]:
    """Return lines below their heading, or one line of text behind it."""
    if not lines or not name:
        return list(lines)
    if len(lines) == 1 and not isinstance(value, Mapping | list | tuple):
        return [f"{name}: {lines[0]}"]
    return [f"{name}:", *(f"  {line}" for line in lines)]
