"""The checklist in which open items are answered by default: its sections by family."""

from __future__ import annotations

from neuralmedbench.records.items import Family

SECTIONS: dict[Family, tuple[str, ...]] = {
    Family.DIFFERENTIAL_DIAGNOSIS: ("SEEN", "LOCATION", "SIDE", "FINDINGS", "DIFFERENTIAL", "CONFIDENCE", "MISSING", "RATIONALE"),
    Family.LESION_RECOGNITION: ("SEEN", "LESION", "LOCATION", "SIDE", "FINDINGS", "CONFIDENCE", "MISSING"),
    Family.RATIONALE_GENERATION: ("SEEN", "LOCATION", "SIDE", "FINDINGS", "DIFFERENTIAL", "CONFIDENCE", "MISSING", "RATIONALE"),
}
"""Sections of the checklist of each family that has one, in the order in which they are asked for; a family leaves out what it does not ask."""

ONLY_IN_CHECKLISTS = ("SEEN", "MISSING")
"""Sections by which a checklist is told from a short answer."""
