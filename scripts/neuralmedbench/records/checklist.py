"""Sections of the checklist, the default answer form of open items, by family."""

from __future__ import annotations

from neuralmedbench.records.items import Family

SECTIONS: dict[Family, tuple[str, ...]] = {
    Family.DIFFERENTIAL_DIAGNOSIS: ("SEEN", "LOCATION", "SIDE", "FINDINGS", "DIFFERENTIAL", "CONFIDENCE", "MISSING", "RATIONALE"),
    Family.LESION_RECOGNITION: ("SEEN", "LESION", "LOCATION", "SIDE", "FINDINGS", "CONFIDENCE", "MISSING"),
    Family.RATIONALE_GENERATION: ("SEEN", "LOCATION", "SIDE", "FINDINGS", "DIFFERENTIAL", "CONFIDENCE", "MISSING", "RATIONALE"),
}
"""Sections per family with a checklist, in the order of the form."""

ONLY_IN_CHECKLISTS = ("SEEN", "MISSING")
"""Sections that distinguish a checklist from a short answer."""
