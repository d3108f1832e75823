"""REDCap as a bridge: a round is exported as dictionary and records, and a raw export is imported as ratings."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from neuralmedbench.cli.ratings import export_redcap, import_redcap
from neuralmedbench.errors import RatingError
from neuralmedbench.ratings.form import read_form
from neuralmedbench.ratings.imports import import_round
from neuralmedbench.ratings.redcap import DICTIONARY, data_dictionary

FORM_FILE = ROOT / "config" / "rating.yaml"
FORM = read_form(FORM_FILE)


def key(**changes: Any) -> dict[str, Any]:
    place = {"arm": "full", "strategy": "direct", "model": "alpha", "revision": "1", "repeat": 0, "text_sha256": "0" * 64}
    packets = [
        {
            "packet_id": f"p{rater}", "packet_sha256": rater * 64, "rater": f"rater-{rater}", "order": [f"{rater}b", f"{rater}a", f"{rater}c"],
            "items": {f"{rater}{name}": {**place, "item_id": f"demo/{name}", "probability": 0.5} for name in "abc"},
        }
        for rater in ("1", "2")
    ]  # fmt: skip
    return {
        "schema": "neuralmedbench.rating_key/2", "round_id": "r01", "rubric": FORM.rubric, "seed": 1, "secret": "00",
        "first_judgement": ["dx_correct"], "strata": {"alpha": {"frame": 6, "drawn": 3, "probability": 0.5}}, "packets": packets, **changes,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "r01"
    made.mkdir()
    (made / "key.json").write_text(json.dumps(key()))
    assert export_redcap.main(["--round", "r01", "--form", str(FORM_FILE), "--folder", str(tmp_path)]) == 0
    return made


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def filled(folder: Path, rater: str = "rater-1") -> list[dict[str, str]]:
    """Fill in a rater's records as in a raw REDCap export."""
    fields = [row["Variable / Field Name"] for row in read(folder / "redcap" / "dictionary.csv")]
    rows = []
    for number, record in enumerate(read(folder / "redcap" / f"{rater}.csv")):
        values = {name: str(axis.highest - number % 2) for name, axis in FORM.axes.items()}
        errors = {f"error_{code}": "0" for code in FORM.errors} | {"error_missed_lesion": str(number)}
        row = {**record, **values, **errors, "reference_open": str(number)}
        rows.append({name: row[name] for name in fields} | {"redcap_data_access_group": rater, "rating_complete": "2"})
    return rows


def back(folder: Path, rows: list[dict[str, str]]) -> None:
    path = folder.parent / "export.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert import_redcap.main(["--round", "r01", "--export", str(path), "--form", str(FORM_FILE), "--folder", str(folder.parent)]) == 0


def test_the_dictionary_has_redcaps_columns_and_one_field_an_axis_and_an_error(folder: Path) -> None:
    rows = read(folder / "redcap" / "dictionary.csv")
    assert tuple(rows[0]) == DICTIONARY
    assert len(DICTIONARY) == 18
    fields = {row["Variable / Field Name"]: row for row in rows}
    assert rows[0]["Variable / Field Name"] == "record_id"
    assert set(FORM.axes) | {f"error_{code}" for code in FORM.errors} <= set(fields)
    choices = fields["dx_correct"]["Choices, Calculations, OR Slider Labels"]
    assert choices == "0, 0: wrong and misleading | 1, 1 | 2, 2 | 3, 3 | 4, 4: exact | 99, cannot judge"
    assert {row["Form Name"] for row in rows} == {"rating"}


def test_only_opaque_ids_go_to_the_server(folder: Path) -> None:
    text = "".join(path.read_text() for path in (folder / "redcap").iterdir())
    assert "demo/" not in text
    assert "alpha" not in text
    assert [row["item_id"] for row in read(folder / "redcap" / "rater-1.csv")] == ["1b", "1a", "1c"]


def test_a_round_that_went_through_redcap_is_imported_as_if_the_page_had_exported_it(folder: Path) -> None:
    rows = filled(folder)
    rows[2] |= dict.fromkeys(FORM.axes, "99") | {"error_missed_lesion": "0"}
    rows[1]["reasoning"] = "99"
    back(folder, rows + filled(folder, "rater-2"))
    assert len(list(folder.glob("rating_redcap_*.csv"))) == 2
    ratings = [row for row in import_round(folder, FORM, {}) if row.rater_id == "rater-1"]
    told = {(row.item_id, row.axis): row.value for row in ratings}
    assert told["demo/b", "dx_correct"] == 4
    assert (told["demo/a", "dx_correct"], told["demo/a", "reasoning"], told["demo/a", "error.missed_lesion"]) == (3, None, 1)
    assert {value for (item, _), value in told.items() if item == "demo/c"} == {None}
    assert ("demo/b", "error.missed_lesion") not in told
    informed = {(row.item_id, row.axis): row.informed for row in ratings}
    assert [informed[place] for place in (("demo/b", "reasoning"), ("demo/a", "dx_correct"), ("demo/a", "reasoning"))] == [
        False,
        False,
        True,
    ]
    assert informed["demo/c", "dx_correct"]


def test_an_export_is_complete_when_every_answer_of_the_packet_is(folder: Path) -> None:
    rows = filled(folder)
    for given in (rows[:2], [*rows[:2], rows[2] | {"rating_complete": "1"}], [*rows[:2], rows[2] | {"reasoning": ""}]):
        back(folder, given)
        assert read(next(folder.glob("rating_redcap_*.csv")))[0]["complete"] == "false"
        for path in folder.glob("rating_redcap_*.csv"):
            path.unlink()
    back(folder, rows)
    assert read(next(folder.glob("rating_redcap_*.csv")))[0]["complete"] == "true"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dx_correct": "exact"}, r"line 2: dx_correct is not a code of the form; export raw data, no labels"),
        ({"dx_correct": "5"}, "line 2: dx_correct is not a code"),
        ({"error_missed_lesion": "3"}, "line 2: error_missed_lesion is not a code"),
        ({"name": "Mrs Example"}, "missing or unexpected fields: name"),
        ({"rater_id": "../../x"}, "a rater who has no packet in r01"),
    ],
)
def test_an_export_that_does_not_fit_is_refused_and_nothing_of_it_is_repeated(folder: Path, change: dict[str, str], words: str) -> None:
    rows = filled(folder)
    with pytest.raises(RatingError, match=words) as error:
        back(folder, [rows[0] | change, *[row | dict.fromkeys(set(change) - set(row), "") for row in rows[1:]]])
    assert not any(value in str(error.value) for value in change.values() if len(value) > 1)


def test_an_export_without_a_field_and_a_file_that_is_no_table_are_refused(folder: Path) -> None:
    with pytest.raises(RatingError, match="missing or unexpected fields: dx_correct"):
        back(folder, [{name: value for name, value in row.items() if name != "dx_correct"} for row in filled(folder)])
    (folder.parent / "export.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(RatingError, match="not CSV in UTF-8"):
        import_redcap.main(
            ["--round", "r01", "--export", str(folder.parent / "export.csv"), "--form", str(FORM_FILE), "--folder", str(folder.parent)]
        )


def test_a_form_that_redcap_cannot_take_and_another_rubric_are_refused(folder: Path) -> None:
    from neuralmedbench.ratings.exports import RoundKey

    whole = RoundKey.model_validate(key())
    axis = FORM.axes["dx_correct"]
    for changed in (
        {"Dx": axis},
        {"dx": axis.model_copy(update={"anchors": ("a|b", "c")})},
        {"dx": axis.model_copy(update={"highest": 99})},
    ):
        with pytest.raises(RatingError, match="REDCap does not support this axis"):
            data_dictionary(FORM.model_copy(update={"axes": changed}), whole)
    with pytest.raises(RatingError, match="it has the rubric"):
        data_dictionary(FORM, whole.model_copy(update={"rubric": "0.1"}))
