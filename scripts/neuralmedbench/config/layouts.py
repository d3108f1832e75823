"""Keys of `config/layouts/<family>.yaml`: how text and pictures are laid out in a message for a family of models, each with its source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

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
COMMON_ORDER = (CASE, QUESTION, PICTURES)

SOURCE = "Where the maker of the models documents it: document or notebook, and what it says there."


class OrderLayout(Section):
    """Order of the parts of a message."""

    value: tuple[Literal["case", "pictures", "question"], ...] = Field(
        description="`case` (notes and record), `pictures`, and `question` (question and form of the answer), each once, the case before the question."
    )
    source: str = Field(min_length=1, description=SOURCE)

    @field_validator("value")
    @classmethod
    def _has_each_part_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if sorted(value) != sorted(COMMON_ORDER) or value.index(CASE) > value.index(QUESTION):
            message = "case, pictures and question, each once, the case before the question"
            raise ValueError(message)
        return value


class LabelsLayout(Section):
    """Labels of the pictures."""

    name: str = Field(
        description="How a picture is called, with `{number}` for its number in the request; what the benchmark adds (`label_policy`) follows it."
    )
    place: Literal["before", "after"] = Field(description="Whether a label stands before its picture or after it.")
    source: str = Field(min_length=1, description=SOURCE)

    @field_validator("name")
    @classmethod
    def _numbers(cls, value: str) -> str:
        if value.count("{number}") != 1 or value.replace("{number}", "").count("{"):
            message = "{number} must stand in it once"
            raise ValueError(message)
        return value


class WindowsLayout(Section):
    """CT windows on the colours of one picture."""

    red: CtWindow = Field(description="Window of `slices.ct_windows` on the red channel.")
    green: CtWindow = Field(description="Window on the green channel.")
    blue: CtWindow = Field(description="Window on the blue channel.")
    source: str = Field(min_length=1, description=SOURCE)

    @model_validator(mode="after")
    def _are_three(self) -> Self:
        if len(set(self.names)) < 3:
            message = "red, green and blue need different windows"
            raise ValueError(message)
        return self

    @property
    def names(self) -> tuple[str, str, str]:
        """The windows on red, green and blue."""
        return self.red, self.green, self.blue

    @property
    def words(self) -> str:
        """The windows in the label of a picture."""
        return f"red {self.red}, green {self.green}, blue {self.blue}"


class SizeLayout(Section):
    """Size of the pictures."""

    square_px: int = Field(
        ge=8, le=4096, description="Pictures are padded with black to a square and scaled to this number of pixels a side."
    )
    source: str = Field(min_length=1, description=SOURCE)


class PlaneLayout(Section):
    """Plane of the slices."""

    value: Plane = Field(description="Slices of the other planes are left out.")
    source: str = Field(min_length=1, description=SOURCE)


class MostLayout(Section):
    """Most pictures of a request."""

    value: int = Field(ge=1, description="Most pictures of the case in a request, evenly chosen; answer options are never left out.")
    source: str = Field(min_length=1, description=SOURCE)


class CoordinatesLayout(Section):
    """Coordinates in answers; for questions that ask for them."""

    unit: Convention = Field(
        description="`fraction` (0 to 1) or `thousandths` (0 to 1000) of width and height, `pixels` of the picture as sent, or `shrunk_pixels` as the"
        " model's own processing scales it."
    )
    order: Literal["xy", "yx"] = Field(description="Whether x or y comes first.")
    source: str = Field(min_length=1, description=SOURCE)


class LayoutConfig(Section):
    """`config/layouts/<family>.yaml`: how the maker of a family of models shows pictures and text to it; what no source says stays as in `common`."""

    title: str = Field(description="Name shown in the report.")
    order: OrderLayout | None = Field(None, description="Order of case, pictures and question; absent: as in `common`.")
    labels: LabelsLayout | None = Field(None, description="Names of the pictures and the place of their labels; absent: as in `common`.")
    windows: WindowsLayout | None = Field(
        None, description="CT windows on red, green and blue of one picture a slice; absent: each window is a grey picture."
    )
    size: SizeLayout | None = Field(None, description="Size of the pictures; absent: as they are cut.")
    plane: PlaneLayout | None = Field(None, description="The only plane shown; absent: all.")
    most_pictures: MostLayout | None = Field(
        None, description="Most pictures of a request; absent: all that `max_images` of the model allows."
    )
    coordinates: CoordinatesLayout | None = Field(None, description="Coordinates of points and boxes; absent: the maker does not say.")


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
    def order(self) -> tuple[str, ...]:
        """Order of the parts of a message."""
        return self.config.order.value if self.config.order else COMMON_ORDER

    @property
    def label_name(self) -> str:
        """Name of a picture, with `{number}`; empty for that of `common`."""
        return self.config.labels.name if self.config.labels else ""

    @property
    def labels_after(self) -> bool:
        """True if each picture is shown before its label."""
        return self.config.labels is not None and self.config.labels.place == "after"

    @property
    def alters(self) -> bool:
        """True if pictures are made anew: windows on colours, or another size."""
        return self.config.windows is not None or self.config.size is not None

    def chosen(self, images: Iterable[ItemImage]) -> tuple[ItemImage, ...]:
        """Return the pictures of a case in the plane of the layout, and no more than it allows, evenly spaced."""
        config, images = self.config, tuple(images)
        if config.plane:
            images = tuple(image for image in images if image.plane not in tuple(Plane) or image.plane == config.plane.value)
        if config.most_pictures:
            needed = sum(image.role in NEEDED for image in images)
            others = evenly_spaced([image for image in images if image.role not in NEEDED], max(0, config.most_pictures.value - needed))
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
                if image.sequence not in CT_SEQUENCES or image.position_mm is None or (image.window or "brain") == windows.red
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
