"""Questions of examinations: they tell a case and close with what is asked."""

from __future__ import annotations

import re

SENTENCE = re.compile(r"""[.!?。？！]["'”’)\]]*(?=\s)|[。？！]["'”’)\]]*(?=\S)|\n+""")
"""Ends of sentences; those of Chinese need no space behind them."""
SHORT = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|e\.g|i\.e|vs|cf|approx|ca|no|fig|figs|dr|mr|mrs|ms|prof|st|resp|incl|max|min|temp|hr|wt|yr|yrs|mo|wk|sec|lab)\.$",
    re.IGNORECASE,
)
"""Abbreviations whose point ends no sentence, and initials."""
ASKS = re.compile(r"""[?？]["'”’)\]]*\s*$""")


def told_and_asked(text: str) -> tuple[str, str]:
    """Part the question of an examination into the case that it tells and the sentence that asks.

    Parameters
    ----------
    text : str
        The whole question.

    Returns
    -------
    told : str
        Everything before; empty when the question asks at once.
    asked : str
        From the last sentence with a question mark, and those right before it that have one too, to the end: what stands behind a question
        belongs to it. Without a question mark the last sentence.

    Examples
    --------
    >>> told_and_asked("A man of 60 falls. Dr. Who sees a tremor. What is it? Which drug helps?")
    ('A man of 60 falls. Dr. Who sees a tremor.', 'What is it? Which drug helps?')
    >>> told_and_asked("Which lobe is affected? Fluid is bright.")
    ('', 'Which lobe is affected? Fluid is bright.')
    """
    sentences = _sentences(text.strip())
    asking = [place for place, sentence in enumerate(sentences) if ASKS.search(sentence)]
    first = asking[-1] if asking else len(sentences) - 1
    while first > 0 and first - 1 in asking:
        first -= 1
    return "".join(sentences[:first]).strip(), "".join(sentences[first:]).strip()


def _sentences(text: str) -> list[str]:
    """Cut behind every sentence; joined together they are the text."""
    cuts, begin = [0], 0
    for found in SENTENCE.finditer(text):
        before, behind = text[begin : found.end()], text[found.end() :].lstrip()
        # a small letter goes on with the sentence, as after "approx. two weeks"
        if before.strip() and behind and not ("." in found[0] and (SHORT.search(before.rstrip()) or behind[0].islower())):
            cuts.append(found.end())
            begin = found.end()
    return [text[start:end] for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]
