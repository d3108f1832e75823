"""Score what is shareable of a simulated patient: no planted string in any file, and the sidecars still describe the scan."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.deid.score.tally import FILES, Tally
from neuralmedbench.files.answer_key import left_in, searchable
from neuralmedbench.files.json_files import read_json
from neuralmedbench.records.answer_key import AnswerKey
from neuralmedbench.records.case import Series

SIDECAR = {
    "00080060": "Modality", "00080070": "Manufacturer", "00080008": "ImageType", "00180020": "ScanningSequence", "00180021": "SequenceVariant",
    "00180023": "MRAcquisitionType", "00180080": "RepetitionTime", "00180081": "EchoTime", "00180082": "InversionTime", "00181314": "FlipAngle",
    "00180087": "MagneticFieldStrength", "00180084": "ImagingFrequency",
}  # fmt: skip
"""Keys of a sidecar by the header element that they come from."""


def score_files(key: AnswerKey, out: Path, series: dict[str, Series], tally: Tally) -> None:
    """Score the folder of a de-identified case.

    Parameters
    ----------
    key : AnswerKey
        What was planted.
    out : Path
        The folder: names, sidecars, tables, notes, headers of NIfTI files, pictures.
    series : dict of str to Series
        The scans that came through, by raw SeriesInstanceUID.
    tally : Tally
        `text_removed` for every planted string, `tag_retained` for every key of a sidecar.
    """
    text = "\n".join(text_of_files(out))
    left = len(left_in(text, key.strings))
    tally.add((FILES, "text_removed", "HIPAA"), len(key.strings) - left, len(key.strings), where="shareable file")
    for rules in key.series:
        if not rules.kept:
            continue
        found = series.get(rules.series_uid)
        path = out / found.path.replace(".nii.gz", ".json") if found else None
        sidecar = read_json(path) if path and path.is_file() else {}
        for rule in rules.rules:
            if rule.action == "text_retained" and rule.path in SIDECAR:
                name = SIDECAR[rule.path]
                tally.add((FILES, "tag_retained", "research"), name in sidecar, where=name)


def text_of_files(folder: Path) -> Iterator[str]:
    """Give the names of all files of a folder and what can be read in each of them, as `searchable` text."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield searchable(path.relative_to(folder).as_posix().encode())
        content = path.read_bytes()
        if path.name.endswith(".nii.gz"):
            with gzip.open(path) as file:
                content = file.read(2048)  # the header and its extensions; voxels are numbers
        elif path.suffix == ".png":
            content = png_text(content)
        yield searchable(content)


def png_text(content: bytes) -> bytes:
    """Give everything in a PNG but its pixels: the chunks of text, unpacked, and those of an unknown kind."""
    parts, place = [], 8
    while place + 8 <= len(content):
        size, kind = int.from_bytes(content[place : place + 4], "big"), content[place + 4 : place + 8]
        body = content[place + 8 : place + 8 + size]
        if kind != b"IDAT":
            parts.append(body)
            for start in range(len(body)) if kind in {b"zTXt", b"iTXt", b"iCCP"} else ():
                if body[start : start + 1] == b"\x78":
                    try:
                        parts.append(zlib.decompress(body[start:]))
                    except zlib.error:
                        continue
        place += 12 + size
        if kind == b"IEND":  # what stands behind the picture is no chunk
            break
    parts.append(content[place:])
    return b"\n".join(parts)
