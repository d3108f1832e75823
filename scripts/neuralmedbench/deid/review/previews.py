"""Previews of all series that came in: of the unused ones only what passes the same gate as a scan that is used."""

from __future__ import annotations

import numpy as np

from neuralmedbench.deid.burned_in.hide import TextFoundError, find_burned_in, has_suspect_header, stacked_along
from neuralmedbench.deid.cleaning import Cleaning
from neuralmedbench.deid.faces.deface import deface
from neuralmedbench.deid.faces.locate import frame_of
from neuralmedbench.deid.headers.element_values import clean_description
from neuralmedbench.deid.review.pieces import PREVIEW, REVIEW, SERIES, preview_views, upright
from neuralmedbench.errors import DataError, DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.files.cases import foreign_input
from neuralmedbench.files.dcm2niix import convert_largest
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.nifti import Volume, read_nifti
from neuralmedbench.files.plain_pictures import write_levels
from neuralmedbench.files.raw_folder import read_descriptions, unused_images
from neuralmedbench.runtime.atomic_write import partial_folder

NO_FACE_FOUND = frozenset({"no_surface", "outer_layer_removed"})
"""Flags of a scan whose face was not located: enough for one that a person sees as a surface, not for a preview."""


def write_previews(cleaning: Cleaning) -> None:
    """Write previews of the unused series, after the used ones; and, in `review/series.json`, cleaned descriptions and why there is no preview.

    A preview is three small axial slices of the scan without its face, in which no text was found.
    """
    raw = read_descriptions(cleaning.source)
    entries = {
        fate.series_id: {"description": clean_description(raw.get(fate.series_id, ""), cleaning.rules)} for fate in cleaning.case.raw_series
    }
    for fate in cleaning.case.raw_series:
        if fate.reason and not fate.no_preview:
            try:
                with foreign_input():
                    volume = _shown(cleaning, fate.series_id)
            except TextFoundError:
                entries[fate.series_id]["no_preview"] = "text"
            except DeidentificationError:
                entries[fate.series_id]["no_preview"] = "face"
            except DataError:
                entries[fate.series_id]["no_preview"] = "unreadable"
            else:
                write_levels(cleaning.out / REVIEW / f"{fate.series_id}_{PREVIEW}", preview_views(*upright(volume)))
    if entries:
        write_json(cleaning.out / REVIEW / SERIES, entries)


def _shown(cleaning: Cleaning, series_id: str) -> Volume:
    """Return an unused series without its face; DataError or DeidentificationError if it cannot be shown."""
    images = unused_images(cleaning.source, series_id)
    if images is None:
        raise DataError
    suspect, files = False, None
    if images.is_file():
        volume = read_nifti(images)
    else:
        header, files = dicom.first_header(images), len(list(images.glob("*.dcm")))
        suspect = header is not None and has_suspect_header(header)
        with partial_folder(cleaning.source) as work:
            volume, _ = convert_largest(images, work)
    if volume.voxels.ndim > 3:
        volume = Volume(np.ascontiguousarray(volume.voxels[..., 0]), volume.affine)
    if find_burned_in(volume.voxels, stacked_along(volume.voxels.shape, volume.affine, files), suspect=suspect):
        raise TextFoundError
    defaced = deface(volume, heads=cleaning.heads, frame="" if images.is_file() else frame_of(images))
    if NO_FACE_FOUND & set(defaced.flags):
        raise DeidentificationError
    return defaced.volume
