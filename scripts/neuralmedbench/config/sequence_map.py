"""The key `sequence_map` of a benchmark: which descriptions mean which kind of scan, for all its cases."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from neuralmedbench.config.section import Section

Pattern = str | int | float
"""A pattern for a text, or a number that a value must equal."""
AGENT = r"^[A-Za-z0-9]+$"
"""An agent is one word, because it becomes part of a BIDS name."""


class MappedSequence(Section):
    """One entry of `sequence_map`."""

    criteria: dict[str, Pattern | tuple[Pattern, ...]] = Field(
        min_length=1,
        description="Patterns by DICOM keyword (`SeriesDescription`, `ProtocolName`, `ImageType`, `EchoTime`...); for NIfTI by key of its sidecar,"
        " or `FileName` (without suffix). `*` stands for any letters, `?` for one, upper and lower case are equal; put patterns in quotes."
        " A number must be equal. All keys must fit; of a list one entry.",
    )
    sequence: Literal["T1w", "ceT1w", "T2w", "FLAIR", "dwi", "ADC", "SWI", "T2starw", "PDw", "CT", "ceCT", "none"] | None = Field(
        None, description="Kind of the series that fit; `none` leaves them out. Absent: the kind that is recognised."
    )
    contrast_agent: str | None = Field(
        None,
        pattern=AGENT,
        description="Contrast agent that was given although the headers do not say so, in one word: T1w becomes ceT1w, and CT ceCT.",
    )

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.sequence is None and self.contrast_agent is None:
            message = "give `sequence`, `contrast_agent`, or both"
            raise ValueError(message)
        if self.contrast_agent and self.sequence not in {None, "ceT1w", "ceCT"}:
            message = f"a contrast agent is for `ceT1w` and `ceCT`, not for {self.sequence}"
            raise ValueError(message)
        return self
