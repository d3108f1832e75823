"""Keys of `config/layouts/<family>.yaml`: how text and pictures are laid out in a message for a family of models, each with its source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from neuralmedbench.config.imaging import CtWindow
from neuralmedbench.config.load import check, nearest, read_yaml
from neuralmedbench.config.section import Name, Section
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.case import CT_SEQUENCES, Plane
from neuralmedbench.records.coordinates import Convention
from neuralmedbench.records.items import NEEDED, Item, ItemImage, evenly_spaced, evidence_images, with_only

COMMON = "common"
"""The layout of every arm without one of its own; its file states it, the code has it."""
CASE, PICTURES, QUESTION = "case", "pictures", "question"
Part = Literal["case", "pictures", "question"]
COMMON_ORDER: tuple[Part, ...] = ("case", "question", "pictures")


class LayoutConfig(Section):
    """`config/layouts/<family>.yaml`: how the maker of a family of models shows pictures and text to it; what no source says stays as in `common`.

    The comment above a value says where the maker documents it.
    """

    title: str = Field(description="Name shown in the report.")
    order: tuple[Part, ...] = Field(
        COMMON_ORDER,
        description="Order of `case` (notes and record), `pictures` and `question` (with the form of the answer), the case before the question.",
    )
    label: str = Field(
        "",
        description="Name of a picture, with `{number}` for its number in the request; what `label_policy` adds follows it. Absent: as in `common`.",
    )
    label_after: bool = Field(False, description="Whether each picture stands before its label.")
    windows: tuple[CtWindow, CtWindow, CtWindow] | None = Field(
        None,
        description="Windows of `slices.ct_windows` on red, green and blue of one picture a slice; absent: each window is a grey picture.",
    )
    square_px: int | None = Field(
        None,
        ge=8,
        le=4096,
        description="Pictures are padded with black to a square and scaled to this number of pixels a side; absent: as cut.",
    )
    plane: Plane | None = Field(None, description="The only plane shown; absent: all.")
    most_pictures: int | None = Field(
        None,
        ge=1,
        description="Most pictures of the case in a request, evenly chosen, options not counted; absent: `max_images` of the model.",
    )
    coordinates: tuple[Convention, Literal["xy", "yx"]] | None = Field(
        None,
        description="Unit and order of coordinates in answers: `fraction` (0 to 1) or `thousandths` of width and height, `pixels` of the picture as"
        " sent, `shrunk_pixels` as the model's own processing scales it. Absent: the maker does not say.",
    )

    @field_validator("order")
    @classmethod
    def _has_each_part_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if sorted(value) != sorted(COMMON_ORDER) or value.index(CASE) > value.index(QUESTION):
            message = "case, pictures and question, each once, the case before the question"
            raise ValueError(message)
        return value

    @field_validator("label")
    @classmethod
    def _numbers(cls, value: str) -> str:
        if value and (value.count("{number}") != 1 or value.replace("{number}", "").count("{")):
            message = "{number} must stand in it once"
            raise ValueError(message)
        return value

    @field_validator("windows")
    @classmethod
    def _differ(cls, value: tuple[str, str, str] | None) -> tuple[str, str, str] | None:
        if value and len(set(value)) < len(value):
            message = "red, green and blue need different windows"
            raise ValueError(message)
        return value

    @property
    def colours(self) -> str:
        """The windows in the label of a picture on colours; empty without windows."""
        return ", ".join(f"{colour} {window}" for colour, window in zip(("red", "green", "blue"), self.windows or (), strict=False))


@dataclass(frozen=True)
class Layout:
    """A layout and its file.

    Attributes
    ----------
    name : str
        Name of the family, that of the file.
    path : Path
        Its file.
    config : LayoutConfig
        What it says.
    """

    name: str
    path: Path
    config: LayoutConfig

    @property
    def alters(self) -> bool:
        """True if pictures are made anew: windows on colours, or another size."""
        return self.config.windows is not None or self.config.square_px is not None

    def chosen(self, images: Iterable[ItemImage]) -> tuple[ItemImage, ...]:
        """Return the pictures of a case in the plane of the layout, and no more than it allows, evenly spaced."""
        config, images = self.config, tuple(images)
        if config.plane:
            images = tuple(image for image in images if image.plane not in tuple(Plane) or image.plane == config.plane)
        if config.most_pictures:
            needed = sum(image.role in NEEDED for image in images)
            others = evenly_spaced([image for image in images if image.role not in NEEDED], max(0, config.most_pictures - needed))
            images = tuple(image for image in images if image.role in NEEDED or image in others)
        return images

    def item_as_shown(self, item: Item) -> Item:
        """Return an item with the pictures whose places the layout fills, as they were cut: of a CT slice on colours the one for red."""
        images = evidence_images(item)
        if windows := self.config.windows:
            # the record of a picture does not name the brain window
            images = tuple(
                image
                for image in images
                if image.sequence not in CT_SEQUENCES or image.position_mm is None or (image.window or "brain") == windows[0]
            )
        return with_only(item, {image.image_id for image in self.chosen(images)})


def load_layout(folder: Path, family: Name, name: str) -> Layout:
    """Read a layout.

    Parameters
    ----------
    folder : Path
        The folder `config/`.
    family : str
        Name of the layout.
    name : str
        What names it, for messages.

    Returns
    -------
    Layout
        The layout.

    Raises
    ------
    ConfigError
        If there is no such file, or something in it is wrong, as in `check` and `read_yaml`.
    """
    path = folder / "layouts" / f"{family}.yaml"
    known = sorted(entry.stem for entry in path.parent.glob("*.yaml"))
    if family not in known:
        message = f"{name}: there is no layout {family!r} in {path.parent.as_posix()}{nearest(family, known)}"
        raise ConfigError(message)
    return Layout(family, path, check(LayoutConfig, read_yaml(path), path.as_posix()))
