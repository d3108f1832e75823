"""Items of local cases: one per case and family, with the known lesion on each picture: whether it is shown, how wide it is, the box around it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy as np

from neuralmedbench.benchmarks.answers_table import AnswerRow, read_answers
from neuralmedbench.benchmarks.gold import add_findings_of_others, check_findings, disclosure, gold_of, is_normal, lesion_of, unknown_terms
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.sources import CaseSource
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import read_case_table
from neuralmedbench.files.known_lesions import LesionMask, read_lesion_mask
from neuralmedbench.records.case import Plane, SliceRow, Tile
from neuralmedbench.records.coordinates import half_width_px, to_fractions, to_picture
from neuralmedbench.records.items import NO_LESION, Disclosure, Family, Gold, Item, Lesion, LesionOnSlice, Level, Runner, ShownLesion, Turn
from neuralmedbench.records.vocabulary import Vocabulary

QUESTIONS = {
    Family.DIFFERENTIAL_DIAGNOSIS: "What is the most likely diagnosis? Rank up to five diagnoses.",
    Family.LESION_RECOGNITION: "Is there a lesion? If so, what type of lesion is it, and where does it lie?",
    Family.RATIONALE_GENERATION: (
        "Which diagnosis would you defend in a case conference? Name the findings that speak for it and what speaks against the"
        " alternatives."
    ),
}
ORACLE_SLICES = "oracle_slices"
"""Tag of an item whose slices were chosen using the answer."""
FIRST_TURN = "What do you consider at this point? Rank up to five diagnoses."
NEXT_TURN = "Revise your differential in the light of what is new. Rank up to five diagnoses."
INVISIBLE = "isointense"
Vector = tuple[float, float, float]


def build_cases(
    benchmark: str, config: BenchmarkConfig, sources: Sequence[CaseSource], answers: Mapping[str, AnswerRow], vocabulary: Vocabulary
) -> BenchmarkItems:
    """Build the items of a benchmark of cases: scans, or pictures of patients.

    Parameters
    ----------
    benchmark : str
        Its name.
    config : BenchmarkConfig
        Its yaml.
    sources : sequence of CaseSource
        The cases.
    answers : mapping of str to AnswerRow
        The answers table; a case without a row gets its item on the diagnosis and no gold.
    vocabulary : Vocabulary
        By which a diagnosis and a place are known.

    Returns
    -------
    BenchmarkItems
        Items, gold and disclosures.

    Raises
    ------
    DataError
        If a dialogue has no note or a wrong number of turn leaders, a finding names the diagnosis, or a lesion mask cannot be read.
    """
    items: list[Item] = []
    gold: list[Gold] = []
    shown: list[Disclosure] = []
    lesions: list[ShownLesion] = []
    for source in sources:
        answer = answers.get(source.case.case_id)
        mask = read_lesion_mask(Path(config.lesion_masks), source.case.case_id) if answer and config.lesion_masks else None
        lesion = lesion_of(answer, vocabulary) if answer else None
        on_pictures = picture_lesions(lesion, source.images, mask)
        # the position of a picture that was not cut from a scan is unknown
        seen = lesion_shown(lesion, mask, on_pictures) if source.images else None
        asked = _items(benchmark, config, source, answer, vocabulary, seen=seen)
        items += asked
        if answer is None:
            continue
        lesions += on_pictures
        if source.oracle:
            # the spacing of a scan's slices is better known from all of them
            beside = {row.image_id for row in source.oracle}
            lesions += [row for row in picture_lesions(lesion, (*source.images, *source.oracle), mask) if row.image_id in beside]
        placed = with_place(lesion, mask)
        for item in asked:
            gold.append(replace(_gold(item, answer, vocabulary), lesion=placed))
            if answer.findings and item.family is not Family.LESION_RECOGNITION:  # findings would contain its answer
                if not is_normal(answer, vocabulary):  # normal findings can hardly be written without the word
                    check_findings(gold[-1], vocabulary)
                shown.append(disclosure(gold[-1]))
    oracle = tuple(row for source in sources for row in source.oracle)
    built = BenchmarkItems(tuple(items), tuple(gold), tuple(shown), tuple(lesions), oracle=oracle)
    return add_findings_of_others(built, config.arms, vocabulary).checked(benchmark)


def _items(
    benchmark: str,
    config: BenchmarkConfig,
    source: CaseSource,
    answer: AnswerRow | None,
    vocabulary: Vocabulary,
    *,
    seen: bool | None,
) -> list[Item]:
    base = Item(
        item_id="",
        case_id=source.case.case_id,
        patient_id=source.case.patient_id,
        benchmark=benchmark,
        axis=config.axis,
        family=Family.DIFFERENTIAL_DIAGNOSIS,
        level=answer.level if answer else Level.NONE,
        runner=Runner.OPEN,
        question="",
        images=source.shown,
        label_policy=config.label_policy,
        notes="\n\n".join(source.notes),
        record=source.record,
        tags=(ORACLE_SLICES,) if any(row.oracle for row in source.images) else (),
    )
    if answer:
        base = replace(base, lesion_shown=seen, tags=(*base.tags, *unknown_terms(answer, vocabulary)))
    # lesion items need a location, or a complete normal reading, whose answer is that there is none
    families = [Family.DIFFERENTIAL_DIAGNOSIS]
    if answer and (answer.lesion_location or (answer.findings_complete and is_normal(answer, vocabulary))):
        families.append(Family.LESION_RECOGNITION)
    if answer and answer.rationale and answer.level is not Level.DIALOGUE:
        families.append(Family.RATIONALE_GENERATION)
    items = [
        replace(base, item_id=f"{benchmark}/{base.case_id}/{family}", family=family, question=QUESTIONS[family]) for family in families
    ]
    if base.level is Level.DIALOGUE:
        items[0] = _dialogue(items[0], source)
    return items


def _dialogue(item: Item, source: CaseSource) -> Item:
    """Reveal one note per turn, in chronological order; the last turn shows record and pictures."""
    if not source.notes:
        message = f"case {item.case_id}: a case of level dialogue needs at least one note; give it another level"
        raise DataError(message)
    questions = [FIRST_TURN, *[NEXT_TURN] * len(source.notes)]
    image_ids = tuple(image.image_id for image in item.images)
    turns = [Turn(reveal=note, question=question) for note, question in zip(source.notes, questions, strict=False)]
    turns.append(Turn(reveal=source.record, question=NEXT_TURN, image_ids=image_ids))
    return replace(item, runner=Runner.DIALOGUE, turns=tuple(turns), notes="", record="")


def _gold(item: Item, answer: AnswerRow, vocabulary: Vocabulary) -> Gold:
    gold = gold_of(item, answer, vocabulary)
    if item.family is Family.LESION_RECOGNITION and gold.lesion is None:
        gold = replace(gold, answer=NO_LESION, aliases=("normal",), icd10="", differentials=())
    if item.runner is not Runner.DIALOGUE:
        return replace(gold, turn_leaders=())
    if answer.turn_leaders and len(answer.turn_leaders) != len(item.turns):
        message = (
            f"case {item.case_id}, column turn_leaders: expected {len(item.turns)} diagnoses (one for each of"
            f" {len(item.turns) - 1} notes and one for the pictures), found {len(answer.turn_leaders)}"
        )
        raise DataError(message)
    return gold


def answers_of(config: BenchmarkConfig, table: Path) -> dict[str, AnswerRow]:
    """Read the answers of a benchmark with the case table `table`; empty if its YAML names none. Errors as in `read_answers` and `check_known`."""
    answers = read_answers(Path(config.answers)) if config.answers else {}
    check_known(answers, table)
    return answers


def check_known(answers: Mapping[str, AnswerRow], table: Path) -> None:
    """Reject answers for cases that the case table does not list: such a row would silently leave a case without gold."""
    listed = {row.case_id for row in read_case_table(table)}
    if unknown := [number for number, case_id in enumerate(answers, start=1) if case_id not in listed]:
        numbers = ", ".join(str(number) for number in unknown[:10])
        message = (
            f"the answers table has {len(unknown)} rows whose case is not in {table.as_posix()}: rows {numbers} below the first line;"
            " correct their case_id"
        )
        raise DataError(message)


def lesion_shown(lesion: Lesion | None, mask: LesionMask | None, pictures: Iterable[ShownLesion]) -> bool | None:
    """Return whether a slice passes through the lesion on a sequence that shows it; None without a lesion or its place."""
    if lesion is None or (lesion.position_mm is None and mask is None):
        return None
    return any(row.shown for row in pictures)


def with_place(lesion: Lesion | None, mask: LesionMask | None) -> Lesion | None:
    """Return the lesion with the middle and the widths of its marked voxels, where the answers table gives no place."""
    if lesion is None or mask is None or lesion.position_mm is not None:
        return lesion
    place = mask.place
    return replace(lesion, position_mm=place.position_mm, extent_mm=place.extent_mm)


def picture_lesions(lesion: Lesion | None, slices: Sequence[SliceRow], mask: LesionMask | None = None) -> list[ShownLesion]:
    """Return for every picture of a case whether it shows the lesion, its width in pixels and its box; empty without a known place.

    With a mask, a slice shows the lesion where at least half of its thickness is marked (of a thinner lesion: half of the lesion), and the
    box is that of these pixels. Without one the lesion is taken as an ellipsoid about its centre: a slice shows the lesion if its plane is within half the lesion's width across it (its diameter, where only that is known) of the centre
    (mm, LPS+), or within half the scan's slice spacing if that is larger (slices are as thick as their spacing), unless the lesion is
    isointense on that sequence. The width in pixels is that of a sphere of the lesion's diameter, the box that of an ellipsoid of its
    extent, cut where the slice, with its thickness, is nearest to the centre. A diameter alone gives no box.
    """
    if lesion is None or (lesion.position_mm is None and mask is None):
        return []
    stacks: dict[tuple[str, str, str], list[SliceRow]] = defaultdict(list)
    for row in slices:
        stacks[row.sequence, row.plane, row.volume_sha256].append(row)
    spacing = {key: slice_spacing_mm(rows) for key, rows in stacks.items()}
    shown = []
    for row in slices:
        apart = spacing[row.sequence, row.plane, row.volume_sha256]
        if mask is not None and row.size_px is not None and all(tile.corner_mm for tile in row.tiles):
            shown.append(_of_mask(lesion, mask, row, row.size_px, apart))
        elif lesion.position_mm is not None:
            shown.append(_of_picture(lesion, lesion.position_mm, row, apart))
    return shown


def slice_spacing_mm(rows: Sequence[SliceRow]) -> float:
    """Return the spacing of a scan's native slices in mm, from two slices shown; 0 if there is only one."""
    ordered = sorted({(tile.index, tile.position_mm) for row in rows for tile in row.tiles})
    spacings = [abs((b - a) / (two - one)) for (one, a), (two, b) in pairwise(ordered) if two != one]
    return min(spacings, default=0.0)


def _of_picture(lesion: Lesion, centre_mm: Vector, row: SliceRow, spacing_mm: float) -> ShownLesion:
    axis, size = "xyz".index(Plane(row.plane).axis), lesion.size_mm or 0.0
    across = lesion.extent_mm[axis] if lesion.extent_mm else size
    distances = [abs(tile.position_mm - centre_mm[axis]) for tile in row.tiles]
    visible = lesion.behaviour.get(row.sequence) != INVISIBLE
    shown = [visible and distance <= max(across, spacing_mm) / 2 for distance in distances]
    # chord of a sphere at the nearest point of the slice, in pixels
    nearest = [max(distance - spacing_mm / 2, 0.0) for distance in distances]
    width = 2 * sqrt(max((size / 2) ** 2 - min(nearest) ** 2, 0.0)) / row.mm_per_px
    return ShownLesion(
        case_id=row.case_id,
        image_id=row.image_id,
        shown=any(shown),
        width_px=round(width, 2) if any(shown) and size else None,
        size_px=row.size_px,
        slices=tuple(
            LesionOnSlice(
                position_mm=tile.position_mm,
                frame=_frame(tile, row.size_px),
                shown=is_shown,
                box=_box(tile, row.size_px, centre_mm, lesion.extent_mm, off / across * 2) if is_shown and lesion.extent_mm else None,
            )
            for tile, is_shown, off in zip(row.tiles, shown, nearest, strict=True)
        )
        if row.size_px is not None and all(tile.corner_mm for tile in row.tiles)
        else (),
    )


def _of_mask(lesion: Lesion, mask: LesionMask, row: SliceRow, size_px: tuple[int, int], spacing_mm: float) -> ShownLesion:
    visible = lesion.behaviour.get(row.sequence) != INVISIBLE
    boxes = [_outline(tile, mask, spacing_mm) if visible else None for tile in row.tiles]
    widths = [max(right - left, bottom - top) for left, top, right, bottom in filter(None, boxes)]
    return ShownLesion(
        case_id=row.case_id,
        image_id=row.image_id,
        shown=bool(widths),
        width_px=max(widths, default=None),
        size_px=size_px,
        slices=tuple(
            LesionOnSlice(
                position_mm=tile.position_mm,
                frame=_frame(tile, size_px),
                shown=box is not None,
                box=_fractions(box, size_px) if box else None,
            )
            for tile, box in zip(row.tiles, boxes, strict=True)
        ),
    )


def _outline(tile: Tile, mask: LesionMask, thickness_mm: float) -> tuple[float, float, float, float] | None:
    """Return the box of the pixels of a slice that are marked through at least half of its thickness, or of the lesion; None if none is."""
    corner, right, down = (np.array(vector) for vector in (tile.corner_mm, tile.right_mm, tile.down_mm))
    normal = np.cross(right, down) / np.linalg.norm(np.cross(right, down))
    steps, offsets = mask.affine[:3, :3], mask.centres_mm - corner
    depths, reach = offsets @ normal, float(np.abs(normal @ steps).sum()) / 2
    if depths.min() - reach > thickness_mm / 2 or depths.max() + reach < -thickness_mm / 2:
        return None
    # pixels of the slice around the whole lesion
    ranges = []
    for axis in (down, right):
        along, half = offsets @ axis / (axis @ axis), float(np.abs(axis @ steps).sum() / (axis @ axis)) / 2
        ranges.append(np.arange(max(0, int(along.min() - half)), min(tile.side_px, int(along.max() + half) + 1)))
    rows, columns = ranges
    # the middles of layers through the thickness, about as far apart as voxels
    layers = max(1, round(thickness_mm / float(np.linalg.norm(steps, axis=0).min())))
    through = ((np.arange(layers) + 0.5) / layers - 0.5) * thickness_mm
    to_voxel, around = np.linalg.inv(steps), np.pad(mask.voxels, 1)
    nearest = []
    for row, voxels_along in zip(to_voxel, mask.voxels.shape, strict=True):
        start, beside, below, deeper = (float(row @ vector) for vector in (corner - mask.affine[:3, 3], right, down, normal))
        flat = start + np.add.outer((rows + 0.5) * below, (columns + 0.5) * beside)
        nearest.append(np.clip(np.rint(np.add.outer(flat, through * deeper)), -1, voxels_along).astype(np.intp) + 1)
    marked = around[nearest[0], nearest[1], nearest[2]]
    deep = float(depths.max() - depths.min()) + 2 * reach
    enough = marked.mean(axis=2) >= min(1.0, deep / thickness_mm if thickness_mm else 1.0) / 2
    if not enough.any():
        return None
    high, wide = np.flatnonzero(enough.any(axis=1)), np.flatnonzero(enough.any(axis=0))
    x, y = tile.left_px + int(columns[0]), tile.top_px + int(rows[0])
    return float(x + wide[0]), float(y + high[0]), float(x + wide[-1] + 1), float(y + high[-1] + 1)


def _frame(tile: Tile, size_px: tuple[int, int]) -> tuple[float, float, float, float]:
    left, top = tile.left_px, tile.top_px
    return _fractions((left, top, left + tile.side_px, top + tile.side_px), size_px)


def _box(
    tile: Tile, size_px: tuple[int, int], centre_mm: Vector, extent_mm: Vector, off: float
) -> tuple[float, float, float, float] | None:
    """Return the box of an ellipsoid on a slice that is `off` half axes away from its centre, cut at the edges of the slice; None if nothing is left."""
    x, y = to_picture(tile, centre_mm)
    part = sqrt(max(1 - off**2, 0.0))
    a, b, c = (width / 2 * part for width in extent_mm)
    wide, high = half_width_px(tile, (a, b, c))
    left, right = (min(max(value, tile.left_px), tile.left_px + tile.side_px) for value in (x - wide, x + wide))
    top, bottom = (min(max(value, tile.top_px), tile.top_px + tile.side_px) for value in (y - high, y + high))
    return _fractions((left, top, right, bottom), size_px) if left < right and top < bottom else None


def _fractions(box: tuple[float, float, float, float], size_px: tuple[int, int]) -> tuple[float, float, float, float]:
    x1, y1, x2, y2 = (round(value, 6) for value in to_fractions(box, size_px))
    return x1, y1, x2, y2
