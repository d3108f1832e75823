"""Files that a table names: nothing outside of the folder to which its paths are relative is ever read."""

from __future__ import annotations

from pathlib import Path

from neuralmedbench.errors import DataError


def file_inside(folder: Path, name: str, what: str = "the file") -> Path:
    """Give the path of a file that lies in a folder, at any depth.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str
        Its path as a table writes it, relative to the folder.
    what : str
        What it is, for the message.

    Returns
    -------
    Path
        The path, not resolved.

    Raises
    ------
    DataError
        If it leads out of the folder, by a link too, or there is no such file; the message does not repeat it.
    """
    path = folder / name
    try:
        inside, there = path.resolve().is_relative_to(folder.resolve()), bool(name) and path.is_file()
    except (OSError, ValueError):  # a name that no file system takes
        inside, there = True, False
    if not inside:
        message = f"the path of {what} leaves the folder"
        raise DataError(message)
    if not there:
        message = f"{what} is not there"
        raise DataError(message)
    return path
