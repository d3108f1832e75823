"""Rules that compare one value of an answer with its reference, as the authors of the data sets do."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from neuralmedbench.config.mappings import RuleName
from neuralmedbench.records.items import Gold, ReferenceValue
from neuralmedbench.records.value_reading import read_number
from neuralmedbench.records.value_rules import (
    RULES,
    example_of,
    fields_of,
    is_right,
    problem_of,
    problem_of_values,
    read_value,
    share_of,
    threshold,
    values_schema,
    write_value,
)

TEN = ReferenceValue(field="answer", rule="number", value="10", low=9.5, high=10.5)


def reference(rule: str, value: str, **changes: float | None) -> ReferenceValue:
    return ReferenceValue(field="answer", rule=rule, value=value, **changes)


def right(text: str, wanted: ReferenceValue) -> bool | None:
    return is_right(read_value(wanted.rule, text), wanted)


def test_a_mapping_names_the_rules_that_there_are() -> None:
    assert set(get_args(RuleName)) == set(RULES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("67.0", 67.0),
        ("-3.5", -3.5),
        ("−3.5", -3.5),
        ("1,250", 1250.0),
        ("1.2e3", 1200.0),
        (".5", 0.5),
        ("8.1 mL/min/1.73 m²", 8.1),
        ("24.1 kg/m^2", 24.1),
        ("24.1 kg/m2", 24.1),
        ("7.5 x 10^9/L", 7.5),
        ("about 12 %", 12.0),
        ("3 out of 9", 3.0),
        ("3/9", 3.0),
        ("2 + 3 = 5", 5.0),
        ("5 points", 5.0),
        ("5 (5)", 5.0),
        ("between 3 and 5", None),
        ("3, 4, 5", None),
        ("09/23/2014", None),
        ("N/A", None),
        ("nan", None),
        ("1e999", None),
        ("", None),
        ("round(140 * 3)", None),
        ("__import__('os')", None),
    ],
)
def test_the_only_number_of_a_text_is_read_and_nothing_is_executed(text: str, value: float | None) -> None:
    assert read_value("number", text) == value


def test_a_number_passes_from_the_lower_to_the_upper_limit() -> None:
    assert [right(text, TEN) for text in ("9.5", "10.5", "9.4999", "10.5001", "ten")] == [True, True, False, False, False]


def test_a_whole_number_is_rounded_half_to_even_as_the_authors_do() -> None:
    assert [right(text, reference("whole_number", "4")) for text in ("4", "4.0", "3.5", "4.5", "4.6", "3.4")] == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]


def test_an_index_is_not_rounded_and_minus_one_is_no_sentence() -> None:
    texts = ("5", "5.0", "sentence 5", "#5", "4.6", "-1", "5 and 6", "true")
    assert [read_value("index", text) for text in texts] == [5, 5, 5, 5, None, -1, None, 1]
    assert right("-1", reference("index", "-1"))


@pytest.mark.parametrize("text", ["1/9/2007", "01/09/2007", "2007-01-09", "01/09/2007 (estimated)", '"01/09/2007"'])
def test_a_date_is_equal_however_it_is_padded(text: str) -> None:
    assert right(text, reference("date", "01/09/2007"))


@pytest.mark.parametrize("text", ["9/1/2007", "02/30/2007", "2007", "January 9"])
def test_another_day_or_no_day_is_wrong(text: str) -> None:
    assert not right(text, reference("date", "01/09/2007"))


@pytest.mark.parametrize(
    "text", ["(34 weeks, 3 days)", "('34 weeks', '3 days')", "(34, 3)", "34 weeks and 3 days", "34w 3d", "34+3", '["34 weeks", "3 days"]']
)
def test_weeks_and_days_are_read_in_the_usual_shapes(text: str) -> None:
    assert right(text, reference("weeks_and_days", "('34 weeks', '3 days')"))


def test_weeks_alone_are_not_read_and_seven_days_are_not_a_week() -> None:
    assert read_value("weeks_and_days", "34 weeks") is None
    assert read_value("weeks_and_days", "34") is None, "the authors' expression reads 3 weeks and 4 days here"
    assert not right("(0 weeks, 7 days)", reference("weeks_and_days", "(1 weeks, 0 days)"))


@pytest.mark.parametrize("text", ["3 to 5", "3-5", "[3, 5]", "3.0 – 5.0 cm", "between 3 and 5"])
def test_equal_intervals_pass(text: str) -> None:
    assert right(text, reference("interval", "3 to 5"))


def test_an_interval_that_meets_the_reference_has_a_share_and_passes_only_where_the_set_says_so() -> None:
    wanted = reference("interval", "0 to 10")
    value = read_value("interval", "5 to 15")
    assert share_of(value, wanted) == pytest.approx(1 / 3)
    assert (is_right(value, wanted), is_right(value, reference("interval", "0 to 10", at_least=0.3))) == (False, True)
    assert share_of(read_value("interval", "11 to 12"), wanted) == 0


def test_a_box_passes_from_an_overlap_of_one_half() -> None:
    wanted = reference("box", "[0, 0, 0.2, 0.2]")
    shares = [
        share_of(read_value("box", text), wanted)
        for text in ("[0, 0, 0.2, 0.2]", "[0, 0, 0.2, 0.1]", "[0.1, 0, 0.3, 0.2]", "[0.3, 0.3, 1, 1]")
    ]
    assert shares == pytest.approx([1, 0.5, 1 / 3, 0])
    assert [right(text, wanted) for text in ("[0, 0, 0.2, 0.1]", "[0, 0, 0.2, 0.099]")] == [True, False]
    assert right("[0.2, 0.2, 0, 0]", wanted) is False, "exchanged corners meet nothing, as in the authors' code"


@pytest.mark.parametrize("text", ["[1, 2, 3, 4]", "(1,2),(3,4)", "[[1, 2, 3, 4]]", '{"bbox_2d": [1, 2, 3, 4]}', "the box is (1, 2, 3, 4)."])
def test_boxes_are_read_in_the_shapes_that_models_write(text: str) -> None:
    assert read_value("box", text) == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("B", ("B",)),
        ("b", ("B",)),
        ("(b) 2nd image, (d) 4th image", ("B", "D")),
        ("d and b", ("B", "D")),
        ('["B", "D"]', ("B", "D")),
        ("B, D.", ("B", "D")),
        ("B. 2nd image, D. 4th image", ("B", "D")),
        ("FINAL ANSWER: (a) Yes", ("A",)),
        ("**(c)** None of the above", ("C",)),
        ("a bone and a vessel", None),
        ("Yes", None),
        ("I do not know.", None),
        ("K", None),
        ("", None),
    ],
)
def test_letters_of_options_are_read_with_and_without_their_words(text: str, letters: tuple[str, ...] | None) -> None:
    assert read_value("letters", text) == letters
    assert read_value("letter", text) == (letters if letters and len(letters) == 1 else None)


def test_all_letters_have_to_be_named_or_one_of_those_that_are_right() -> None:
    every, one = reference("letters", "(b) 2nd image, (c) 3rd image"), reference("letter", "(a) Yes, (b) No")
    assert [right(text, every) for text in ("c, b", "b", "b, c, d", "none")] == [True, False, False, False]
    assert [right(text, one) for text in ("(b) No", "a", "c", "a and b")] == [True, True, False, False]
    assert (example_of(every), example_of(one)) == ("B, C", "A")
    assert problem_of(reference("letters", "the second image")) == "answer: the reference has no letter of an option"


def test_keywords_are_whole_words_and_decide_nothing_unless_the_set_says_so() -> None:
    wanted = reference("keywords", json.dumps(["irregular", "low signal", "T2"]))
    assert share_of(read_value("keywords", "Irregular, with low signal on t2."), wanted) == 1
    assert share_of(read_value("keywords", "Regular; signal is low"), wanted) == 0
    assert (threshold(wanted), right("irregular", wanted)) == (None, None)
    assert right("irregular low signal T2", reference("keywords", wanted.value, at_least=1.0))


def test_a_rewrite_is_described_by_its_different_words() -> None:
    wanted = reference("words", "Culture tests indicate Neisseria gonorrhoeae.")
    assert share_of("Culture tests indicate Neisseria gonorrhoeae", wanted) == 1
    assert share_of("Culture tests indicate Haemophilus ducreyi.", wanted) == pytest.approx(2 * 3 / 10)
    nothing = reference("words", "")
    assert (share_of("NA", nothing), share_of("A sentence.", nothing), share_of("NA", wanted)) == (1, 0, 0)
    assert is_right("NA", nothing) is None


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (reference("number", "7.4"), "a number needs both limits (`low` and `high`, or `within`)"),
        (reference("number", "7.4", low=7.0), "a number needs both limits (`low` and `high`, or `within`)"),
        (reference("number", "7.4", low=8.0, high=9.0), "the reference is not between its limits"),
        (reference("number", "normal", low=8.0, high=9.0), "the reference is not a number"),
        (reference("whole_number", "7.4"), "the reference is not a whole number"),
        (reference("date", "31/12/2007"), "the reference cannot be read as a date (MM/DD/YYYY)"),
        (reference("box", "[3, 3, 1, 1]"), "the reference box has no area; expected x1 < x2 and y1 < y2"),
        (reference("box", "left"), "the reference is not a box of four numbers"),
        (reference("keywords", "glioma"), "the reference has no list of keywords"),
        (reference("keywords", "[]"), "the reference has no list of keywords"),
        (reference("index", "1", at_least=2.0), "`at_least` is a share above 0 and at most 1"),
        (reference("iou", "1"), f"no rule is called 'iou'; known are {', '.join(RULES)}"),
    ],
)
def test_a_reference_that_no_answer_can_meet_is_named_in_one_clause(wanted: ReferenceValue, problem: str) -> None:
    assert problem_of(wanted) == f"answer: {problem}"


def test_a_reference_has_to_fit_what_the_question_asks_for() -> None:
    schema = values_schema([("flag", "index", ""), ("rewrite", "words", "")])
    assert fields_of(schema) == {"flag": "index", "rewrite": "words"}
    flag = ReferenceValue(field="flag", rule="index", value="1")
    assert problem_of_values(schema, Gold(item_id="q", answer="1", values=(flag,))) == ""
    assert problem_of_values(schema, None) == ""
    other = Gold(item_id="q", answer="1", values=(TEN,))
    assert problem_of_values(schema, other) == "answer: the question asks for no such field; found flag, rewrite"
    wrong = Gold(item_id="q", answer="1", values=(reference("words", "x"), flag))
    assert (
        problem_of_values(values_schema([("answer", "index", "")]), wrong)
        == "answer: the reference has the rule words, the question asks for index"
    )
    assert problem_of_values(schema, Gold(item_id="q", answer="1", values=(flag, flag))) == "a field has two references"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("number", "67.00495"),
        ("date", "01/09/2007"),
        ("weeks_and_days", "(14 weeks, 1 days)"),
        ("interval", "3 to 5"),
        ("box", "[0.1, 0.2, 0.3, 0.4]"),
        ("box", "[1e-05, 0, 1, 1]"),
    ],
)
def test_a_value_is_written_so_that_it_is_read_as_the_same(rule: str, text: str) -> None:
    value = read_value(rule, text)
    assert write_value(rule, value) == text
    assert read_value(rule, write_value(rule, value)) == value


def test_an_example_has_the_json_type_that_is_asked_for() -> None:
    found = [
        example_of(reference(rule, text))
        for rule, text in [("number", "7.4"), ("index", "3"), ("box", "[0, 0, 1, 1]"), ("date", "1/9/2007")]
    ]
    assert found == [7.4, 3, [0, 0, 1, 1], "01/09/2007"]
    assert example_of(reference("keywords", '["a", "b"]')) == "a, b"
    assert example_of(reference("words", "")) is None


def test_two_numbers_of_a_note_are_not_read_as_one() -> None:
    assert read_number("WBC 4.2, Hb 9.6") is None
