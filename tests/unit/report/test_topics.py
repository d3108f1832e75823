"""Tables that the page draws from the definitions of a topic: lines, columns, and what is left to the files."""

from __future__ import annotations

import pytest

from neuralmedbench.records.results import types_of_table
from neuralmedbench.report.topics import SHOWN_FROM, shape_of, topic_elements, topic_table

TOPIC = "decomposition"
"""A topic whose columns the rows have."""

NAMED = [("rate", "Rate", "share", True), ("gain", "Gain", "points", True), ("other", "Other", "number", False)]
MEASURES = [
    {"name": name, "title": title, "text": f"{title} of something.", "unit": unit, "main": main} for name, title, unit, main in NAMED
]
"""Three measures, of which two are columns of the page."""


def row(measure: str, **cells: str) -> dict[str, str]:
    blank = dict.fromkeys(types_of_table(TOPIC), "")
    return blank | {"benchmark": "b", "model": "m", "topic": TOPIC, "measure": measure, "arm": "full", "n_patients": "12"} | cells


def test_a_line_holds_the_measures_of_one_model_and_a_column_each_main_measure() -> None:
    table = topic_table([row("rate", value="0.5"), row("gain", difference="0.1", other_arm="full"), row("other", value="3")], MEASURES)
    assert [column.title for column in table.columns] == ["Rate", "Gain"]
    assert [column.text for column in table.columns] == ["Rate of something.", "Gain of something."]
    (line,) = table.lines
    assert {column.measure: cell["value"] or cell["difference"] for column, cell in line.cells.items()} == {"rate": "0.5", "gain": "0.1"}
    assert (table.heads, line.names, table.few, table.several_benchmarks) == ((), (), 0, False)


def test_lines_are_told_apart_by_the_columns_in_which_rows_of_one_measure_differ() -> None:
    rows = [row("rate", arm=arm, slice="level", value_of_slice=level) for arm in ("full", "no_image") for level in ("1", "2")]
    table = topic_table(rows, MEASURES)
    assert table.heads == ("Level", "Arm")
    assert [line.names for line in table.lines] == [("1", "full"), ("2", "full"), ("1", "no image"), ("2", "no image")]
    mixed = topic_table([row("rate"), row("rate", slice="family", value_of_slice="lesion_recognition")], MEASURES)
    assert mixed.heads == ("Group",)
    assert [line.names for line in mixed.lines] == [("all",), ("family, lesion recognition",)]


def test_the_one_other_model_and_the_one_arm_of_a_comparison_are_named() -> None:
    pair = row("gain", difference="0.1", other_arm="full", other="n")
    assert (topic_table([pair], MEASURES).heads, topic_table([pair], MEASURES).lines[0].names) == (("Compared with",), ("n",))
    arm = row("gain", difference="0.1", arm="no_image", other_arm="full")
    assert (topic_table([arm], MEASURES).heads, topic_table([arm], MEASURES).lines[0].names) == (("Arm",), ("no image",))


def test_the_lines_of_simulated_raters_are_named_also_where_there_are_no_others() -> None:
    labels = topic_table([row("rate", source="simulated round r01")], MEASURES)
    assert (labels.heads, labels.lines[0].names) == (("Source",), ("simulated round r01",))
    rates = topic_table([row("rate", slice="raters", value_of_slice="simulated raters")], MEASURES)
    assert (rates.heads, rates.lines[0].names) == (("Raters",), ("simulated raters",))
    assert topic_table([row("rate", source="judge")], MEASURES).heads == ()


def test_items_are_counted_only_where_a_row_counts_them() -> None:
    assert topic_table([row("rate")], MEASURES).counts_items is False
    assert topic_table([row("rate"), row("gain", n_items="4")], MEASURES).counts_items is True


def test_a_value_and_a_difference_of_one_name_are_two_columns() -> None:
    table = topic_table([row("rate", value="0.5"), row("rate", difference="-0.1", other_arm="full")], MEASURES)
    assert [(column.title, column.shape) for column in table.columns] == [("Rate", "value"), ("Rate, difference", "difference")]
    assert len(table.lines) == 1
    points = topic_table([row("gain", value="0.5"), row("gain", difference="-0.1", other_arm="full")], MEASURES)
    assert [column.title for column in points.columns] == ["Gain", "Gain, difference"]


@pytest.mark.parametrize("count", [str(SHOWN_FROM - 1), "<10", "(hidden)"])
def test_lines_of_few_patients_are_counted_and_not_shown(count: str) -> None:
    table = topic_table([row("rate", n_patients=count), row("rate", model="n", n_patients=str(SHOWN_FROM))], MEASURES)
    assert [line.first["model"] for line in table.lines] == ["n"]
    assert table.few == 1


def test_a_line_whose_patients_are_not_counted_is_shown() -> None:
    assert topic_table([row("rate", n_patients="")], MEASURES).few == 0


def test_rows_without_a_main_measure_make_an_empty_table() -> None:
    table = topic_table([row("other", value="1")], MEASURES)
    assert (table.lines, table.columns, table.few) == ((), (), 0)


def test_the_kind_of_a_number_follows_from_its_columns() -> None:
    assert [shape_of(row("rate", **cells)) for cells in ({"value": "1"}, {"other_arm": "full"}, {"count": "3"}, {})] == [
        "value",
        "difference",
        "count",
        "value",
    ]


def test_checklists_can_name_every_measure_its_interval_and_the_usual_slices() -> None:
    assert {"rate", "rate-interval", "gain", "age", "field-strength"} <= topic_elements(MEASURES)
