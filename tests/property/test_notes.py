"""Notes: identifiers go, medicine stays, whatever stands around them."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuralmedbench.deid.notes.clean import clean_note
from neuralmedbench.deid.values import DateShift
from neuralmedbench.files.identity import Identity, identity_pattern

SHIFT = DateShift(-37)
WORDS = st.lists(
    st.sampled_from(["she was seen", "with weakness of the left arm", "and headache", "since two days"]), min_size=1, max_size=12
).map(" ".join)
DAYS = st.dates(min_value=date(1930, 1, 1), max_value=date(2060, 12, 31))


@given(before=WORDS, day=DAYS, after=WORDS, style=st.sampled_from(["%Y-%m-%d", "%d %B %Y", "%B %d, %Y"]))
def test_every_full_date_is_moved_by_the_same_days(before: str, day: date, after: str, style: str) -> None:
    text = clean_note(f"{before} {day:{style}} {after}", SHIFT, None).text
    assert f"{day + timedelta(days=SHIFT.days):%Y-%m-%d}" in text
    assert f"{day:{style}}" not in text


@given(before=WORDS, name=st.sampled_from(["Nakamura", "O'Neill", "Müller", "van den Berg"]), after=WORDS)
def test_the_patients_own_name_goes_wherever_it_stands(before: str, name: str, after: str) -> None:
    pattern = identity_pattern(Identity(names=(f"{name}^Kim",)))
    text = clean_note(f"{before} {name.upper()} {after} Kim, {name}'s mother", SHIFT, pattern).text
    assert not re.search(r"nakamura|neill|müller|berg|kim", text.casefold())


@given(text=st.text(max_size=300))
def test_no_text_makes_the_cleaner_stumble(text: str) -> None:
    clean_note(text, SHIFT, None)


@pytest.mark.parametrize(
    "medicine",
    [
        "Parkinson disease, Hoehn and Yahr 2.", "NIHSS 12, b=1000, TE 110, T1 600/12.", "Power 4/5, reflexes 2/4, BP 178/92.", "No Babinski, no Romberg.",
        "Broca aphasia. Glasgow Coma Scale 15.", "Alzheimer disease in her mother.", "INR 1.0, glucose 7.9 mmol/L, CRP 0.92.", "Follow-up in 6 weeks; 71 years old.",
        "Wife with Huntington disease.", "He did not see a doctor. No headache.", "Seen in the Memory Clinic.", "MMSE 20/30, MoCA 19/30.",
    ],
)  # fmt: skip
def test_medicine_is_left_alone(medicine: str) -> None:
    assert clean_note(medicine, SHIFT, None).text == medicine


@pytest.mark.parametrize(
    ("text", "gone", "shown"),
    [
        ("Seen by Dr Maarten Hoogland.", "Hoogland", "[NAME]"),
        ("Prof. dr. van der Berg agrees.", "Berg", "[NAME]"),
        ("Reported by: J. Smith, MD", "Smith", "[NAME]"),
        ("Her daughter Emily called.", "Emily", "[NAME]"),
        ("Call 555-123-4567 now.", "4567", "[PHONE]"),
        ("Telephone +31 20 555 0148.", "0148", "[PHONE]"),
        ("Write to a.b@c.org.", "a.b", "[EMAIL]"),
        ("See https://x.org/?p=1 for it.", "x.org", "[URL]"),
        ("From 10.0.0.12 it came.", "10.0.0.12", "[IP]"),
        ("SSN 123-45-6789.", "6789", "[ID]"),
        ("MRN: A-4821337 and again.", "4821337", "[ID]"),
        ("Lives at 12 Elm Street, Springfield.", "Elm", "[ADDRESS]"),
        ("St. Mary's Hospital sent her.", "Mary", "[HOSPITAL]"),
        ("A 94-year-old man.", "94", "90+"),
        ("aged 97, ninety-two years", "97", "90+"),
        ("born 14/09/1959", "1959", "[DATE]"),
        ("on Tuesday, Nov 1st", "Nov", "[DATE]"),
        ("on 03/04/2031", "2031", "[DATE]"),
    ],
)
def test_each_kind_of_identifier_is_replaced(text: str, gone: str, shown: str) -> None:
    cleaned = clean_note(text, SHIFT, None).text
    assert gone not in cleaned
    assert shown in cleaned


def test_the_day_of_the_scan_tells_day_from_month() -> None:
    assert clean_note("on 03/04/2031", SHIFT, None, scan_day=date(2031, 4, 3)).text == "on 2031-02-25"
    assert clean_note("on 03/04/2031 and 25/04/2031", SHIFT, None).text == "on 2031-02-25 and 2031-03-19"
