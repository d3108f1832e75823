"""What is known of own cases before their answers: de-identified pictures, notes and record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.benchmarks.context import read_notes, read_record
from neuralmedbench.config.pipeline import SEQUENCE_ORDER
from neuralmedbench.files.cases import read_case
from neuralmedbench.files.templates import Templates
from neuralmedbench.records.case import CaseRecord, PictureFate, SliceRow, State
from neuralmedbench.records.items import ItemImage

NAMED_WINDOWS = ("blood", "bone")
"""Windows of CT that a label names: the one for the brain goes without saying."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is known of one case before its answer: its record, its words, and its pictures: cut from scans, or those that it came with."""

    case: CaseRecord
    images: tuple[SliceRow, ...]
    notes: tuple[str, ...]
    record: str
    pictures: tuple[ItemImage, ...] = ()

    @property
    def shown(self) -> tuple[ItemImage, ...]:
        """All pictures as an item has them."""
        return (*(_slice(row) for row in self.images), *self.pictures)


def read_sources(paths: Iterable[Path], slices: Sequence[SliceRow], templates: Templates) -> list[Source]:
    """Gather what the stages before left of each case.

    Parameters
    ----------
    paths : iterable of Path
        `case.json` of the de-identified cases, relative to the repository, quarantined ones too.
    slices : sequence of SliceRow
        The pictures of all cases that were cut from scans.
    templates : Templates
        Those of prompts; one words the health record.

    Returns
    -------
    list of Source
        The cases that have pictures, sorted by case id; their pictures by sequence and then by position (or as they came).

    Raises
    ------
    DataError
        If a note or a record is absent or does not fit.
    ConfigError
        If the template of the record is wrong.
    """
    cut: dict[str, list[SliceRow]] = defaultdict(list)
    for row in slices:
        cut[row.case_id].append(row)
    sources = []
    for path in paths:
        case = read_case(path)
        images = tuple(sorted(cut[case.case_id], key=_reading_order))
        loose = [item_image(picture, path.parent) for picture in case.pictures if picture.state is State.OK]
        if case.state is State.OK and (images or loose):
            notes, record = read_notes(case, path.parent), read_record(case, path.parent, templates)
            sources.append(Source(case=case, images=images, notes=notes, record=record, pictures=tuple(sorted(loose, key=_place))))
    return sorted(sources, key=lambda source: source.case.case_id)


def _reading_order(row: SliceRow) -> tuple[int, str, str, float]:
    return *_place(row), row.position_mm


def _place(row: SliceRow | ItemImage) -> tuple[int, str, str]:
    place = SEQUENCE_ORDER.index(row.sequence) if row.sequence in SEQUENCE_ORDER else len(SEQUENCE_ORDER)
    return place, row.sequence, row.plane


def item_image(picture: PictureFate, folder: Path) -> ItemImage:
    """Give a de-identified picture as an item has it; its folder is that to which its path is relative."""
    return ItemImage(
        image_id=picture.image_id,
        path=(folder / picture.path).as_posix(),
        sha256=picture.sha256,
        volume_sha256=picture.sha256,
        sequence=picture.sequence,
        plane=picture.plane,
        role="picture",
        position_mm=None,
        mm_per_px=None,
        oracle=False,
    )


def _slice(row: SliceRow) -> ItemImage:
    return ItemImage(
        image_id=row.image_id,
        path=row.path,
        sha256=row.sha256,
        volume_sha256=row.volume_sha256,
        sequence=row.sequence,
        plane=row.plane,
        role="slice" if len(row.tiles) == 1 else "montage",
        position_mm=row.position_mm,
        mm_per_px=row.mm_per_px,
        oracle=row.oracle,
        tiles_mm=tuple(tile.position_mm for tile in row.tiles) if len(row.tiles) > 1 else (),
        window=row.window_name if row.window_name in NAMED_WINDOWS else "",
    )
