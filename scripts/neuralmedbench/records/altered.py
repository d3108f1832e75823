"""Altered pictures: what some arms show instead of the pictures of an item."""

from __future__ import annotations

from dataclasses import dataclass, field

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class AlteredPicture:
    """A picture made from one or several pictures of a case, for one arm.

    Attributes
    ----------
    case_id, arm : str
        Its case, and the arm that shows it.
    sources : tuple of str
        SHA-256 of the pictures that it was made from; it stands in the place of the first.
    volume_sha256 : str
        Digest of their scan, which the audit covers (in a benchmark of pictures, of the first source).
    path, sha256 : str
        The file, relative to the root of the project, and its digest.
    window : str
        Its CT windows, where its colours have several; empty: that of its source.
    quality : dict of str to float
        Quality numbers of the picture against its source, by name.
    """

    case_id: str
    arm: str
    sources: tuple[str, ...]
    volume_sha256: str
    path: str
    sha256: str
    window: str = ""
    quality: dict[str, float] = field(default_factory=dict)


def altered_key(row: AlteredPicture) -> tuple[str, str, tuple[str, ...], str]:
    """Return what is different for every altered picture of a benchmark: case, arm, sources and scan."""
    return row.case_id, row.arm, row.sources, row.volume_sha256
