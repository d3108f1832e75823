"""Colours of figures: visible on both pages, distinguishable with any kind of colour blindness, and readable below text."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from neuralmedbench.figures.drawings import rate_colour, text_on
from neuralmedbench.figures.parts import CLASSES, COMMUNICATION
from neuralmedbench.figures.style import COLOURS, looks, luminance
from neuralmedbench.records.taxonomy import TAXONOMY, PaperClass

PAGES = ("#fbfaf8", "#14171b", "#ffffff", "#1a1e23")
"""Background colours of page and panels, light and dark (shared.css)."""

SEEN_AS = {
    "all cones": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
"""Simulation of colour blindness on linear RGB: Machado, Oliveira and Fernandes 2009, severity 1."""

APART = 12.0
"""Smallest distance in CIELAB (1976) between two colours of one shape, for every reader."""


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(colour: str, seen: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the CIELAB coordinates (D65) of a colour as a reader sees it."""
    parts = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    light = np.clip(seen @ np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ light / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: str, other: str) -> float:
    """Return the smallest distance of two colours over all readers."""
    return min(float(np.linalg.norm(lab(one, seen) - lab(other, seen))) for seen in SEEN_AS.values())


def too_close(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs (colour and shape) of one shape whose colours a reader cannot distinguish."""
    return [(a[0], b[0]) for a, b in combinations(pairs, 2) if a[1] == b[1] and distance(a[0], b[0]) < APART]


def test_the_check_finds_the_pair_that_is_known_to_be_one_colour_without_green_cones() -> None:
    assert too_close([("#d55e00", "o"), ("#b97a00", "o")]) == [("#d55e00", "#b97a00")]
    assert too_close([("#d55e00", "o"), ("#b97a00", "s")]) == []
    assert contrast("#e69f00", "#ffffff") < 3


def test_twenty_four_models_differ_by_shape_or_by_a_colour_that_everybody_tells_apart() -> None:
    found = looks(f"m{number:02d}" for number in range(24))
    assert too_close([(look.colour, look.marker) for name, look in found.items() if name != "prior"]) == []
    assert len({look.marker for look in list(found.values())[1:9]}) == 8


@pytest.mark.parametrize("page", PAGES)
def test_every_colour_of_a_mark_stands_out_from_the_page(page: str) -> None:
    assert [colour for colour in COLOURS if contrast(colour, page) < 3] == []


def test_classes_of_errors_never_differ_by_colour_alone() -> None:
    assert len({hatch for _, hatch in CLASSES.values()}) == len(CLASSES)
    assert set(CLASSES) == {*map(str, PaperClass), COMMUNICATION}
    assert {str(error.group) for error in TAXONOMY if error.paper_class is None} == {COMMUNICATION}, "a class would not be drawn"


def test_a_number_in_a_cell_can_be_read() -> None:
    cells = [rate_colour(share / 100) for share in range(101)]
    assert [colour for colour in cells if contrast(text_on(colour), colour) < 4.5] == []
