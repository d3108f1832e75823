"""De-identify a folder of raw scans case by case, as BIDS (`deid.stage`) or as DICOM files whose pixels are cleaned in place."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.audit import own_rules
from neuralmedbench.deid.burned_in.hide import count_text, has_suspect_header, hide_text
from neuralmedbench.deid.cleaning import Cleaning, begin_cleaning
from neuralmedbench.deid.dataset import write_dataset
from neuralmedbench.deid.faces.deface import deface
from neuralmedbench.deid.faces.locate import Head, TurnedHeadError, defacing_order, frame_of
from neuralmedbench.deid.headers.cleaner import HeaderCleaner, write_dicom
from neuralmedbench.deid.headers.rules import HeaderRules, declare, pixel_options
from neuralmedbench.deid.leaks import require_clean
from neuralmedbench.deid.notes.clean import clean_note
from neuralmedbench.deid.release.audit import CaseOutcome, ReleaseAudit, count_kinds, outcome_of
from neuralmedbench.deid.release.settings import ReleaseSettings
from neuralmedbench.deid.stage import deidentify_case
from neuralmedbench.deid.texts import clean_texts
from neuralmedbench.deid.values import DateShift, parse_day
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.files.cases import foreign_input, quarantine_on_error
from neuralmedbench.files.digests import sha256_of_files
from neuralmedbench.files.identity import Identity, identity_pattern, read_identity, write_identity
from neuralmedbench.files.nifti import LPS_TO_RAS, Volume
from neuralmedbench.files.texts import UnreadableTextError, decode_text
from neuralmedbench.ingest.case_tables import with_facts
from neuralmedbench.ingest.cases import ingest_case
from neuralmedbench.ingest.listing import ListedCase, list_cases
from neuralmedbench.ingest.persons_labels import NamedKinds
from neuralmedbench.records.case import MIN_SLICES, CaseRecord, Sequence, State
from neuralmedbench.runtime.atomic_write import write_text

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

NAME = "release"
TARGET = "notes.txt"
IGNORE = ".bidsignore"
SAME_DIRECTION = 1e-3
UNEVEN = 0.05
"""Largest distance of a slice from the even grid, as a fraction of the slice distance."""
STALE = ("SmallestImagePixelValue", "LargestImagePixelValue", "PixelPaddingRangeLimit")
"""Optional elements that changed pixels can make wrong."""
ONLY_BIDS = "not plain DICOM images of one volume (it arrived as NIfTI, or was converted when it was read): --format bids writes it"


def release_folder(source: Path, out: Path, settings: ReleaseSettings, notes: Path | None, work: Path | None = None) -> ReleaseAudit:
    """De-identify all cases of a folder.

    Parameters
    ----------
    source, out : Path
        Raw scans, and a new or empty folder.
    settings : ReleaseSettings
        Format, profile, key, options.
    notes : Path, optional
        A text about these patients; its cleaned form is written to `out`/notes.txt.
    work : Path, optional
        Private folder for intermediate files, which show raw headers and faces; they are removed at the end. Default: the system's
        temporary folder.

    Returns
    -------
    ReleaseAudit
        The result for every case and file.

    Raises
    ------
    ConfigError
        As in `ingest.listing.list_cases`.
    DataError
        If the text cannot be read; nothing is written then.
    """
    text = read_notes(notes) if notes is not None else None  # fails before hours of work
    listing = list_cases(source, settings.pseudonyms)
    out.mkdir(parents=True, exist_ok=True)
    done: list[tuple[CaseRecord, Path]] = []
    outcomes: dict[str, CaseOutcome] = {}
    people: list[tuple[str, Identity]] = []
    for listed in listing.cases:
        folder = out / f"sub-{listed.index.case_id}"
        with tempfile.TemporaryDirectory(prefix="nmb-", dir=work) as private:
            ingested, cleaned, left_out = _release_case(listed, Path(private), folder, settings)
            people.append((ingested.patient_id, read_identity(Path(private) / "identity.json")))
        if cleaned.state is State.QUARANTINED:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            done.append((cleaned, folder))
        outcomes[cleaned.case_id] = outcome_of(ingested, cleaned, left_out)
    if settings.form == "bids" and done:
        write_dataset(out, NAME, done)
    checks = Counter[str]()
    if text is not None:
        checks.update(write_notes(text, out, people, settings))
    for outcome in outcomes.values():
        checks.update(outcome.checks)
    files = sha256_of_files(out)
    return ReleaseAudit(
        format=settings.form,
        profile=settings.profile,
        options=settings.options,
        cases=outcomes,
        files_of_no_case=dict(sorted(Counter(listing.left_out.values()).items())),
        checks={name: checks[name] for name in sorted(checks)},
        file_kinds=count_kinds(files),
        files=files,
        element_rules=own_rules(settings.elements),
    )


def _release_case(
    listed: ListedCase, private: Path, folder: Path, settings: ReleaseSettings
) -> tuple[CaseRecord, CaseRecord, dict[str, str]]:
    """Read and clean one case; returns the ingested case, the cleaned case, and the reasons of excluded series."""
    index = with_facts(listed.index, listed.facts, private)
    base = CaseRecord(benchmark=NAME, case_id=index.case_id, patient_id=index.patient_id, stage="ingest", source_sha256=index.source_sha256)
    write_identity(private / "identity.json", Identity())
    named = NamedKinds(listed.overrides)
    ingested = quarantine_on_error(base, lambda: ingest_case(base, index, private, private, named, sizes=settings.voxel_sizes))
    left_out: dict[str, str] = {}
    if ingested.state is State.QUARANTINED:
        return ingested, ingested, left_out
    start = replace(ingested, stage="deidentify", checks={}, fates=())
    if settings.form == "bids":
        step = quarantine_on_error(start, lambda: deidentify_case(start, private, folder, settings.policy))
        left_out |= step.set_aside
    else:
        step = quarantine_on_error(start, lambda: _as_dicom(start, private, folder, settings, left_out))
    return ingested, step, left_out


def check_release(audit: ReleaseAudit) -> None:
    """Refuse a release without any case; DataError states the first reason."""
    if not any(outcome.state is State.OK for outcome in audit.cases.values()):
        reasons = [outcome.reason for outcome in audit.cases.values()]
        message = f"none of {len(reasons)} cases could be released: {reasons[0] if reasons else 'no case was found'}; see the audit"
        raise DataError(message)


def read_notes(path: Path) -> str:
    """Read the text; DataError if it is not plain text (a word processor's file, an unknown encoding), or cannot be read."""
    try:
        return decode_text(path.read_bytes())
    except OSError:
        message = "--notes: the text cannot be read; check the file"
    except UnreadableTextError as error:
        message = f"--notes: expected plain text, found something else ({error.reason}); save it as text in UTF-8"
    raise DataError(message) from None


def write_notes(notes: str, out: Path, people: list[tuple[str, Identity]], settings: ReleaseSettings) -> Counter[str]:
    """Clean a text to `out`/notes.txt.

    `notes`: result of `read_notes`. Returns replacements by kind; `notes_withheld` if the text is withheld, and then no file is written.
    """
    patients = sorted({patient for patient, _ in people})
    known = [identity for _, identity in people]
    everyone = Identity(
        names=tuple(sorted({value for identity in known for value in identity.names})),
        places=tuple(sorted({value for identity in known for value in identity.places})),
        numbers=tuple(sorted({value for identity in known for value in identity.numbers})),
        uids=tuple(sorted({value for identity in known for value in identity.uids})),
    )
    # the dates of several patients have no common shift: only years are kept
    dates = DateShift(-1, years_only=True)
    if len(patients) == 1:
        dates = settings.policy.rules_of(patients[0], everyone).dates
    days = {identity.scan_date for _, identity in people}
    scan_day = parse_day(next(iter(days))) if len(days) == 1 else None
    note = clean_note(notes, dates, identity_pattern(everyone), scan_day=scan_day)
    counts = Counter({f"notes_{kind}": number for kind, number in note.counts.items()})
    if note.text.strip():
        write_text(out / TARGET, note.text)
        if (out / IGNORE).exists():
            write_text(out / IGNORE, (out / IGNORE).read_text(encoding="utf-8") + f"{TARGET}\n")
    return counts


def _as_dicom(case: CaseRecord, private: Path, folder: Path, settings: ReleaseSettings, left_out: dict[str, str]) -> CaseRecord:
    cleaning = begin_cleaning(case, private, folder, settings.policy)
    left_out.update(clean_dicom_case(cleaning))
    notes, record = clean_texts(cleaning)
    accepted = require_clean(cleaning)
    series = tuple(one for one in case.series if one.series_id not in left_out)
    counted = {name: cleaning.checks[name] for name in sorted(cleaning.checks)}
    return replace(case, series=series, notes=notes, record=record, checks={**counted, "leaks": 0}, leaks=accepted)


def clean_dicom_case(cleaning: Cleaning) -> dict[str, str]:
    """Write the series of a case as `out`/<series_id>/000001.dcm...; returns the reasons of excluded series, by id.

    A series that cannot be defaced is never written; DataError if none is left.
    """
    case, excluded = cleaning.case, cleaning.excluded
    for series in defacing_order(case.series):
        raw, target = cleaning.source / series.path, cleaning.out / series.series_id
        if not raw.is_dir():
            excluded[series.series_id] = ONLY_BIDS
            continue
        is_map = series.sequence is Sequence.ADC
        try:
            with foreign_input():
                clean_dicom_series(raw, target, cleaning.rules, cleaning.checks, is_map=is_map, heads=cleaning.heads)
        except TurnedHeadError as error:  # the sides of every other series are unknown too
            message = f"{series.series_id}, {series.sequence.value}: {error}"
            raise TurnedHeadError(message) from None
        except (DataError, DeidentificationError) as error:
            excluded[series.series_id] = str(error)
            shutil.rmtree(target, ignore_errors=True)
    if len(excluded) == len(case.series):
        first = defacing_order(case.series)[0]
        message = f"no series can be given as DICOM: {first.series_id}, {first.sequence.value}: {excluded[first.series_id]}"
        raise DataError(message)
    return excluded


def clean_dicom_series(
    source: Path, target: Path, rules: HeaderRules, checks: Counter[str], *, is_map: bool = False, heads: list[Head] | None = None
) -> None:
    """Write the de-identified files of one series, in the order of their positions.

    `source`, `target`: folder of the raw files, one image each, and new folder for `000001.dcm`... Adds to `checks`: `header_*` as in
    `cleaner.HeaderCleaner.clean`, `dicom_files_cleaned`, `dicom_images_changed`, `burned_in_*` as in `hide.count_text`, `faces_removed`, and
    `deface_*` for each flag of `deface`. `is_map`, `heads`: as for `deface`; this scan is added to `heads`. Raises DataError if the images are
    not a stack or cannot be decoded, as their faces could not be removed. Raises DeidentificationError if a face cannot be located, text
    cannot be hidden, or a file cannot be written.
    """
    stack = stack_images([dicom.read_dicom(path) for path in sorted(source.glob("*.dcm"))])
    hidden = hide_text(stack.volume.voxels, 2, suspect=has_suspect_header(stack.images[0]))
    known = [] if heads is None else heads
    volume = Volume(hidden.voxels, stack.volume.affine)
    if len({dicom.text(image, "SOPInstanceUID") for image in stack.images}) < len(stack.images):
        message = f"{len(stack.images)} different images share SOPInstanceUIDs: export the series again, or use --format bids"
        raise DataError(message)
    under = hidden.burned_in.mask if hidden.burned_in else None
    defaced = deface(volume, is_map=is_map, heads=known, name=target.name, frame=frame_of(source), hidden=under)
    known.extend([defaced.head] if defaced.head else [])
    stored = blank(stack, hidden.burned_in.mask | defaced.mask)
    cleaner, counts = HeaderCleaner(rules), Counter[str]()
    target.mkdir(parents=True)
    for number, (image, plane) in enumerate(zip(stack.images, stored, strict=True), start=1):
        changed = not bool((image.pixel_array == plane).all())
        counts.update({f"header_{name}": count for name, count in cleaner.clean(image).items()})
        put_pixels(image, plane)  # even if unchanged: trailing bytes, unused bits and codec comments would remain in the old pixel data
        image.BurnedInAnnotation = "NO"
        declare(image, rules.applied | pixel_options(face_removed=bool(defaced.mask.any())), kept="keep" in rules.elements.values())
        write_dicom(target / f"{number:06d}.dcm", image, f"file {number} of {len(stack.images)} of a series")
        counts["dicom_images_changed"] += changed
    counts["dicom_files_cleaned"] += len(stack.images)
    counts["faces_removed"] += bool(defaced.mask.any())
    counts.update(f"deface_{flag}" for flag in defaced.flags)
    checks.update(counts)
    count_text(checks, hidden.burned_in, "hide", "series")


@dataclass(frozen=True)
class DicomStack:
    """A series in the order of its positions.

    Attributes
    ----------
    images : tuple of Dataset
        One dataset per file.
    stored : ndarray, shape (Z, Y, X)
        Pixels as stored: slice, row, column; bits beyond BitsStored, which may hold overlays, are cleared.
    volume : Volume
        Voxels (X, Y, Z) = (column, row, slice) with rescale slope and intercept, and the affine to RAS+ mm.
    """

    images: tuple[Dataset, ...]
    stored: npt.NDArray[Any]
    volume: Volume


def stack_images(images: list[Dataset]) -> DicomStack:
    """Stack the images of a series by their positions, without resampling.

    Raises DataError if they are not an evenly spaced stack of parallel images of one size, or cannot be decoded.
    """
    first = images[0]
    cosines = np.array([dicom.numbers(image, "ImageOrientationPatient") or (np.nan,) * 6 for image in images])
    origins = np.array([dicom.numbers(image, "ImagePositionPatient") or (np.nan,) * 3 for image in images])
    spacing = dicom.numbers(first, "PixelSpacing")
    if len(images) < MIN_SLICES or len(spacing) != 2 or not np.isfinite(cosines).all() or not np.isfinite(origins).all():
        message = f"not a stack of at least {MIN_SLICES} images with a position in space"
        raise DataError(message)
    if np.abs(cosines - cosines[0]).max() > SAME_DIRECTION:
        message = "its images are not parallel"
        raise DataError(message)
    # sort along the normal of the slices, and check that they are evenly spaced
    row, column = cosines[0, :3], cosines[0, 3:]
    order = np.argsort(origins @ np.cross(row, column), kind="stable")
    origins = origins[order]
    step = (origins[-1] - origins[0]) / (len(origins) - 1)
    even = origins[0] + np.arange(len(origins))[:, None] * step
    if not np.linalg.norm(step) or np.abs(origins - even).max() > UNEVEN * np.linalg.norm(step):
        message = "its slices do not lie on an even grid"
        raise DataError(message)
    ordered = tuple(images[place] for place in order)
    # affine from (column, row, slice) to LPS+ mm, then to RAS+
    stored = _unpack(ordered)
    lps = np.eye(4)
    lps[:3, :4] = np.column_stack([row * spacing[1], column * spacing[0], step, origins[0]])
    scales = [rescale(image) for image in ordered]
    values = np.stack([plane * np.float32(slope) + np.float32(intercept) for plane, (slope, intercept) in zip(stored, scales, strict=True)])
    return DicomStack(ordered, stored, Volume(values.transpose(2, 1, 0), np.diag([*LPS_TO_RAS, 1.0]) @ lps))


def _unpack(images: tuple[Dataset, ...]) -> npt.NDArray[Any]:
    planes = []
    for image in images:
        try:
            plane = image.pixel_array
        except Exception:  # without a decoder or with damaged pixels pydicom raises various exceptions, whose messages may hold values
            message = (
                "its pixels cannot be decoded (damaged, or compressed in a way for which there is no decoder): store it without compression"
            )
            raise DataError(message) from None
        planes.append(_without_unused_bits(plane, image))
    if any(plane.ndim != 2 or plane.shape != planes[0].shape or plane.dtype != planes[0].dtype for plane in planes):
        message = "its images differ in size or are not grey"
        raise DataError(message)
    return np.stack(planes)


def _without_unused_bits(plane: npt.NDArray[Any], image: Dataset) -> npt.NDArray[Any]:
    unused = plane.dtype.itemsize * 8 - int(dicom.number(image, "BitsStored") or plane.dtype.itemsize * 8)
    if plane.dtype.kind not in "iu" or unused <= 0:
        return plane
    return np.asarray((plane << unused) >> unused, dtype=plane.dtype)  # the right shift extends the sign of signed pixels


def rescale(image: Dataset) -> tuple[float, float]:
    """Return rescale slope and intercept; 1 and 0 if a header has none."""
    return dicom.number(image, "RescaleSlope") or 1.0, dicom.number(image, "RescaleIntercept") or 0.0


def blank(stack: DicomStack, mask: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Set masked voxels to the background of the series, in stored values.

    `mask`: shape (X, Y, Z). Returns stored pixels, shape (Z, Y, X); the background is the lowest value of the volume, converted with each
    image's rescale slope and intercept.
    """
    stored = stack.stored.copy()
    low = float(stack.volume.voxels.min())
    for number, image in enumerate(stack.images):
        slope, intercept = rescale(image)
        kind = np.iinfo(stored.dtype) if stored.dtype.kind in "iu" else np.finfo(stored.dtype)
        value = np.clip((low - intercept) / slope, float(kind.min), float(kind.max))
        stored[number][mask[:, :, number].T] = round(float(value)) if stored.dtype.kind in "iu" else value
    return stored


def put_pixels(image: Dataset, plane: npt.NDArray[Any]) -> None:
    """Set the pixels (rows, columns) of an image whose file meta group holds the transfer syntax; a compressed image becomes uncompressed."""
    from pydicom.uid import ExplicitVRLittleEndian

    syntax = image.file_meta.TransferSyntaxUID
    if syntax.is_compressed:
        image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    big = not syntax.is_compressed and not syntax.is_little_endian
    encoded = plane.astype(plane.dtype.newbyteorder(">") if big else plane.dtype.newbyteorder("<")).tobytes()
    image.add_new("PixelData", "OW" if plane.dtype.itemsize > 1 else "OB", encoded)
    if plane.nbytes % 2:  # DICOM values have an even length
        image["PixelData"].value += b"\0"
    for keyword in STALE:
        image.pop(keyword, None)
