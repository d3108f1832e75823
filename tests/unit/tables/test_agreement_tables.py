"""Tables of agreement and of raters: which ratings count, and the notes of empty cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conftest import ROOT
from fixtures.agreement import AXIS, rating
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings
from neuralmedbench.files.tables import read_table, write_table
from neuralmedbench.ratings.form import read_form
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.records.scores import Rating, RatingPart
from neuralmedbench.report.page import templates
from neuralmedbench.tables.clinicians import agreement as agreement_table
from neuralmedbench.tables.clinicians.agreement import agreement_rows
from neuralmedbench.tables.clinicians.opinions import by_axis, clinician_verdicts, rating_rows

FORM = read_form(ROOT / "config" / "rating.yaml")


def study_of(ratings: Sequence[Rating], resamples: int = 300) -> Any:
    """Return the parts of a study that the tables read: two answers per patient."""
    items = [SimpleNamespace(item_id=f"demo/case{number:02d}", patient_id=f"p{number // 2:02d}") for number in range(60)]
    return SimpleNamespace(
        ratings=list(ratings),
        sampled_ratings=[row for row in ratings if row.part is RatingPart.SAMPLE],
        benchmarks={"demo": SimpleNamespace(items=items, config=SimpleNamespace(reference_pool=()))},
        form=FORM,
        settings=IntervalSettings(resamples=resamples),
    )


def two_raters(number: int = 20, axis: str = AXIS) -> list[Rating]:
    rng = np.random.default_rng(5)
    first = rng.integers(0, 5, number)
    second = np.clip(first + rng.integers(-1, 2, number), 0, 4)
    return [
        rating(answer, rater, float(value), axis) for rater, values in (("a", first), ("b", second)) for answer, value in enumerate(values)
    ]


def values(rows: Sequence[dict[str, Any]], between: str = "all", axis: str = AXIS) -> dict[str, float | None]:
    return {row["measure"]: row.get("value") for row in rows if row["between"] == between and row["axis"] == axis}


def of_rater(study: Any, axis: str = "") -> dict[str, dict[str, Any]]:
    """Return the rows of each rater over all axes, or on one, by measure."""
    raters: dict[str, dict[str, Any]] = {}
    for row in agreement_rows(study):
        if (row["between"], row["axis"]) == ("rater", axis):
            raters.setdefault(row["rater_a"], {})[row["measure"]] = row
    return raters


def test_every_coefficient_stands_with_its_interval_answers_and_patients() -> None:
    rows = agreement_rows(study_of(two_raters()))
    together = [row for row in rows if row["between"] == "all"]
    assert [row["measure"] for row in together] == ["alpha_ordinal", "ac2_quadratic", "icc_2_1", "icc_2_k", "same", "within_one"]
    for row in together[:5]:
        assert row["low"] < row["value"] < row["high"]
        assert (row["n_responses"], row["n_patients"], row["n_raters"], row["undefined"]) == (20, 10, 2, 0)
    assert (together[5]["value"], together[5]["low"], together[5]["note"]) == (1.0, None, "no interval: nothing varies over patients")
    assert {row["measure"] for row in rows if row["between"] == "pair"} == {"kappa_quadratic", "icc_2_1", "within_one"}
    assert all(set(row) <= set(COLUMNS["agreement"]) for row in rows)


def test_the_icc_of_a_pair_is_that_of_the_whole_when_there_are_two_raters() -> None:
    rows = agreement_rows(study_of(two_raters()))
    assert values(rows, "pair")["icc_2_1"] == pytest.approx(values(rows)["icc_2_1"], abs=1e-12)
    assert values(rows, "pair")["within_one"] == values(rows)["within_one"]


def test_many_pairs_are_resampled_in_parts_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*two_raters(), *[rating(answer, "c", float(answer % 5)) for answer in range(20)]]
    whole = agreement_rows(study_of(rows))
    monkeypatch.setattr(agreement_table, "CHUNK", 1)
    parts = agreement_rows(study_of(rows))
    assert len({(row.get("rater_a"), row.get("rater_b")) for row in whole if row["between"] == "pair"}) == 3
    assert [replace(row, low=0, high=0) for row in parts] == [replace(row, low=0, high=0) for row in whole]
    assert [row.low or 0 for row in parts] == pytest.approx([row.low or 0 for row in whole], nan_ok=True)


def test_resamples_draw_patients_and_not_answers() -> None:
    """Doubling every patient's answers adds no patient, and so no certainty."""
    once = two_raters()
    twice = once + [rating(int(row.item_id[-2:]), row.rater_id, row.value, repeat=1) for row in once]
    first, second = (agreement_rows(study_of(rows))[4] for rows in (once, twice))
    assert (first["value"], first["low"], first["high"]) == (second["value"], second["low"], second["high"])
    same = np.array([[float(a.value == b.value), 1.0] for a, b in zip(once[:20], once[20:], strict=True)])
    by = ByPatient(np.repeat(np.arange(10), 2), IntervalSettings(resamples=300))
    sums = by.weights @ by.sums(same)
    assert first["low"] >= np.min(sums[:, 0] / sums[:, 1])


def test_controls_second_showings_and_adjudicated_values_never_enter_agreement_between_raters() -> None:
    own = two_raters()
    others = [
        rating(1, "a", 0.0, part=RatingPart.CONTROL_RIGHT, model="", revision=""),
        rating(1, "b", 4.0, part=RatingPart.CONTROL_RIGHT, model="", revision=""),
        rating(2, "adjudicator", 0.0, adjudicated=True),
    ]
    again = [rating(3, "a", 0.0, part=RatingPart.AGAIN)]
    plain, full = (agreement_rows(study_of(rows)) for rows in (own, [*own, *others, *again]))
    assert values(plain) == values(full)
    assert values(plain, "pair") == values(full, "pair")
    assert not any("adjudicator" in (row.get("rater_a"), row.get("rater_b")) for row in full)


def test_simulated_raters_never_agree_or_disagree_with_clinicians() -> None:
    own = two_raters()
    mixed = [*own, *[rating(answer, "c", 0.0, simulated=True) for answer in range(20)]]
    rows = agreement_rows(study_of(mixed))
    assert values([row for row in rows if not row["simulated"]]) == values(agreement_rows(study_of(own)))
    assert {row["note"] for row in rows if row["simulated"] and row["between"] != "rater"} == {"fewer than two raters gave a value"}


def test_second_showings_tell_how_far_a_rater_agrees_with_oneself() -> None:
    first = [rating(answer, "a", float(answer % 5)) for answer in range(12)]
    again = [rating(answer, "a", float(answer % 5) if answer % 3 else 0.0, part=RatingPart.AGAIN) for answer in range(12)]
    rows = [row for row in agreement_rows(study_of([*first, *again])) if row["between"] == "self"]
    assert [row.get("rater_a") for row in rows] == ["a"] * 3 + [None] * 3
    pooled = {row["measure"]: row["value"] for row in rows[3:]}
    assert pooled["same"] == pytest.approx(9 / 12)
    assert {row["measure"]: row["value"] for row in rows[:3]} == pooled
    assert {row["n_responses"] for row in rows} == {12}


@pytest.mark.parametrize(
    ("ratings", "note"),
    [
        ([rating(answer, "a", 2.0) for answer in range(5)], "fewer than two raters gave a value"),
        ([rating(0, "a", 2.0), rating(0, "b", 3.0)], "one answer was rated by two"),
        ([rating(0, "a", 2.0), rating(1, "b", 3.0)], "no answer was rated by two"),
        ([rating(answer, rater, 2.0) for answer in range(5) for rater in "ab"], "every rating is the same"),
        ([rating(answer, rater, None) for answer in range(5) for rater in "ab"], "fewer than two raters gave a value"),
    ],
)
def test_where_there_is_nothing_to_tell_the_table_says_why(ratings: list[Rating], note: str) -> None:
    rows = agreement_rows(study_of(ratings))
    alpha = next(row for row in rows if row["measure"] == "alpha_ordinal")
    assert (alpha.get("value"), alpha["note"]) == (None, note)
    assert of_rater(study_of(ratings)).keys() == {row.rater_id for row in ratings}


def test_no_ratings_make_empty_tables() -> None:
    assert agreement_rows(study_of([])) == []


def test_an_icc_needs_answers_that_all_raters_rated() -> None:
    rows = [
        rating(answer, rater, float((answer + shift) % 5))
        for answer in range(9)
        for shift, rater in enumerate("abc")
        if answer % 3 != shift
    ]
    found = {row["measure"]: row for row in agreement_rows(study_of(rows)) if row["between"] == "all"}
    assert found["alpha_ordinal"]["value"] is not None
    assert found["icc_2_1"]["note"] == "no two answers were rated by all raters"
    assert found["icc_2_1"]["n_responses"] == 0


def test_resamples_without_a_value_are_counted_and_too_many_leave_no_interval() -> None:
    """One answer of one patient differs: a resample without that patient has no variation, and so no alpha."""
    rows = [rating(answer, rater, 2.0 if (answer, rater) != (0, "b") else 4.0) for answer in range(12) for rater in "ab"]
    alpha = next(row for row in agreement_rows(study_of(rows)) if row["measure"] == "alpha_ordinal")
    share = (5 / 6) ** 6
    assert alpha["undefined"] == pytest.approx(300 * share, abs=30)
    assert (alpha["low"], alpha["note"]) == (None, f"{alpha['undefined']} of 300 resamples have no value; no interval")


def test_a_rater_who_judged_an_answer_and_marked_no_error_says_that_there_is_none() -> None:
    rows = two_raters()
    marked = [rating(answer, rater, 1.0, "error.wrong_side") for answer, rater in ((0, "a"), (0, "b"), (1, "a"))]
    found = values(agreement_rows(study_of([*rows, *marked])), axis="error.wrong_side")
    assert found["same"] == pytest.approx(19 / 20)
    words = clinician_verdicts([*rows, *marked], "error.wrong_side")
    assert sorted(word.value for word in words.values() if word.value) == [0.5, 1.0]
    split = by_axis([*rows, *marked])
    assert clinician_verdicts(split["error.wrong_side"], "error.wrong_side") == words


def test_severity_is_the_mean_distance_from_the_others() -> None:
    rows = [rating(answer, rater, float(1 + shift + answer % 3)) for answer in range(10) for shift, rater in enumerate("ab")]
    rows.append(rating(11, "a", 0.0))  # nobody else rated it
    severity = {name: by["severity"] for name, by in of_rater(study_of(rows), AXIS).items()}
    assert (severity["a"]["value"], severity["a"]["n_responses"], severity["a"]["n_patients"]) == (-1.0, 10, 5)
    assert severity["b"]["value"] == 1.0


def test_a_rater_is_told_by_controls_and_by_time() -> None:
    rows = two_raters()
    parts = {RatingPart.CONTROL_RIGHT: (4.0, 1.0), RatingPart.CONTROL_WRONG: (0.0, 3.0)}
    controls = [
        rating(30 + place, "a", value, part=part, model="", revision="", seconds=4.0)
        for part, given in parts.items() for place, value in enumerate(given)
    ]  # fmt: skip
    whole = of_rater(study_of([*rows, *controls]))
    shares = {name: (row["value"], row["n_responses"]) for name, row in whole["a"].items()}
    assert (shares["controls_right"], shares["controls_wrong"], shares["judged"]) == ((0.5, 2), (0.5, 2), (1.0, 20))
    assert (shares["median_seconds"], shares["below_floor"]) == ((40.0, 24), (pytest.approx(4 / 24), 24))
    assert (whole["a"]["below_floor"]["note"], whole["b"]["below_floor"]["note"]) == ("too fast", "")
    assert (whole["b"]["controls_right"]["value"], whole["b"]["controls_right"]["n_responses"]) == (None, 0)


def test_the_clinicians_word_is_the_mean_or_else_what_was_adjudicated() -> None:
    rows = [rating(0, "a", 1.0), rating(0, "b", 3.0), rating(1, "a", None), rating(1, "b", None), rating(2, "a", 0.0), rating(2, "b", 4.0)]
    rows += [rating(2, "adjudicator", 4.0, adjudicated=True), rating(3, "a", 2.0, stale=True), rating(0, "a", 0.0, part=RatingPart.AGAIN)]
    words = {key[0][-2:]: word for key, word in clinician_verdicts(rows, AXIS).items()}
    assert {name: (word.value, word.raters, word.adjudicated) for name, word in words.items()} == {
        "00": (2.0, 2, False), "01": (None, 0, False), "02": (4.0, 2, True),
    }  # fmt: skip
    assert words["00"].probability == 0.5


def test_a_clinician_comes_before_a_simulated_rater_and_the_last_round_counts() -> None:
    rows = [rating(0, "a", 1.0), rating(0, "s", 4.0, simulated=True), rating(1, "s", 4.0, simulated=True)]
    rows += [rating(0, "x", 2.0, round_id="r02", probability=0.25)]
    words = list(clinician_verdicts(rows, AXIS).values())
    assert [(word.value, word.simulated, word.round_id, word.probability) for word in words] == [
        (2.0, False, "r02", 0.25),
        (4.0, True, "r01", 0.5),
    ]


def test_means_of_a_model_take_the_adjudicated_value_and_agreement_does_not() -> None:
    rows = [rating(answer, rater, value) for answer in range(2) for rater, value in (("a", 0.0), ("b", 4.0))]
    last = rating(1, "adjudicator", 4.0, adjudicated=True)
    before, after = (rating_rows(study_of(given))[0] for given in (rows, [*rows, last]))
    assert (before["mean"], before["adjudicated"]) == (2.0, 0)
    assert (after["mean"], after["adjudicated"], after["n"], after["responses"]) == (3.0, 1, 4, 2)
    assert values(agreement_rows(study_of(rows))) == values(agreement_rows(study_of([*rows, last])))


def block_of(study: Any, tmp_path: Path) -> str:
    """Render the block of the report as the page does."""
    made = {"agreement": agreement_rows(study), "ratings": rating_rows(study)}
    for name, rows in made.items():
        write_table(tmp_path / f"{name}.csv", rows, COLUMNS[name])
    tables = {name: read_table(tmp_path / f"{name}.csv") for name in made}
    context = {"tables": tables, "source": SimpleNamespace(notes={"pass_axis": AXIS}), "titles": {}, "looks": {}}
    return templates({}).get_template("blocks/ratings.html.j2").render(context)


def test_the_report_shows_agreement_of_clinicians_and_of_simulated_raters_apart(tmp_path: Path) -> None:
    again = [rating(answer, "a", 0.0, part=RatingPart.AGAIN) for answer in range(4)]
    simulated = [rating(answer, "s", 1.0, simulated=True, seconds=None) for answer in range(4)]
    text = block_of(study_of([*two_raters(), *again, *simulated]), tmp_path)
    assert "Clinicians among each other: round r01" in text
    assert "Simulated raters among each other: round r01" in text
    assert "Simulated: a program filled the forms in." in text
    assert "Nothing can be said of agreement in this round: fewer than two raters gave a value." in text
    assert "20 answers, 10 patients, 2 raters" in text
    each_rater, means = text.split("Mean ratings by model and axis")
    assert each_rater.count("<td>simulated</td>") == 1
    assert "Simulated ratings only test the form. They say nothing about a model." in text
    assert means.count("<td>simulated</td>") == 1
    assert means.count("<td>clinicians</td>") == 1
    assert "not known" in text


def test_the_block_of_agreement_is_empty_without_ratings(tmp_path: Path) -> None:
    text = block_of(study_of([]), tmp_path)
    assert "<h3>" not in text
    assert "No clinician has rated an answer yet." in text
    assert "<code>rating_rounds</code>" in text
