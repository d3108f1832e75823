"""No value of the health record that is or may be dated after the index scan enters a prompt."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.benchmarks.sources import read_record
from neuralmedbench.deid.texts import clean_record
from neuralmedbench.deid.values import DateShift
from neuralmedbench.files.templates import Templates
from neuralmedbench.records.case import CaseRecord

TEMPLATES = Templates(ROOT / "config/prompts")
SCAN = date(2031, 3, 14)
SHIFTS = (DateShift(-37), DateShift(400), DateShift(-37, years_only=True), DateShift(5, years_only=True, emptied=True))


def shown(folder: Path, *rows: str, columns: str = "variable,value,unit,days_from_scan,date", **how: object) -> list[str]:
    """Clean a record and render it as build_items does; returns the lines shown to a model."""
    settings: dict[str, object] = {"dates": SHIFTS[0], "scan_day": SCAN, **how}
    record = clean_record("\n".join([columns, *rows]) + "\n", settings["dates"], None, settings["scan_day"])  # type: ignore[arg-type]
    return rendered(folder, record.text)


def rendered(folder: Path, table: str) -> list[str]:
    (folder / "record.tsv").write_text(table, encoding="utf-8")
    case = CaseRecord(benchmark="b", case_id="a1", patient_id="p1", stage="deidentify", record="record.tsv")
    return read_record(case, folder, TEMPLATES).splitlines() if table else []


@pytest.mark.parametrize("dates", SHIFTS)
def test_values_dated_after_the_scan_stay_out_however_dates_are_shifted(tmp_path: Path, dates: DateShift) -> None:
    rows = [
        "Sodium,138,mmol/L,,2031-03-10",
        "Potassium,4.1,mmol/L,,2031-03-14",
        "Histology,glioma,,,2031-03-15",
        "Lactate,2,,3,",
        "Urea,5,,-3,",
    ]
    assert shown(tmp_path, *rows, dates=dates) == [
        "Sodium: 138 mmol/L (4 days before the scan)",
        "Potassium: 4.1 mmol/L (on the day of the scan)",
        "Urea: 5 (3 days before the scan)",
    ]


@pytest.mark.parametrize(
    "when",
    [
        "+2,",
        "0.5,",
        "1.5,",
        "40000,",
        ",2031-03-14T10:20:00 or later x2032",
        "2 weeks,",
        "soon,",
        ",14.03.2031",
        ",2031-13-40",
        ",next week",
    ],
)
def test_a_value_whose_day_is_not_known_to_be_before_the_scan_stays_out(tmp_path: Path, when: str) -> None:
    if when.startswith(",2031-03-14T"):  # a time of that day counts by its day
        assert shown(tmp_path, f"Histology,glioma,,{when}") == ["Histology: glioma (on the day of the scan)"]
    else:
        assert shown(tmp_path, f"Histology,glioma,,{when}", "Smoker,yes,,,") == ["Smoker: yes"]


def test_without_the_day_of_the_scan_no_dated_value_enters_and_those_without_a_date_do(tmp_path: Path) -> None:
    rows = ["Sodium,138,mmol/L,,2031-03-10", "Smoker,yes,,,", "Urea,5,,-3,", "Seizure,on 2031-03-01,,,"]
    assert shown(tmp_path, *rows, scan_day=None) == ["Smoker: yes", "Urea: 5 (3 days before the scan)"]


@pytest.mark.parametrize(
    "cell", ["biopsy 2031-04-02", "biopsy on 2 April 2031", "biopsy in May 2031", "biopsy 15/03/2031", "biopsy on 12 May"]
)
@pytest.mark.parametrize("dates", SHIFTS)
def test_a_later_date_in_the_words_of_a_row_keeps_it_out_whatever_its_day_column_says(tmp_path: Path, cell: str, dates: DateShift) -> None:
    told = "-1" if cell != "biopsy on 12 May" else ""  # a day without a year cannot be compared
    assert shown(tmp_path, f"{cell},glioma,,{told},", f"Result,{cell},,{told},", "Smoker,yes,,,", dates=dates) == ["Smoker: yes"]


def test_an_earlier_date_in_the_words_of_a_row_leaves_it_in_and_the_later_of_two_columns_counts(tmp_path: Path) -> None:
    rows = ["Seizure,on 2031-03-01,,,", "Histology,glioma,,-2,2031-03-20", "Sodium,138,,-9,2031-03-13"]
    lines = shown(tmp_path, *rows)
    assert lines == ["Seizure: on 2031-01-23", "Sodium: 138 (1 day before the scan)"]


def test_a_value_from_a_lifetime_ago_enters_without_its_distance(tmp_path: Path) -> None:
    assert shown(tmp_path, "Polio,yes,,-40000,") == ["Polio: yes"]


def test_rows_of_an_unknown_day_are_counted() -> None:
    text = "variable,value,date\nHistology,glioma,soon\nSmoker,yes,\n"
    assert clean_record(text, SHIFTS[0], None, SCAN).counts["record_rows_of_unknown_day"] == 1


@pytest.mark.parametrize("days", ["1", "+1", "0.4", "nan", "inf", "n/a", "1e0", "  7 ", "٣"])
def test_the_door_to_the_prompt_does_not_trust_the_table(tmp_path: Path, days: str) -> None:
    table = f"variable\tvalue\tunit\tdays_from_scan\nHistology\tglioma\t\t{days}\nSmoker\tyes\t\t\n"
    assert rendered(tmp_path, table) == ["Smoker: yes"]


def test_a_quotation_mark_does_not_swallow_the_rows_behind_it(tmp_path: Path) -> None:
    rows = ['Gait,"""slow",,0,', "Histology,glioma,,9,", "Smoker,yes,,,"]
    assert shown(tmp_path, *rows) == ['Gait: "slow (on the day of the scan)', "Smoker: yes"]


def test_words_of_a_record_are_never_rendered_as_a_template(tmp_path: Path) -> None:
    assert shown(tmp_path, "Gait,{{ 7 * 7 }},,,") == ["Gait: {{ 7 * 7 }}"]
