"""What a line of a differential denies: negations, denials at the end, `history of` and `mimic`, and how far each of them reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from neuralmedbench.records.vocabulary import normal_form

CUTS = re.compile(
    r"\s(?:with|without|due to|secondary to|caused by|causing|involving|affecting|in|of|at|from|after|following|on|within|rather than|"
    r"instead of|given|because|based on|presenting|as|mimicking|simulating|resembling|imitating)\s|[:–—]|\s-\s",
    re.IGNORECASE,
)
"""Where the name of a diagnosis ends and the words about it begin."""

ALTERNATIVES = re.compile(r"[,;/&+]|\s(?:or|vs\.?|versus|and)\s", re.IGNORECASE)
BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
NEGATION = re.compile(
    r"\b(?:no|not|non|without|never|nor|neither|nothing|cannot|cant|(?:is|are|was|were|do|does|did|has|have|can|could)nt|absence|absent|negative|"
    r"denies|denied|against|exclude[sd]?|excluding|rules?|ruled|rejected|refuted|unlikely|improbable|implausible|doubtful|inconsistent|"
    r"incompatible|lacks?|lacking|fails? to|free of|low (?:suspicion|probability|likelihood))\b"
)
NOT_NEGATION = re.compile(r"\bnot (?:otherwise|elsewhere) (?:specified|classified)\b", re.IGNORECASE)
DENIED_AFTER = re.compile(
    r"(?:\b(?:excluded|(?:ruled|rule) out|(?:un|not |less |least )likely|not (?:present|seen|found)|absent|rejected|refuted|denied|improbable|"
    r"doubtful|mimics?)|(?:[:?–—]|\s-)\s*no(?:ne|t)?)\W*$",
    re.IGNORECASE,
)
"""Words that, at the end, deny what stands before them."""

BARE_DENIAL_WORDS = "most very highly now likely longer out present seen found evident confirmed supported is was been has it this"
BARE_DENIAL = frozenset(BARE_DENIAL_WORDS.split())
"""Words beside a negation in brackets that name nothing else: `(not likely)` denies what stands before, `(no haemorrhage)` does not."""

RULE_OUT = re.compile(r"\br/o\b", re.IGNORECASE)
OF_ALL = frozenset({"history", "family", "risk", "screening", "mimicking", "resembles", "resembling", "simulating", "imitating", "pseudo"})
"""Words that make another thing of all diagnoses behind them: `history of stroke or seizure`."""

OTHER_THING = OF_ALL | {"mimic", "mimics", "like", "non"}
"""Words that make another thing of the diagnosis beside them: a stroke mimic is not a stroke."""


def another_thing(beside: Sequence[str]) -> bool:
    """Whether the words beside a name deny it or make another thing of it; those of the name itself do not (`non-communicating`)."""
    return bool(OTHER_THING & set(beside) or NEGATION.search(" ".join(beside)))


def denied(text: str) -> bool:
    """Whether a text holds a negation."""
    return bool(NEGATION.search(normal_form(text)))


def denies_alone(text: str) -> bool:
    """Whether a text is a negation and nothing else."""
    return denied(text) and set(NEGATION.sub(" ", normal_form(text)).split()) <= BARE_DENIAL


def claimed(text: str) -> Iterator[str]:
    """Yield the parts of a line between commas and words like `or`, without those that a negation before them denies too."""
    start, over, to_the_end = 0, False, False
    for match in [*ALTERNATIVES.finditer(text), None]:
        piece = text[start : match.start() if match else None]
        head = normal_form(CUTS.split(piece, maxsplit=1)[0])
        if not over or head.startswith("but "):
            yield piece
            # `no infarct, haemorrhage or tumour` denies all three; of `infarct without haemorrhage, tumour` the list ends at the comma
            to_the_end = denied(re.sub(r"\bnon\b", " ", head))
            over = to_the_end or denied(re.sub(r"\bnon\b", " ", normal_form(piece))) or bool(OF_ALL & set(head.split()))
        if match:
            start, separator = match.end(), match.group().strip()
            over = over and separator != ";" and (to_the_end or separator != ",")
