"""De-identify loose pictures: metadata is stripped again, and burned-in text is hidden or its picture dropped."""

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

from neuralmedbench.deid.burned_in.hide import BurnedInText, PicturePolicy, Policy, Words, count_text, hide_text, reported_checks
from neuralmedbench.deid.burned_in.ocr import read_pictures
from neuralmedbench.deid.cleaning import CleaningPolicy, begin_cleaning
from neuralmedbench.deid.leaks import require_clean
from neuralmedbench.deid.review.pieces import write_tools_piece
from neuralmedbench.deid.texts import clean_texts
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files.cases import read_case, run_case_stage
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.plain_pictures import count_pictures, open_picture, picture_manifest, write_picture
from neuralmedbench.records.case import CaseRecord, PictureFate, PictureManifest, State
from neuralmedbench.runtime.atomic_write import atomic_file

if TYPE_CHECKING:
    from PIL.Image import Image

COLOURED = 48
"""A pixel whose colour channels differ by more (of 255) was drawn onto the grey scan."""
MAX_COLOURED_PART = 0.1
"""A picture with more coloured pixels is not a grey scan but a map or a photograph."""
PICTURES_AT_ONCE, PIXELS_AT_ONCE = 64, 16_000_000
"""Limits of the pictures held in memory together."""


def deidentify_pictures(
    manifest: PictureManifest,
    source: Path,
    source_sha256: str,
    out: Path,
    *,
    burned_in: PicturePolicy = "hide",
    subjects: str = "patient",
) -> PictureManifest:
    """Rewrite every picture without burned-in text.

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
        `hide` the text, or `drop` the picture, which is then quarantined, like one whose text cannot be hidden. `keep` it in public
        pictures: the letters of a published figure belong to the question. With `keep`, patients' pictures are still searched and flagged
        if text is detected, for a person to decide.
    subjects : str
        Kind of subjects: `phantom`, `public` or `patient`; see `reported_checks`.

    Returns
    -------
    PictureManifest
        All pictures, including quarantined ones. Checks: `pictures_rewritten`, and those of `count_text`. Flags: `burned_in_text_hidden`,
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
        for batch in _batches([(number, source / fates[number].path) for number in used]):
            read = read_pictures(_grey(np.asarray(picture)) for _, picture in batch if not isinstance(picture, DataError))
            words = iter(read)
            for number, picture in batch:
                of_picture = None if isinstance(picture, DataError) else [next(words)]
                fates[number] = _clean_picture(fates[number], picture, of_picture, out, checks=checks, policy=burned_in)
    counts = {**reported_checks(checks, subjects), "leaks": 0}
    return replace(manifest, stage="deidentify", source_sha256=source_sha256, pictures=tuple(fates), checks=counts)


def _batches(paths: list[tuple[int, Path]]) -> Iterator[list[tuple[int, Image | DataError]]]:
    """Open pictures in batches that tesseract reads in one call; a damaged picture is replaced by its error."""
    batch: list[tuple[int, Image | DataError]] = []
    pixels = 0
    for number, path in paths:
        try:
            picture = open_picture(path.read_bytes())
            pixels += picture.width * picture.height
            batch.append((number, picture))
        except DataError as error:
            batch.append((number, error))
        if pixels >= PIXELS_AT_ONCE or len(batch) >= PICTURES_AT_ONCE:
            yield batch
            batch, pixels = [], 0
    if batch:
        yield batch


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


def without_text(picture: Image, words: Words | None = None, policy: Policy = "hide") -> tuple[Image, BurnedInText]:
    """Hide the text of one picture.

    `policy`: as for `hide_text`. Returns the picture, unchanged if nothing is hidden, and the detected text with a mask of shape
    (rows, columns, 1). Raises DeidentificationError if text remains after it was hidden.
    """
    from PIL import Image as Pillow

    pixels = np.asarray(picture)
    hidden = hide_text(_grey(pixels)[:, :, np.newaxis], words=words, policy=policy)
    if not hidden.burned_in or policy == "drop":
        return picture, hidden.burned_in
    # darkest value of each channel outside the text
    mask = hidden.burned_in.mask[:, :, 0]
    clean = pixels.copy()
    clean[mask] = pixels[~mask].min(axis=0) if not mask.all() else 0
    return Pillow.fromarray(clean), hidden.burned_in


def _grey(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the brightest channel, with coloured pixels set to white so that coloured letters on a grey scan stand out."""
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
        Folder of the pictures with `sub-<case>/case.json`, and output folder, from which previous cases are removed.
    policy : CleaningPolicy
        How the benchmark is de-identified.

    Returns
    -------
    PictureManifest
        Every picture. A picture that cannot be cleaned is quarantined; the whole case is if its texts cannot be cleaned or no picture is left.
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
    """Clean one case; `out` is removed if that fails."""
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
        # pictures have no headers, so the patient's name is not known for certain
        cleaning.checks["notes_without_known_names"] += len(notes)
        accepted = require_clean(cleaning)
    except Exception:  # whatever it was, files that were not searched must not stay
        shutil.rmtree(out, ignore_errors=True)
        raise
    counts = {**reported_checks(cleaning.checks, policy.subjects), "leaks": 0}
    files = count_pictures(clean.pictures)
    return replace(case, pictures=clean.pictures, raw_files=files, notes=notes, record=record, checks=counts, leaks=accepted)
