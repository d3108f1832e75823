"""Keys of `imaging` and `slices` in `config/config.yaml`, by which scans are normalised and pictures cut."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from neuralmedbench.config.section import Section

SEQUENCE_ORDER = ("T1w", "ceT1w", "FLAIR", "T2w", "SWI", "T2starw", "PDw", "dwi", "CT", "ceCT", "angio")
CtWindow = Literal["brain", "blood", "bone", "soft-tissue", "wide"]
"""Names of the CT windows."""


class ImagingConfig(Section):
    """Normalisation of the scans."""

    reference_order: tuple[str, ...] = Field(
        SEQUENCE_ORDER, description="Sequences in order of preference as the reference space of a case."
    )
    bias_grid_mm: float = Field(8.0, gt=1, description="Grid spacing for estimating the bias field (N4), mm.")
    registration_grid_mm: float = Field(3.0, gt=1, description="Grid spacing of the fixed image in rigid registration, mm.")


class SlicesConfig(Section):
    """Selection of the slices shown to a model."""

    policy: Literal["uniform", "content", "three_plane", "lesion"] = Field(
        "uniform",
        description="How slices are chosen. `uniform`: evenly over the brain. `content`: from every part of the brain the most informative"
        " slice (entropy and edges, no label). `three_plane`: evenly, axial, coronal and sagittal. `lesion`: around the position in the answers"
        " table; these pictures are marked as oracle everywhere, because their selection reveals the answer.",
    )
    per_sequence: int = Field(8, ge=1, le=64, description="Slices per sequence; per plane with `three_plane`.")
    field_of_view_mm: float = Field(230.0, gt=50, description="Side of the square in which a slice is shown, mm.")
    sent_px: int = Field(0, ge=0, le=4096, description="Side of a sent picture in pixels; 0: native in-plane resolution.")
    layout: Literal["single", "montage"] = Field(
        "single", description="`single`: one picture per slice; `montage`: one picture with all slices of a sequence, side by side."
    )
    side_marker: bool = Field(False, description="Whether the letters R and L are drawn beside the brain in axial and coronal pictures.")
    ct_windows: tuple[CtWindow, ...] = Field(
        ("brain",),
        min_length=1,
        description="CT windows, one picture each: brain 0 to 80 HU (with contrast agent 0 to 160), blood -20 to 180 HU, bone -800 to 2000 HU; soft-tissue -135 to 215 HU and wide"
        " -1024 to 1024 HU for models that see them on colours ([Arms](arms.md)).",
    )
