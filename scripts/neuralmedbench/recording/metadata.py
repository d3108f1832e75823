"""What Snakemake wrote down about every file that it made."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

METADATA = Path(".snakemake/metadata")


@dataclass(frozen=True, kw_only=True)
class Made:
    """How one file was made.

    Attributes
    ----------
    path : str
        The file, relative to the repository root.
    rule : str
        The rule that made it.
    shellcmd : str
        The command, as it was run.
    inputs : tuple of str
        What it was made from.
    params : tuple of str
        The rule's params, the hash of the code among them, as Snakemake spells them.
    checksums : dict of str to str
        SHA-256 digests of the inputs when it was made; a folder has none.
    ended : float
        When the command ended, seconds since 1970.
    """

    path: str
    rule: str
    shellcmd: str
    inputs: tuple[str, ...]
    params: tuple[str, ...]
    checksums: dict[str, str]
    ended: float


def read_metadata(folder: Path = METADATA) -> Iterator[Made]:
    """Read the records of all files, sorted by path; none when there is no folder.

    A record that is torn (Snakemake was killed while it wrote it) is passed over: Snakemake makes such a file again.

    Parameters
    ----------
    folder : Path
        Snakemake's folder of records: one JSON file for each output, named by the base64 of its path (a long name is cut into
        folders whose names begin with `@`).

    Yields
    ------
    Made
        One record.
    """
    files = {path_of(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()} if folder.is_dir() else {}
    for path, file in sorted(files.items()):
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            continue
        yield Made(
            path=path,
            rule=value.get("rule") or "",
            shellcmd=value.get("shellcmd") or "",
            inputs=tuple(value.get("input") or ()),
            params=tuple(value.get("params") or ()),
            checksums={name: digest.removeprefix("sha256:") for name, digest in (value.get("input_checksums") or {}).items()},
            ended=value.get("endtime") or 0.0,
        )


def path_of(record: Path) -> str:
    """Give the path that a record speaks of, from the record's place in Snakemake's folder."""
    return urlsafe_b64decode("".join(part.removeprefix("@") for part in record.parts)).decode()
