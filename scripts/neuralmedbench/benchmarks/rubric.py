"""Rubric criteria built from the answers of a case: what a good answer says, and what it must not say."""

from __future__ import annotations

from neuralmedbench.records.items import Criterion, Family, Gold

SIDE_WORDS = {"left": "on the left", "right": "on the right", "bilateral": "on both sides", "midline": "in the midline"}

LESION_FAMILIES = frozenset({Family.LESION_RECOGNITION, Family.RATIONALE_GENERATION})
"""Families whose rubric asks for the lesion; the others ask for findings and alternatives."""


def criteria(family: Family, gold: Gold) -> tuple[Criterion, ...]:
    """Build the rubric of one item.

    Parameters
    ----------
    family : Family
        Family of the item.
    gold : Gold
        What is right for it.

    Returns
    -------
    tuple of Criterion
        `states_side`, `states_location`, `names_signal_<sequence>`, `mentions_finding_<n>`, `considers_<n>`,
        `argues_<n>` earn points; `must_not_<n>` costs points when the answer says it.
    """
    rows: list[Criterion] = []
    if gold.lesion and family in LESION_FAMILIES:
        if gold.lesion.side:
            rows.append(Criterion(criterion="states_side", text=f"States that the lesion lies {SIDE_WORDS[gold.lesion.side]}.", points=1.0))
        rows.append(Criterion(criterion="states_location", text=f"Places the lesion in: {gold.lesion.location}.", points=1.0))
        for sequence, signal in sorted(gold.lesion.behaviour.items()):
            text = f"Says that the lesion is {signal} on {sequence}."
            rows.append(Criterion(criterion=f"names_signal_{sequence.lower()}", text=text, points=0.5))
    if family is not Family.LESION_RECOGNITION:
        rows += _numbered("mentions_finding", "Mentions the finding: {}", gold.findings, 1.0)
        alternatives = tuple(term for term in gold.differentials if term != gold.answer)
        rows += _numbered("considers", "Considers: {}", alternatives, 0.5)
    if family is Family.RATIONALE_GENERATION:
        rows += _numbered("argues", "Argues: {}", gold.rationale, 1.0)
    rows += _numbered("must_not", "Says: {}", gold.must_not, -1.0)
    return tuple(rows)


def _numbered(name: str, template: str, statements: tuple[str, ...], points: float) -> list[Criterion]:
    return [
        Criterion(criterion=f"{name}_{number}", text=template.format(statement.rstrip(".") + "."), points=points)
        for number, statement in enumerate(statements, start=1)
    ]
