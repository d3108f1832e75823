"""Write a listing: the shareable case table and the private index of files."""

from __future__ import annotations

import csv
import io
import json
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import CaseRow, read_case_table, write_case_table
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.pseudonyms import DIGITS, case_pseudonym, patient_pseudonym
from neuralmedbench.files.raw_folder import RawFile, RawIndex, write_raw_index
from neuralmedbench.ingest.listing import Listing, Pseudonyms
from neuralmedbench.ingest.persons_labels import write_series_table
from neuralmedbench.ingest.raw_files import FILE_NAMES
from neuralmedbench.ingest.source_files import FILES_COLUMNS
from neuralmedbench.runtime.atomic_write import write_text, write_tsv

UNITS = {"age": "years"}
JOINS = "joins.csv"
"""Rows of `files.csv` that would join cases, for a person to copy."""


def keyed_pseudonyms(key: bytes) -> Pseudonyms:
    """Return pseudonyms that can be reproduced with the key (profile `pseudonymised`)."""
    return lambda cases: [(patient_pseudonym(key, patient), case_pseudonym(key, patient, study)) for patient, study in cases]


def numbered_pseudonyms() -> Pseudonyms:
    """Return pseudonyms that number patients and cases in the order in which they come, for a look that writes nothing."""
    patients: dict[str, str] = {}
    numbers: dict[tuple[str, str], str] = {}

    def number(patient: str, study: str) -> tuple[str, str]:
        return patients.setdefault(patient, f"{len(patients) + 1:04d}"), numbers.setdefault((patient, study), f"{len(numbers) + 1:04d}")

    return lambda cases: [number(*case) for case in cases]


def linked_pseudonyms(table: Path) -> Pseudonyms:
    """Return random pseudonyms, stored in a private linkage table (profile `safe_harbor`).

    Parameters
    ----------
    table : Path
        The linkage table; its ids are reused, new ones are written to it, all at once, before any is returned.
    """
    known: dict[str, str] = json.loads(table.read_text(encoding="utf-8")) if table.exists() else {}

    def identify(cases: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        names = [(f"patient:{patient}", f"case:{patient}/{study}") for patient, study in cases]
        new = [name for pair in names for name in pair if name not in known]
        known.update((name, secrets.token_hex(DIGITS // 2)) for name in dict.fromkeys(new))
        if new:
            write_json(table, known, private=True)
        return [(known[patient], known[case]) for patient, case in names]

    return identify


def write_listing(listing: Listing, table: Path, private: Path) -> None:
    """Write the case table, one index per case with the paths of its files by number, and the listing for people.

    Parameters
    ----------
    listing : Listing
        Cases of the source folder.
    table : Path
        `config/benchmarks/<benchmark>.cases.tsv`. A person's entries (overrides, exclude) are kept for cases that remain. An excluded case
        without files keeps its row, so that it stays excluded if they come back.
    private : Path
        `data/raw/<benchmark>/`; indexes of removed cases are deleted. `JOINS` there has the rows of `files.csv` that would join cases.

    Raises
    ------
    ConfigError
        If the listing has no case of an existing table: with another key or folder, all entries of a person would be lost.
    """
    before = {row.case_id: row for row in read_case_table(table)} if table.exists() else {}
    gone = set(before) - {case.index.case_id for case in listing.cases}
    if before and len(gone) == len(before):
        message = (
            f"{table.name}: none of its {len(before)} cases is in the new listing, as with another key or another folder; nothing was changed."
            " Correct `key_file` or `source` in the benchmark's yaml, or move the table away to start again"
        )
        raise ConfigError(message)
    rows: list[CaseRow] = []
    for case in listing.cases:
        index = with_facts(case.index, case.facts, private / case.index.case_id)
        write_raw_index(private / index.case_id / "files.json", index)
        _write_file_names(private / index.case_id / FILE_NAMES, index)
        previous = before.get(index.case_id)
        rows.append(
            CaseRow(
                case_id=index.case_id,
                patient_id=index.patient_id,
                source_sha256=index.source_sha256,
                sequence_overrides={**(previous.sequence_overrides if previous else {}), **case.overrides},
                exclude=previous.exclude if previous else "",
            )
        )
    for case_id in gone:
        shutil.rmtree(private / case_id, ignore_errors=True)
    rows += [before[case_id] for case_id in gone if before[case_id].exclude]
    places = [(case.index.case_id, case.place, "") for case in listing.cases]
    write_tsv(private / "listing.tsv", [("case_id", "place", "left_out"), *places, *(("", *pair) for pair in listing.left_out.items())])
    (private / JOINS).unlink(missing_ok=True)
    if listing.joins:
        write_joins(private / JOINS, listing.joins)
    write_series_table(private / "series.tsv", {case.index.case_id: case.series for case in listing.cases})
    write_case_table(table, rows)


def write_joins(path: Path, rows: Sequence[tuple[str, str, str]]) -> None:
    """Write rows of `files.csv` that would join cases: for the private zone."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([FILES_COLUMNS[:3], *rows])
    write_text(path, text.getvalue(), private=True)


def _write_file_names(path: Path, index: RawIndex) -> None:
    files = [(str(number), file.path) for number, file in enumerate(index.files or index.pictures, start=1)]
    write_tsv(path, [("number", "path"), *files])


def with_facts(index: RawIndex, facts: dict[str, str], folder: Path) -> RawIndex:
    """Write a patient's facts from the table of a data set as the health record of the case; return the index with it."""
    if not facts:
        return index
    record = folder / "record.csv"
    rows = [f"{name},{value},{UNITS.get(name, '')}" for name, value in sorted(facts.items()) if is_plain_value(value)]
    write_text(record, "\n".join(["variable,value,unit", *rows]) + "\n")
    return replace(index, record=RawFile(path=record.name, sha256=sha256_of(record)))


def is_plain_value(value: str) -> bool:
    """Return whether a value of a table is a number or one word, not free text."""
    return re.fullmatch(r"[A-Za-z0-9.+]{1,12}", value) is not None
