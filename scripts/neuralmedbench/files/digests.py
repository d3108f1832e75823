"""SHA-256 digests that identify files and values."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from neuralmedbench.runtime.atomic_write import is_partial


def sha256_of(path: Path) -> str:
    """Return the hex SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bytes_with_digest(path: Path, sha256: str) -> bytes | None:
    """Read a file; return None if it is absent or has another digest."""
    content = path.read_bytes() if path.is_file() else None
    return content if content is not None and hashlib.sha256(content).hexdigest() == sha256 else None


def sha256_of_files(folder: Path) -> dict[str, str]:
    """Return the digests of all files below a folder, by relative POSIX path, sorted; temporary folders are skipped."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not is_partial(path.relative_to(folder)))
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}


def sha256_of_value(value: object) -> str:
    """Return the digest of a JSON value in canonical form: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
