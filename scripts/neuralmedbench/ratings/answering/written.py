"""From a filled form to the text that the prompt asks for: parsers and graders read it as any other answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from neuralmedbench.ratings.answering.files import FilledCandidate, FilledForm
from neuralmedbench.ratings.answering.forms import ANSWER, CANDIDATES, CONFIDENCE, NAMING, SIDES, AnswerForm
from neuralmedbench.records.questions import LETTERS

NOT_STATED = "not stated"
"""What stands in a section that a reader left empty: it is neither "nothing" nor "none", which would be statements."""

CANNOT_TELL = "cannot tell"
NO_LETTER = "none, I cannot tell"
EVIDENCE_LABEL = re.compile(r"\b(for|against)\s*[:：]", re.IGNORECASE)
EXPLAINS = re.compile(r"\s*[:：]\s+|\s+[-–—]\s+")
"""Signs behind which the parser takes an explanation to begin; in a reader's diagnosis they are part of its name."""


def problem_of(form: AnswerForm, filled: FilledForm, *, told: bool) -> str:
    """Say what of a filled form does not fit its form.

    Parameters
    ----------
    form : AnswerForm
        What was asked.
    filled : FilledForm
        What stands in it.
    told : bool
        Whether it names something; a reader who cannot tell names nothing.

    Returns
    -------
    str
        The problem without a word of what was written; empty when there is none.
    """
    return next(_problems(form, filled, told=told), "")


def _problems(form: AnswerForm, filled: FilledForm, *, told: bool) -> Iterator[str]:
    naming = next((name for name in form.sections if name in NAMING), "")
    most = CANDIDATES.get(naming, 0) if told else 0
    without_words = {*CANDIDATES, CONFIDENCE, *(() if told and not form.options else ("ANSWER",))}
    letters = LETTERS[: len(form.options)] if told else ""
    if len(filled.candidates) > most:
        yield f"{len(filled.candidates)} diagnoses, at most {most} are asked for"
    if not all(_line(one.name) and (form.evidence or not (one.speaks_for or one.against)) for one in filled.candidates):
        yield "a diagnosis without a name, or with evidence that is not asked for"
    if set(filled.texts) - (set(form.sections) - without_words):
        yield "a section that the question does not ask for"
    if filled.texts.get("SIDE", "") not in ("", *SIDES):
        yield f"a side that is none of {', '.join(SIDES)}"
    if filled.choice and (len(filled.choice) > 1 or filled.choice not in letters):
        yield f"an option that is not there; the options are {' '.join(letters) or 'none'}"
    if set(filled.fields) - {name for name, labels in form.fields.items() if labels and told}:
        yield "a field that the question does not ask for"
    elif any(label not in form.fields[name] for name, label in filled.fields.items()):
        yield "a label that the field does not offer"
    if filled.confidence is not None and not told:
        yield "a confidence, although the reader cannot tell"
    if told and not (filled.candidates or filled.choice or _line(filled.texts.get("ANSWER", "")) or any(filled.fields.values())):
        yield "its status is answered, but it names nothing"


def written(form: AnswerForm, filled: FilledForm, *, told: bool) -> str:
    """Write an answer as the prompt asks for it.

    Parameters
    ----------
    form : AnswerForm
        What was asked.
    filled : FilledForm
        What stands in it; :func:`problem_of` has nothing to say of it.
    told : bool
        As there. A reader who cannot tell abstains in the words that count as an abstention; a question of choice has no letter for that.

    Returns
    -------
    str
        The text. Line breaks become blanks, bars in evidence become slashes; nothing else of the reader's words is changed but signs in the
        name of a diagnosis that would end it.
    """
    if form.fields:
        stated = {name: (filled.fields.get(name) if labels else filled.confidence) for name, labels in form.fields.items()}
        return json.dumps(stated, ensure_ascii=False)
    return "\n".join(_section(name, form, filled, told=told) for name in form.sections)


def _section(name: str, form: AnswerForm, filled: FilledForm, *, told: bool) -> str:
    if name == CONFIDENCE:
        return f"{name}: {(filled.confidence or 0.0) if told else 0.0:g}" if filled.confidence is not None or not told else f"{name}:"
    if name in CANDIDATES:
        named = filled.candidates if told else [FilledCandidate(name=CANNOT_TELL)]
        lines = [_candidate(one, evidence=form.evidence) for one in named]
        if name == "LESION":
            return f"{name}: {lines[0]}"
        return "\n".join([f"{name}:", *(f"{rank}. {line}" for rank, line in enumerate(lines, start=1))])
    if name in ANSWER:
        if form.options:
            return f"{name}: {filled.choice or NO_LETTER}"
        return f"{name}: {_line(filled.texts.get(name, '')) if told else CANNOT_TELL}"
    return f"{name}: {_line(filled.texts.get(name, '')) or NOT_STATED}"


def _candidate(one: FilledCandidate, *, evidence: bool) -> str:
    name = EXPLAINS.sub(", ", _line(one.name).strip(" .,;:-–—").replace("|", "/"))
    if not evidence:
        return name
    for_it, against = (EVIDENCE_LABEL.sub(r"\1", _line(words).replace("|", "/")) or NOT_STATED for words in (one.speaks_for, one.against))
    return f"{name} | for: {for_it} | against: {against}"


def _line(text: str) -> str:
    return " ".join(text.split())
