"""How slices are chosen and shown: the settings of the slices stage."""

from __future__ import annotations

from dataclasses import dataclass

POLICIES = ("uniform", "content", "three_plane", "lesion")
LAYOUTS = ("single", "montage")


@dataclass(frozen=True, kw_only=True)
class SlicePolicy:
    """Which slices are shown, and how.

    Attributes
    ----------
    policy : str
        One of `POLICIES`.
    per_sequence : int
        Slices of a sequence (and of each plane, with `three_plane`).
    field_of_view_mm : float
        Side of the square that a slice is shown in.
    sent_px : int
        Side of a picture in pixels; 0 leaves a slice at its native in-plane resolution.
    layout : str
        `single` (a picture a slice) or `montage` (a picture a sequence).
    side_marker : bool
        Whether the letters R and L are drawn beside the brain.
    ct_windows : tuple of str
        Windows of `windows.CT_WINDOWS` in which CT is shown, one picture each.
    """

    policy: str
    per_sequence: int
    field_of_view_mm: float
    sent_px: int = 0
    layout: str = "single"
    side_marker: bool = False
    ct_windows: tuple[str, ...] = ("brain",)
