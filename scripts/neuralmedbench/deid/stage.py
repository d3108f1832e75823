"""De-identify one ingested case and write it as BIDS."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuralmedbench.deid.burned_in.hide import (
    Policy,
    TextFoundError,
    count_text,
    has_suspect_header,
    hide_text,
    reported_checks,
    stacked_along,
)
from neuralmedbench.deid.cleaning import Cleaning, CleaningPolicy, begin_cleaning
from neuralmedbench.deid.faces.deface import BrainLossError, deface
from neuralmedbench.deid.faces.locate import TurnedHeadError, defacing_order, frame_of
from neuralmedbench.deid.file_names import bids_names
from neuralmedbench.deid.headers.cleaner import clean_series, clean_sidecar
from neuralmedbench.deid.headers.rules import OF_PIXELS, pixel_options
from neuralmedbench.deid.leaks import require_clean
from neuralmedbench.deid.review.pieces import REVIEW, write_header_piece, write_scan_pieces, write_tools_piece
from neuralmedbench.deid.review.previews import write_previews
from neuralmedbench.deid.texts import clean_texts
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.files.bids import write_trace_gradients
from neuralmedbench.files.dcm2niix import convert_largest
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.nifti import Volume, read_nifti, write_nifti
from neuralmedbench.files.packs import SUFFIX
from neuralmedbench.records.case import CaseRecord, Sequence, Series
from neuralmedbench.runtime.atomic_write import partial_folder, sweep
from neuralmedbench.runtime.storage import full_disk_cause

SPACING_TOLERANCE = 0.03
OUTPUTS = ("anat", "dwi", "swi", "ct", "text", REVIEW)


def deidentify_case(case: CaseRecord, source: Path, out: Path, policy: CleaningPolicy, answer_key: Path | None = None) -> CaseRecord:
    """De-identify one case.

    Parameters
    ----------
    case : CaseRecord
        The ingested case.
    source : Path
        Folder that holds it, with `identity.json`.
    out : Path
        Output folder; its previous scans, texts and review pictures are replaced.
    policy : CleaningPolicy
        How the benchmark is de-identified.
    answer_key : Path, optional
        `answer_key.json` of a phantom, listing what was planted in it; its de-identification is scored against it.

    Returns
    -------
    CaseRecord
        The case with BIDS names, cleaned texts and the counts of every check.

    Raises
    ------
    DataError
        If no series can be converted with the geometry of its raw positions.
    DeidentificationError
        If in every series a face cannot be located or text remains, or an identifying value remains in any file; `out` is then emptied.
    """
    empty_outputs(out)
    cleaning = begin_cleaning(case, source, out, policy, answer_key)
    try:
        series = clean_scans(cleaning)
        write_previews(cleaning)
        write_tools_piece(out)
        notes, record = clean_texts(cleaning)
        if not cleaning.identity.names:
            cleaning.checks["notes_without_known_names"] += len(notes)
        # last check: any identifier that the steps above missed quarantines the case
        accepted = require_clean(cleaning)
    except Exception:  # whatever it was, files that were not searched must not stay
        empty_outputs(out)
        raise
    counts = {**reported_checks(cleaning.checks, policy.subjects), "leaks": 0}
    done = replace(case, series=series, set_aside=cleaning.excluded, notes=notes, record=record, checks=counts, leaks=accepted)
    cleaning.observer.finish(done, source, out)
    return done


def empty_outputs(out: Path) -> None:
    """Remove the previous outputs of this stage, its record too, which would be searched for leaks, and incomplete files of a killed run."""
    sweep(out)
    (out / "case.json").unlink(missing_ok=True)
    for name in OUTPUTS:
        shutil.rmtree(out / name, ignore_errors=True)
        (out / f"{name}{SUFFIX}").unlink(missing_ok=True)


def clean_scans(cleaning: Cleaning) -> tuple[Series, ...]:
    """Write all scans of a case with BIDS names; raises the first error, with the name of its series, if none is left.

    A series in which a face or text may remain, or that cannot be converted, is set aside without any of its files; the others go on. A head
    that does not lie as its header says ends the case.
    """
    case, names = cleaning.case, bids_names(cleaning.case)
    done: dict[str, Series] = {}
    failed: list[DataError | DeidentificationError] = []
    for series in defacing_order(case.series):
        stem = cleaning.out / names[series.series_id]
        try:
            written = write_scan(series, stem, cleaning)
        except TurnedHeadError as error:  # the sides of every other series are unknown too
            message = f"{series.series_id}, {_reason(series, error)}"
            raise TurnedHeadError(message) from None
        except (DataError, DeidentificationError) as error:
            if full := full_disk_cause(error):
                raise full from None
            failed.append(type(error)(f"{series.series_id}, {_reason(series, error)}"))
            cleaning.excluded[series.series_id] = _reason(series, error)
            if (check := _check_of(error)) is not None:
                cleaning.checks[check] += 1
            remove_scan(stem, cleaning.out / REVIEW, series.series_id)
        else:
            done[series.series_id] = replace(written, path=f"{names[series.series_id]}.nii.gz")
    if not done:
        raise failed[0]
    return tuple(done[series.series_id] for series in case.series if series.series_id in done)


def _check_of(error: DataError | DeidentificationError) -> str | None:
    """Return the check under which a series that is set aside is counted; text is counted where it is found."""
    if isinstance(error, TextFoundError):
        return None
    if isinstance(error, BrainLossError):
        return "series_with_brain_lost"
    return "series_not_convertible" if isinstance(error, DataError) else "series_not_deidentified"


def remove_scan(stem: Path, review: Path, series_id: str) -> None:
    """Remove all files of a series that is set aside: scan, sidecars and pieces for the reviewer."""
    for path in (*stem.parent.glob(f"{stem.name}.*"), *review.glob(f"{series_id}_*")):
        path.unlink()


def write_scan(series: Series, stem: Path, cleaning: Cleaning) -> Series:
    """Write one cleaned scan and its sidecars as `stem`.nii.gz, ...; returns the series with flags and quality, and adds to `cleaning.heads`."""
    case_folder, raw = cleaning.out, cleaning.source / series.path
    with partial_folder(cleaning.source) as work:  # intermediate files show faces, so they stay in the private folder
        changed: Counter[tuple[str, str]] = Counter()
        # 1. clean the header before anything is converted
        volume, sidecar = _clean_volume(series, work, cleaning, changed)
        cleaning.observer.cleaned(raw, work / "clean")
        _check_spacing(series, volume)
        # 2. hide burned-in text before defacing, on the complete picture
        volume, hidden = _without_text(series, volume, cleaning)
        cleaning.observer.converted(raw, volume)
        # 3. remove the face last, in native space
        is_map = series.sequence is Sequence.ADC
        defaced = deface(volume, is_map=is_map, heads=cleaning.heads, name=series.series_id, frame=frame_of(raw), hidden=hidden)
        cleaning.heads.extend([defaced.head] if defaced.head else [])
        write_nifti(stem.with_name(f"{stem.name}.nii.gz"), defaced.volume)
        done = {*pixel_options(face_removed=bool(defaced.mask.any())), *(cleaning.rules.applied - OF_PIXELS if sidecar is not None else ())}
        write_json(
            stem.with_name(f"{stem.name}.json"),
            clean_sidecar(
                sidecar,
                modality=series.modality,
                codes=done,
                acquired=_acquired(work),
                kept_elements=cleaning.rules.kept_elements if sidecar is not None else (),
            ),
        )
    if series.sequence is Sequence.DWI:
        write_trace_gradients(stem, series.b_value)
    # 4. write the pictures and counts for the reviewer
    write_scan_pieces(case_folder, series.series_id, defaced.volume)
    write_header_piece(case_folder, series.series_id, changed)
    cleaning.checks["faces_removed"] += defaced.quality["face_removed"] > 0
    text_flags = () if hidden is None else ("burned_in_text_hidden",)
    return replace(series, flags=(*series.flags, *text_flags, *defaced.flags), quality={**series.quality, **defaced.quality})


def _clean_volume(series: Series, work: Path, cleaning: Cleaning, changed: Counter[tuple[str, str]]) -> tuple[Volume, Path | None]:
    """Read one series without its identifiers: DICOM is cleaned before conversion; of NIfTI only voxels and geometry are kept."""
    path, checks = cleaning.source / series.path, cleaning.checks
    if path.is_file():
        checks["nifti_headers_cleaned"] += 1
        return read_nifti(path), None
    counts = clean_series(path, work / "clean", cleaning.rules, changed)
    checks.update({f"header_{name}": number for name, number in counts.items()})
    checks["dicom_files_cleaned"] += sum(1 for _ in path.glob("*.dcm"))
    volume, files = convert_largest(work / "clean", work / "nifti")
    if volume.voxels.ndim != 3:
        message = f"{series.series_id}: the conversion gave a series of volumes; name its kind in `sequence_overrides` or exclude it"
        raise DataError(message)
    return volume, files.sidecar


def _without_text(series: Series, volume: Volume, cleaning: Cleaning) -> tuple[Volume, npt.NDArray[np.bool_] | None]:
    """Hide burned-in text, or raise TextFoundError if the policy is to drop a series that shows any; returns the mask of hidden voxels too."""
    policy: Policy = "drop" if cleaning.burned_in == "drop" else "hide"
    raw = cleaning.source / series.path
    header = dicom.first_header(raw)
    suspect = header is not None and has_suspect_header(header)
    axis = stacked_along(volume.voxels.shape, volume.affine, len(list(raw.glob("*.dcm"))) or None)
    hidden = hide_text(volume.voxels, axis, suspect=suspect, policy=policy)
    count_text(cleaning.checks, hidden.burned_in, policy, "series")
    if not hidden.burned_in:
        return volume, None
    if policy == "drop":
        message = f"{series.series_id}: text is burned into the pixels, and `deidentification: burned_in` says drop"
        raise TextFoundError(message)
    return Volume(hidden.voxels, volume.affine), hidden.burned_in.mask


def _check_spacing(series: Series, volume: Volume) -> None:
    """Check that the slice spacing after conversion is the one measured from the positions, not SliceThickness."""
    expected = series.quality.get("spacing_mm")
    if not expected or "uneven_spacing" in series.flags:
        return
    sizes = np.linalg.norm(volume.affine[:3, :3], axis=0)
    if np.abs(sizes - expected).min() > SPACING_TOLERANCE * expected:
        message = (
            f"{series.series_id}: slices lie {expected:g} mm apart, the converted scan says {', '.join(f'{size:.3g}' for size in sizes)} mm"
        )
        raise DataError(message)


def _acquired(work: Path) -> str:
    """Read AcquisitionTime from the first cleaned file, empty if absent; dcm2niix leaves times out."""
    header = dicom.first_header(work / "clean")
    return "" if header is None else dicom.text(header, "AcquisitionTime")


def _reason(series: Series, error: Exception) -> str:
    """Write why a series is left out as later stages do: with its kind in place of its number."""
    return f"{series.sequence.value}: {str(error).removeprefix(f'{series.series_id}: ')}"
