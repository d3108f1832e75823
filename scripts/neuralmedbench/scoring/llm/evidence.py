"""The evidence of a case, as a grader without its pictures is told it."""

from __future__ import annotations

from neuralmedbench.records.items import Lesion
from neuralmedbench.scoring.llm.task import Subject


def case_evidence(subject: Subject) -> list[str]:
    """List what is known of a case: history, what a dialogue revealed, findings, lesion, and what clinicians argue.

    Parameters
    ----------
    subject : Subject
        The answer; its item and gold are read.

    Returns
    -------
    list of str
        One entry a piece of evidence. No picture is among them: what is to be seen is told by the findings of the reference.
    """
    item, gold = subject.item, subject.gold
    told = [item.record, item.notes, *(turn.reveal for turn in item.turns)]
    found = [f"Finding: {finding}" for finding in gold.findings]
    if gold.findings:
        found.append("The list of findings is complete." if gold.findings_complete else "The list of findings may be incomplete.")
    found += [_lesion_line(gold.lesion)] if gold.lesion else []
    found += [f"Argument for the reference: {statement}" for statement in gold.rationale]
    found += [f"To be considered: {term}" for term in gold.differentials]
    found += [f"Wrong or dangerous to say: {statement}" for statement in gold.must_not]
    return [entry for entry in (text.strip() for text in (*told, *found)) if entry]


def _lesion_line(lesion: Lesion) -> str:
    signals = "; ".join(f"{signal} on {sequence}" for sequence, signal in sorted(lesion.behaviour.items()))
    parts = [f"Lesion: {lesion.location}", f"side: {lesion.side or 'not stated'}", signals]
    return ", ".join(part for part in parts if part)
