"""Encodings of notes: decoded correctly or refused, because names in garbled text cannot be detected."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.deid import NOTE, write_index
from fixtures.raw import Stack, write_series
from neuralmedbench.files.cases import read_case
from neuralmedbench.ingest.listing import find_cases


@pytest.mark.parametrize(
    "content", [b"%PDF-1.4 Vandermeer", bytes(range(256)), "Пациент Иванов".encode("koi8-r"), "Vandermeer".encode("cp037")]
)
def test_a_text_that_cannot_be_read_is_left_out_with_a_reason_and_the_rest_goes_on(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "source"
    write_series(source, Stack(slices=4))
    (source / "good.txt").write_text(NOTE, encoding="utf-16")
    for name in ("bad.txt", "record.csv"):
        (source / name).write_bytes(content)
    found = find_cases(source)
    assert [[note.name for note in case.notes] for case in found.cases] == [["good.txt"]]
    assert set(found.left_out.values()) == {"not plain text, or in an unknown encoding; save it as text in UTF-8"}


def test_an_unreadable_note_of_an_index_is_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    import ingest_case

    raw = tmp_path / "raw"
    files = write_series(raw, Stack(slices=4))
    (raw / "1.txt").write_bytes(b"\0\1\2\3")
    (raw / "2.txt").write_text(NOTE, encoding="utf-16")
    (raw / "record.csv").write_bytes(b"variable,value\nage,\1\2\3\4\5")
    index = write_index(tmp_path, files, (raw / "1.txt", raw / "2.txt"), raw / "record.csv")
    out = tmp_path / "out" / "case.json"
    assert ingest_case.main(["--benchmark", "mine", "--case", "c0ffee", "--files", str(index), "--out", str(out)]) == 0
    case = read_case(out)
    assert (case.notes, case.record, case.quality["texts_unreadable"]) == (("text/note-01.txt", "text/note-02.txt"), "text/record.csv", 2.0)
    assert (out.parent / "text" / "note-01.txt").read_bytes() == b"\0\1\2\3"  # for de-identification to count, in the private zone
    assert (out.parent / "text" / "note-02.txt").read_text(encoding="utf-8") == NOTE


PROTOCOL = "\n".join(f"{name} = {n}" for n in range(6) for name in ("TR", "TE", "FOV", "Slice thickness"))


def test_scanner_text_is_left_out_unless_a_person_names_the_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_series(source / "p1", Stack(slices=4))
    for name in ("protocol.txt", "README.md", "bvals.txt"):
        (source / "p1" / name).write_text("0 1000 1000 1000 1000 1000" if name == "bvals.txt" else PROTOCOL, encoding="utf-8")
    (source / "p1" / "letter.txt").write_text(NOTE, encoding="utf-8")
    found = find_cases(source)
    assert [[note.name for note in case.notes] for case in found.cases] == [["letter.txt"]]
    scanner_text = "scanner text, not used; name its case in files.csv to use it"
    assert {path.name: reason for path, reason in found.left_out.items()} == {
        "protocol.txt": scanner_text,
        "bvals.txt": scanner_text,
        "README.md": "about the files, no note; name its case in files.csv to use it",
    }
    # a row of a folder names no file of it
    (source / "files.csv").write_text("path,case\np1,one\np1/protocol.txt,one\n", encoding="utf-8")
    found = find_cases(source)
    assert [[note.name for note in case.notes] for case in found.cases] == [["letter.txt", "protocol.txt"]]
    assert {path.name for path in found.left_out} == {"README.md", "bvals.txt"}
