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

PLACES = ("PICTURE", "BOX")
"""Sections that the answer form `evidence` adds to a checklist: the picture that shows the main abnormality best, and the box around it there."""


def with_places(sections: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sections of a checklist with `PLACES` after the side; none stay none."""
    after = sections.index("SIDE") + 1 if sections else 0
    return (*sections[:after], *PLACES, *sections[after:]) if sections else ()
