"""Search the files of a de-identified case for the patient's identifiers."""

from __future__ import annotations

import gzip
import re
import struct
from pathlib import Path

from neuralmedbench.errors import DeidentificationError
from neuralmedbench.files.dicom import header_bytes
from neuralmedbench.files.identity import Identity, fold, identity_pattern

DIGESTS = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{12})\b")
"""Digests and pseudonyms, which contain meaningless runs of digits."""
NOT_TEXT = frozenset({".png"})


def require_no_leaks(folder: Path, identity: Identity) -> None:
    """Refuse a cleaned case in which identifying values are left; DeidentificationError states how many, never which."""
    if leaks := count_leaks(folder, identity):
        message = f"{leaks} identifying values are left after cleaning: the case is kept back; report the kind of file, never the value"
        raise DeidentificationError(message)


def count_leaks(folder: Path, identity: Identity) -> int:
    """Count identifying values in the files of a folder.

    `identity`: the patient's values, matched by `files.identity.identity_pattern` regardless of accents. Returns the number of matches in
    names and contents of files.
    """
    pattern = identity_pattern(identity)
    if pattern is None:
        return 0
    leaks = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix().replace("_", " ")
        leaks += _hits(pattern, name)
        if path.suffix not in NOT_TEXT:
            leaks += _hits(pattern, _readable(path))
    return leaks


def _hits(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(fold(DIGESTS.sub(" ", text))))


def _readable(path: Path) -> str:
    """Return the readable part of a file: its text, the header and extensions of NIfTI, or everything before the pixels of DICOM."""
    if path.suffix == ".dcm":
        return header_bytes(path.read_bytes()).decode("latin-1").replace("\0", " ")
    if not path.name.endswith(".nii.gz"):
        return path.read_text(encoding="utf-8", errors="replace")
    with gzip.open(path) as file:
        header = file.read(352)
        offset = _voxel_offset(header)
        extensions = file.read(max(0, min(offset, 1 << 20) - len(header)))
    # text in a header is terminated by zero bytes
    return (header + extensions).decode("latin-1").replace("\0", " ")


def _voxel_offset(header: bytes) -> int:
    if len(header) < 112:
        return 0
    little = struct.unpack("<i", header[:4])[0] == 348
    return int(struct.unpack(("<" if little else ">") + "f", header[108:112])[0])
