"""NeuroVLM-Bench: single slices of seven public collections, rebuilt by the user, with one structured answer each."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from neuralmedbench.benchmarks.adapters.rows import DataSet, QuestionEntry, plain_id, refusal_of
from neuralmedbench.benchmarks.neurovlm_labels import gold_of, question_of
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.records.columns import PICTURE_COLUMNS
from neuralmedbench.records.items import Axis
from neuralmedbench.records.questions import Refusal

DEV, TEST = "dev", "test"
DEV_SHARE = 0.2

KEY = b"neuralmedbench patient-safe division 1"
"""Not a secret: it makes the division reproducible. Another key gives another division, which needs another name."""

CONTROL = re.compile(r"(kontrol \d+) \(\d+\)", re.IGNORECASE)
"""File names of the healthy controls of the MS collection: a number that appears to be the person's, and the slice number."""

EXAMPLES = ("few_shot_examples.csv", "*/few_shot_examples.csv")
SUBSETS = "subset_*.csv"

FOLDERS = ("", "dataset/", "images/")
"""Possible parents of the collections; the table's paths begin with the name of a collection."""

Row = dict[str, Any]


def read(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read the table of the pictures.

    Published subsets in the folder become tags `split:<name>`, and `few_shot_examples.csv` examples that are never asked. Those
    subsets divide slices, not patients, so every question also gets `patient_safe:dev` or `patient_safe:test`, a division of ours that is
    not part of the published benchmark. Examples, their patients and their duplicates are always in `dev`.
    """
    table = source.find("image_mapping.csv", "*/image_mapping.csv")[0]
    rows = list(source.rows(table, PICTURE_COLUMNS))
    subsets = _subsets(source)
    examples = _paths(source, EXAMPLES)
    files = {row["file_path"]: path for row in rows if (path := _picture(source, row["file_path"])) is not None}
    digests = {name: sha256_of(path) for name, path in files.items()}
    # examples are always in dev, with their patients and duplicates
    side = division(_memberships(rows, digests), fixed=dict.fromkeys(examples, DEV))
    for number, row in enumerate(rows, start=1):
        name = row["file_path"]
        try:
            tags = [*(f"split:{subset}" for subset, members in subsets.items() if name in members), f"patient_safe:{side.get(name, '')}"]
            yield _entry(row, files.get(name), tags, exemplar=name in examples)
        except DataError as error:
            yield refusal_of(f"{table.name}, row {number}", error)
    for name in sorted(examples - {row["file_path"] for row in rows}):
        yield Refusal(where=f"example {identity(name)}", reason="the table of the pictures does not have this example")


def _subsets(source: SourceFolder) -> dict[str, set[str]]:
    try:
        tables = source.find(f"subsets/{SUBSETS}", SUBSETS, f"*/subsets/{SUBSETS}")
    except DataError:  # subsets are optional
        return {}
    return {table.stem: {row["file_path"] for row in source.rows(table, ("file_path",))} for table in tables}


def _paths(source: SourceFolder, patterns: tuple[str, ...]) -> set[str]:
    try:
        table = source.find(*patterns)[0]
    except DataError:  # examples are optional
        return set()
    return {row["file_path"] for row in source.rows(table, ("file_path",))}


def _picture(source: SourceFolder, name: str) -> Path | None:
    for folder in FOLDERS:
        try:
            return source.picture(f"{folder}{name}")
        except DataError:  # its row is refused later
            continue
    return None


def division(memberships: Mapping[str, Sequence[str]], fixed: Mapping[str, str]) -> dict[str, str]:
    """Divide pictures into `dev` and `test`, keeping pictures with a common patient or digest together, even if linked indirectly.

    About `DEV_SHARE` of these groups are `dev`, by a keyed digest of the group's first name; a group with a fixed picture gets its side.
    """
    # union-find with path halving; the root of a group is its alphabetically first name
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
    # groups with a picture of a fixed side
    given = {root(memberships[picture][0]): side for picture, side in fixed.items() if picture in memberships}
    return {picture: given.get(root(names[0])) or _by_digest(root(names[0])) for picture, names in memberships.items()}


def _by_digest(name: str) -> str:
    value = int.from_bytes(hmac.new(KEY, name.encode(), hashlib.sha256).digest()[:8], "big") / 2**64
    return DEV if value < DEV_SHARE else TEST


def _memberships(rows: Iterable[Row], digests: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return, by picture, the groups that must not be divided: identical bytes, and the patient if the path names one."""
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        if digest := digests.get(row["file_path"]):
            subject = subject_of(row["dataset"], row["file_path"])
            found[row["file_path"]] = (f"picture {digest}", subject) if subject else (f"picture {digest}",)
    return found


def subject_of(data_set: str, file_path: str) -> str:
    """Return the patient of a picture if its path identifies one, else an empty text.

    AISD has one folder per patient. For the controls of the MS collection we interpret the number in the file name as the person, for the
    division only, not for statistics. Patients of the other collections may be on both sides.
    """
    path = PurePosixPath(file_path)
    if data_set.lower() == "aisd" and path.parent.name:
        return f"aisd {path.parent.name}"
    # all slices of one control have the same number in their file names
    control = CONTROL.fullmatch(path.stem)
    return f"control {control.group(1).lower()}" if control else ""


def _entry(row: Mapping[str, Any], picture: Path | None, tags: Iterable[str], *, exemplar: bool) -> QuestionEntry:
    if picture is None:
        message = "the picture is not there; rebuild its collection below the folder"
        raise DataError(message)
    question = question_of(identity(row["file_path"]), row, exemplar=exemplar)
    question = replace(question, tags=(*question.tags, *tags))
    return QuestionEntry(question=question, gold=gold_of(question.question_id, "the row", row), pictures={question.images[0].file: picture})


def identity(file_path: str) -> str:
    """Return the id of a picture: its collection and a digest of its path, so that it does not reveal the class."""
    return plain_id(f"{file_path.partition('/')[0]}-{hashlib.sha256(file_path.encode()).hexdigest()[:12]}")


DATA_SETS = (
    DataSet(
        name="neurovlm",
        title="NeuroVLM-Bench",
        home="https://github.com/ChatMED/neurovlm-bench (tables); the pictures from the collections that its README names",
        licence="its repository has no licence file; the pictures under the licences of the seven collections",
        files="image_mapping.csv, the pictures at the paths it names, subsets/subset_*.csv and few_shot_examples.csv where wanted",
        axis=Axis.BREADTH,
        expected=29504,
        read=read,
        label_policy="none",
    ),
)
