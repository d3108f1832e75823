"""Packs: the small files of a case as DVC keeps them, one file in place of a folder.

DVC looks at every file that it records and copies every file that it pulls. So `.dvcignore` keeps the folders `PACKED` of a case from it, and it
records the pack beside each of them (`png.zip` of `png/`). The pipeline and people read the folder; a pull makes it from the pack.
"""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from neuralmedbench.errors import DataError
from neuralmedbench.files.json_files import read_json
from neuralmedbench.runtime.atomic_write import atomic_file, atomic_folder

PACKED = ("pictures", "png", "review")
"""Folders of a case that are recorded as packs; `.dvcignore` has them too."""
STAGES = ("deidentified", "normalised", "slices", "altered")
"""Folders of `data/` with packs."""
ALTERED = "png"
"""Folder of a benchmark's altered pictures, with a folder and a pack per case."""
SUFFIX = ".zip"
UNIX, READABLE = 3, 0o100644 << 16
"""System and mode of every entry; with the first day of ZIP as its time, equal files give equal bytes."""


def write_pack(folder: Path) -> None:
    """Write the pack of a folder without subfolders beside it, uncompressed; without the folder there is none."""
    target = folder.with_suffix(SUFFIX)
    if not folder.is_dir():
        target.unlink(missing_ok=True)
        return
    write_zip(
        target, ((path.name, path.read_bytes()) for path in sorted(folder.iterdir()) if not path.name.startswith("."))
    )  # marks of Snakemake


def write_zip(target: Path, files: Iterable[tuple[str, bytes]], *, compression: int = zipfile.ZIP_STORED) -> None:
    """Write names and contents as ZIP: equal files give equal bytes."""
    with atomic_file(target) as partial, zipfile.ZipFile(partial, "w") as pack:
        for name, content in files:
            entry = zipfile.ZipInfo(name)
            entry.create_system, entry.external_attr, entry.compress_type = UNIX, READABLE, compression
            pack.writestr(entry, content)


def unpack(pack: Path, digests: Mapping[str, str] | None = None) -> None:
    """Give the folder of a pack the files that the pack holds; a folder that has them is left as it is.

    Parameters
    ----------
    pack : Path
        The pack; its folder has the same name without suffix.
    digests : dict of str to str, optional
        SHA-256 of each file, by its name.

    Raises
    ------
    DataError
        If the pack is damaged, or holds a file that is not the one of its digest; the folder stays as it was.
    """
    folder, files = pack.with_suffix(""), packed_files(pack)
    if _has(folder, files):
        return
    for name, content in files.items():
        if name != Path(name).name or (digests is not None and sha256(content).hexdigest() != digests.get(name)):
            message = (
                f"{pack.as_posix()}: holds another file {Path(name).name} than its case.json lists; make its stage again and record the run"
            )
            raise DataError(message)
    with atomic_folder(folder) as new:
        for name, content in files.items():
            (new / name).write_bytes(content)


def packed_files(pack: Path) -> dict[str, bytes]:
    """Read the files of a pack by name; DataError if it is damaged."""
    try:
        with zipfile.ZipFile(pack) as archive:
            return {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error):
        message = f"{pack.as_posix()}: a damaged pack; delete it and run `nmb run pull`, or make its stage again"
        raise DataError(message) from None


def _has(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Return whether a folder has just these files; Snakemake's marks of time do not count."""
    if not folder.is_dir():
        return False
    found = [path for path in folder.iterdir() if path.name in files or not path.name.startswith(".")]
    return len(found) == len(files) and all(path.read_bytes() == files.get(path.name) for path in found)


def unpack_cases(out: Path) -> None:
    """Unpack what a recorded folder of a benchmark holds, and delete the unpacked files of cases that it no longer holds.

    Parameters
    ----------
    out : Path
        Folder with `sub-<case>/case.json`, or with altered pictures, `png/sub-<case>.zip`; any other is left as it is.

    Raises
    ------
    DataError
        As in `unpack`.
    """
    for case in sorted(out.glob("sub-*")):
        if not (case / "case.json").is_file():  # withdrawn: DVC deleted what it knew
            for name in PACKED:
                shutil.rmtree(case / name, ignore_errors=True)
            with suppress(OSError):  # not empty: something here that was never recorded
                case.rmdir()
    packs = [folder.with_suffix(SUFFIX) for folder, _, is_packed in _packed_folders(out) if is_packed]
    for pack in packs:
        _unpack_checked(pack)
    kept = {pack.with_suffix("").name for pack in packs if pack.parent.name == ALTERED}
    for folder in (out / ALTERED).glob("sub-*/") if kept else ():
        if folder.name not in kept:
            shutil.rmtree(folder)


def packed_outs(benchmarks: Iterable[str]) -> list[Path]:
    """Return the recorded folders with packs of some benchmarks."""
    return [Path("data", stage, name) for name in benchmarks for stage in STAGES]


def pack_absent(out: Path) -> None:
    """Write the packs that a benchmark's folder lacks: that of a version without packs, whose files DVC would now leave out."""
    for folder, is_here, is_packed in _packed_folders(out):
        if is_here and not is_packed and folder.is_dir():
            write_pack(folder)


def unpack_absent(out: Path) -> None:
    """Unpack the packs of a benchmark's folder that have no folder: `dvc pull` brings packs alone. DataError as in `unpack`."""
    for folder, is_here, is_packed in _packed_folders(out):
        if is_packed and not is_here:
            _unpack_checked(folder.with_suffix(SUFFIX))


def _packed_folders(out: Path) -> Iterator[tuple[Path, bool, bool]]:
    """Yield the folders of a benchmark that are packed, without those of cases that are being made: whether each is here, and whether its pack is.

    Every start of Snakemake asks this of all cases, so each case is listed once.
    """
    for case in sorted(out.glob("sub-*")):
        names = _names_in(case)
        if "case.json" in names:
            for name in PACKED:
                if not names.isdisjoint((name, f"{name}{SUFFIX}")):
                    yield case / name, name in names, f"{name}{SUFFIX}" in names
    names = {name for name in _names_in(out / ALTERED) if name.startswith("sub-")}
    for name in sorted({name.removesuffix(SUFFIX) for name in names}):
        yield out / ALTERED / name, name in names, f"{name}{SUFFIX}" in names


def _names_in(folder: Path) -> set[str]:
    return set(os.listdir(folder)) if folder.is_dir() else set()


def _unpack_checked(pack: Path) -> None:
    """Unpack a pack, against the digests of the case.json beside it; altered pictures have theirs in a table, and are checked when they are sent."""
    record = pack.with_name("case.json")
    files = read_json(record)["files"] if record.is_file() else None
    unpack(pack, None if files is None else {Path(name).name: files[name] for name in files if Path(name).parent.name == pack.stem})
