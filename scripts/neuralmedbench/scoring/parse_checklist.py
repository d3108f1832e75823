"""From a checklist to a prediction: what it names, what it saw, the evidence and what is missing."""

from __future__ import annotations

from neuralmedbench.records.checklist import SECTIONS
from neuralmedbench.records.items import Family
from neuralmedbench.records.scores import ParseStatus, Prediction
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.answer_words import MAX_CANDIDATES, MAX_WORDS, abstains, clean, confidence_of, diagnosis_of, in_order, status_of
from neuralmedbench.scoring.checklist import Candidate, read_candidate, read_candidates, read_checklist
from neuralmedbench.scoring.sections import Sections


def parse_checklist(text: str, family: Family) -> Prediction | None:
    """Read an answer that is a checklist.

    Parameters
    ----------
    text : str
        The answer.
    family : Family
        Of its item.

    Returns
    -------
    Prediction or None
        None when the answer is no checklist. `strict` when every section stands as asked, in order, and each candidate has its evidence;
        `failed` when it names nothing: what stands for or against a candidate is never a candidate itself.
    """
    sections = read_checklist(text, family)
    if sections is None:
        return None
    lesion = family is Family.LESION_RECOGNITION
    named, strict = _lesion(sections) if lesion else _differential(sections)
    if not named:
        return Prediction(parse_status=ParseStatus.FAILED)
    first = named[0][0]
    abstained = abstains(first) and not (lesion and normal_form(first) == "none")
    confidence, plain = confidence_of(sections)
    place = {name: clean(sections.text(name.upper())) for name in ("location", "side")}
    asked = SECTIONS.get(family, SECTIONS[Family.DIFFERENTIAL_DIAGNOSIS])
    fields = {"lesion": first, **place} if lesion else {name: words for name, words in place.items() if words}
    return Prediction(
        parse_status=status_of(strict and plain and sections.strict and in_order(sections, *asked)),
        differential=() if abstained else tuple(name for name, _ in named),
        findings=sections.text("FINDINGS"),
        rationale=sections.text("RATIONALE") or sections.text("REASONING"),
        fields=None if abstained else fields or None,
        confidence=None if abstained else confidence,
        abstained=abstained,
        seen=clean(sections.text("SEEN")),
        evidence=() if abstained else tuple(candidate.evidence for _, candidate in named),
        missing=clean(sections.text("MISSING")),
    )


def _differential(sections: Sections) -> tuple[list[tuple[str, Candidate]], bool]:
    candidates, strict = read_candidates(sections.lines.get("DIFFERENTIAL", [""]))
    named = [(diagnosis_of(row.name), row) for row in candidates if row.number or len(row.name.split()) <= MAX_WORDS]
    strict &= len(named) <= MAX_CANDIDATES and all(name == row.name for name, row in named)
    return [(name, row) for name, row in named if normal_form(name)][:MAX_CANDIDATES], strict


def _lesion(sections: Sections) -> tuple[list[tuple[str, Candidate]], bool]:
    row = read_candidate(sections.lines.get("LESION", []))
    name = clean(row.name)
    return [(name, row)] if normal_form(name) else [], row.as_asked
