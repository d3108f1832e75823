"""Measures of models that look through scans: scripts whose values were worked out by hand."""

from __future__ import annotations

import pytest

from fixtures.viewing import VIEWER, action, final, show
from neuralmedbench.records.items import Lesion
from neuralmedbench.records.views import view_steps
from neuralmedbench.tables.viewer import viewer_measures

LESION = Lesion(location="putamen", side="left", behaviour={"T1w": "isointense"}, size_mm=12.0, position_mm=(50.0, 20.0, 16.0))
"""FLAIR slices 11, 12 and 13 (z = 10, 15 and 20 mm) are within 6 mm of its centre; T1w does not show it."""
SCRIPTS = {
    "scrolls to the lesion": [show("FLAIR", 3), show("FLAIR", 8), show("FLAIR", 8), show("FLAIR", 12), final("stroke")],
    "answers at once": [final("stroke")],
    "looks beside it": [
        show("FLAIR", 1),
        show("FLAIR", 25),
        show("T1w", 57),
        action("COMPARE", sequences=["FLAIR", "T1w"], plane="axial", slice=11),
        final("stroke"),
    ],
    "zooms": [
        show("FLAIR", 12, zoom=4, at=[100, 100]),
        show("FLAIR", 12, zoom=4, at=[750, 600]),
        action("MEASURE", sequence="FLAIR", plane="axial", slice=12, points=[[700, 600], [760, 600]]),
        final("stroke"),
    ],
}
NAMES = ("lesion_found", "views_on_lesion", "views_to_lesion", "wasted_views", "corrections", "views")
EXPECTED = {
    "scrolls to the lesion": (1.0, 1 / 4, 4.0, 1 / 4, 0.0, 4.0),
    "answers at once": (0.0, None, None, None, None, 0.0),
    "looks beside it": (1.0, 1 / 4, 3.0, 1 / 4, 1 / 4, 4.0),
    "zooms": (1.0, 1 / 2, 2.0, 0.0, 0.0, 2.0),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_have_the_values_that_were_worked_out_by_hand(script: str) -> None:
    found = viewer_measures(view_steps(VIEWER, SCRIPTS[script]), LESION)
    assert found == pytest.approx(dict(zip(NAMES, EXPECTED[script], strict=True)), abs=1e-9)


@pytest.mark.parametrize("lesion", [None, Lesion(location="putamen", side="left", behaviour={})])
def test_without_a_lesion_of_known_place_nothing_is_said_about_it(lesion: Lesion | None) -> None:
    found = viewer_measures(view_steps(VIEWER, SCRIPTS["scrolls to the lesion"]), lesion)
    assert [found[name] for name in NAMES[:3]] == [None] * 3
    assert found["wasted_views"] == 1 / 4
