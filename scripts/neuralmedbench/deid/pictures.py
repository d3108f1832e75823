"""Loose pictures without identity: metadata stripped again, and text that is burned in hidden, or its picture dropped."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.find import BurnedIn, Words
from neuralmedbench.deid.burned_in.hide import PicturePolicy, Policy, count_text, hide_text, reported_checks
from neuralmedbench.deid.burned_in.ocr import read_pictures
from neuralmedbench.deid.cleaning import CleaningPolicy, begin_cleaning
from neuralmedbench.deid.leaks import require_no_leaks
from neuralmedbench.deid.review.pieces import write_tools_piece
from neuralmedbench.deid.texts import clean_texts
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files.cases import read_case, run_case_stage
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.picture_cases import count_pictures, picture_manifest
from neuralmedbench.files.plain_pictures import open_picture, write_picture
from neuralmedbench.records.case import CaseRecord, PictureFate, PictureManifest, State
from neuralmedbench.runtime.atomic_write import atomic_file

if TYPE_CHECKING:
    from PIL.Image import Image

COLOURED = 48
"""Difference of the colour channels (of 255) above which a pixel of a grey scan was drawn by a program."""
MAX_COLOURED_PART = 0.1
"""A picture with more colour is no grey scan: a map, or a photograph."""
PICTURES_AT_ONCE, PIXELS_AT_ONCE = 64, 16_000_000
"""How many pictures are held in memory together."""


def deidentify_pictures(
    manifest: PictureManifest,
    source: Path,
    source_sha256: str,
    out: Path,
    *,
    burned_in: PicturePolicy = "hide",
    subjects: str = "patient",
) -> PictureManifest:
    """Write every picture anew, without text that is burned in.

    Parameters
    ----------
    manifest : PictureManifest
        The ingested pictures.
    source : Path
        Folder of the ingested `pictures.json`.
    source_sha256 : str
        Digest of that file.
    out : Path
        Folder for `pictures/`.
    burned_in : str
        `hide` the text, or `drop` the picture: it is quarantined then, as one is whose text cannot be hidden. `keep` it in pictures that
        are public as they are: the letters of a published figure belong to the question. Patients' pictures are searched all the same,
        and flagged where text is found: a person decides.
    subjects : str
        Whose pictures they are: `phantom`, `public` or `patient`; see `reported_checks`.

    Returns
    -------
    PictureManifest
        Quarantined pictures are passed on. Checks: `pictures_rewritten`, and those of `count_text`. Flags: `burned_in_text_hidden`,
        `burned_in_text_kept`.
    """
    checks: Counter[str] = Counter({"pictures_rewritten": 0})
    fates = list(manifest.pictures)
    used = [number for number, fate in enumerate(fates) if fate.state is State.OK]
    if burned_in == "keep" and subjects != "patient":
        for number in used:
            with atomic_file(out / fates[number].path) as partial:
                shutil.copyfile(source / fates[number].path, partial)  # ingest wrote pixels and nothing else
            checks["pictures_kept"] += 1
    else:
        for some in _together([(number, source / fates[number].path) for number in used]):
            read = read_pictures(_grey(np.asarray(picture)) for _, picture in some if not isinstance(picture, DataError))
            words = iter(read)
            for number, picture in some:
                own = None if isinstance(picture, DataError) else [next(words)]
                fates[number] = _clean_picture(fates[number], picture, own, out, checks=checks, policy=burned_in)
    counts = {**reported_checks(checks, subjects), "leaks": 0}
    return replace(manifest, stage="deidentify", source_sha256=source_sha256, pictures=tuple(fates), checks=counts)


def _together(paths: list[tuple[int, Path]]) -> Iterator[list[tuple[int, Image | DataError]]]:
    """Open pictures, as many at a time as tesseract reads in one call; a damaged one is given as its error."""
    some: list[tuple[int, Image | DataError]] = []
    pixels = 0
    for number, path in paths:
        try:
            picture = open_picture(path.read_bytes())
            pixels += picture.width * picture.height
            some.append((number, picture))
        except DataError as error:
            some.append((number, error))
        if pixels >= PIXELS_AT_ONCE or len(some) >= PICTURES_AT_ONCE:
            yield some
            some, pixels = [], 0
    if some:
        yield some


def _clean_picture(
    fate: PictureFate, picture: Image | DataError, words: Words | None, out: Path, *, checks: Counter[str], policy: PicturePolicy
) -> PictureFate:
    try:
        if isinstance(picture, DataError):
            raise picture
        clean, burned_in = without_text(picture, words, "hide" if policy == "hide" else "drop")
        count_text(checks, burned_in, policy, "pictures")
        if burned_in and policy == "drop":
            message = "text is burned into the picture, and `deidentification: burned_in` says drop"
            raise DeidentificationError(message)
    except (DataError, DeidentificationError) as error:
        return fate.kept_back(str(error))
    checks["pictures_rewritten"] += 1
    write_picture(out / fate.path, clean)
    flags = (f"burned_in_text_{'hidden' if policy == 'hide' else 'kept'}",) if burned_in else ()
    return replace(fate, sha256=sha256_of(out / fate.path), flags=(*fate.flags, *flags))


def without_text(picture: Image, words: Words | None = None, policy: Policy = "hide") -> tuple[Image, BurnedIn]:
    """Hide the text of one picture.

    `policy`: as for `hide_text`. Returns: The same picture when nothing was found, or nothing is hidden. Returns: What is hidden; one plane
    (rows, columns, 1). Raises DeidentificationError if text is left after it was hidden.
    """
    from PIL import Image as Pillow

    pixels = np.asarray(picture)
    hidden = hide_text(_grey(pixels)[:, :, np.newaxis], words=words, policy=policy)
    if not hidden.burned_in or policy == "drop":
        return picture, hidden.burned_in
    mask = hidden.burned_in.mask[:, :, 0]
    clean = pixels.copy()
    clean[mask] = pixels[~mask].min(axis=0) if not mask.all() else 0
    return Pillow.fromarray(clean), hidden.burned_in


def _grey(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Give the brightest channel, and what is drawn in colour as white: letters on a grey scan stand out in it."""
    if pixels.ndim == 2:
        return pixels
    brightest = pixels.max(axis=2)
    coloured = brightest.astype(np.int16) - pixels.min(axis=2) > COLOURED
    if coloured.mean() > MAX_COLOURED_PART:
        return brightest
    return np.where(coloured, np.uint8(255), brightest)


def deidentify_picture_cases(manifest: PictureManifest, source: Path, out: Path, policy: CleaningPolicy) -> PictureManifest:
    """De-identify every case of a manifest.

    Parameters
    ----------
    manifest : PictureManifest
        The ingested pictures.
    source, out : Path
        Folder that holds them with `sub-<case>/case.json`, and folder to fill; what it held of cases before is removed.
    policy : CleaningPolicy
        How the benchmark is de-identified.

    Returns
    -------
    PictureManifest
        Every picture; a case whose texts or pictures cannot be cleaned is kept back whole, a single picture alone where others are left.
    """
    for old in out.glob("sub-*"):
        shutil.rmtree(old)
    cases: list[CaseRecord] = []
    for case_id in sorted(manifest.cases):
        before, after = (folder / f"sub-{case_id}" for folder in (source, out))
        run_case_stage("deidentify", before / "case.json", after / "case.json", partial(_clean_case, out=after, policy=policy))
        case = read_case(after / "case.json")
        cases.append(case)
    return picture_manifest(manifest.benchmark, "deidentify", out, cases)


def _clean_case(case: CaseRecord, source: Path, out: Path, policy: CleaningPolicy) -> CaseRecord:
    """Clean one case; nothing is left in `out` when it cannot be."""
    try:
        cleaning = begin_cleaning(case, source, out, policy)
        pictures = PictureManifest(benchmark=case.benchmark, stage="ingest", source_sha256="", pictures=case.pictures)
        clean = deidentify_pictures(pictures, source, "", out, burned_in=policy.burned_in, subjects=policy.subjects)
        if all(picture.state is not State.OK for picture in clean.pictures):
            message = f"no usable picture among {len(clean.pictures)}: {clean.pictures[0].reason}"
            raise DataError(message)
        cleaning.checks.update(clean.checks)
        write_tools_piece(out)
        notes, record = clean_texts(cleaning)
        # no picture has a header: who the patient is called, nobody says for sure
        cleaning.checks["notes_without_known_names"] += len(notes)
        require_no_leaks(out, cleaning.identity)
    except (DataError, DeidentificationError):
        shutil.rmtree(out, ignore_errors=True)
        raise
    counts = {**reported_checks(cleaning.checks, policy.subjects), "leaks": 0}
    return replace(case, pictures=clean.pictures, raw_files=count_pictures(clean.pictures), notes=notes, record=record, checks=counts)
