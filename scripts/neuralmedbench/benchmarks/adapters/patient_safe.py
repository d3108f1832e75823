"""A division of single slices into `dev` and `test` that no patient and no picture crosses, as far as a data set lets one see."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

DEV, TEST = "dev", "test"
DEV_SHARE = 0.2
KEY = b"neuralmedbench patient-safe division 1"
"""Public and fixed: it makes the division ours and repeatable, and hides nothing. Another key is another division and needs another name."""

CONTROL = re.compile(r"(kontrol \d+) \(\d+\)", re.IGNORECASE)
"""File names of the healthy controls of the MS collection: a number that looks like the person's, and the number of the slice."""


def subject_of(data_set: str, file_path: str) -> str:
    """Give whom a picture of NeuroVLM-Bench shows, where its path tells; empty elsewhere.

    AISD has one folder a patient. The controls of the MS collection are taken by the number in their file names, which is our reading of
    them, so it serves the division alone and no statistic. The other collections tell nothing: their patients may lie on both sides.
    """
    path = PurePosixPath(file_path)
    if data_set.lower() == "aisd" and path.parent.name:
        return f"aisd {path.parent.name}"
    control = CONTROL.fullmatch(path.stem)
    return f"control {control.group(1).lower()}" if control else ""


def sides(memberships: Mapping[str, Sequence[str]], fixed: Mapping[str, str]) -> dict[str, str]:
    """Divide pictures.

    Parameters
    ----------
    memberships : mapping of str to sequence of str
        By picture, the names of what has to stay together: its patient, the digest of its bytes.
    fixed : mapping of str to str
        Pictures whose side is given; whatever hangs together with one of them follows it.

    Returns
    -------
    dict of str to str
        `dev` or `test` by picture. Pictures that share a name, directly or over others, have the same side: `dev` for about `DEV_SHARE` of
        these groups, by a keyed digest of the first name of the group.
    """
    roots: dict[str, str] = {}

    def root(name: str) -> str:
        while (above := roots.setdefault(name, name)) != name:
            roots[name] = roots[above]
            name = above
        return name

    for names in memberships.values():
        first = root(names[0])
        for other in names[1:]:
            one, two = sorted((first, root(other)))
            roots[two] = first = one
    given = {root(memberships[picture][0]): side for picture, side in fixed.items() if picture in memberships}
    return {picture: given.get(root(names[0])) or _by_digest(root(names[0])) for picture, names in memberships.items()}


def _by_digest(name: str) -> str:
    value = int.from_bytes(hmac.new(KEY, name.encode(), hashlib.sha256).digest()[:8], "big") / 2**64
    return DEV if value < DEV_SHARE else TEST
