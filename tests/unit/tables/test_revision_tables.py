"""Changes between two revisions: the tables and sentences, and no effect of the previous revision on other tables."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats

from fixtures.report import build
from fixtures.scoring import vocabulary
from fixtures.tables import BREADTH, DEPTH, add_earlier, item, score, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.items import Family, Item, Level, Runner
from neuralmedbench.records.responses import Response, ResponseState, current_rows
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.tables.revisions import asks_diagnoses, both_sides, change_words, flip_rows, is_change, leader_of, metric_rows

FAST = IntervalSettings(resamples=400)
MODELS = ("alpha", "beta")


def open_item(number: int) -> Item:
    return item(DEPTH, f"case{number}", f"p{number}", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN)


ITEMS = [open_item(number) for number in range(6)]


def answers(of: Item, revision: str, passes: str, leader: str = "stroke", **changes: object) -> list[Score]:
    """Return one answer per letter: `p` passes, `f` fails, `-` is missing."""
    return [
        score(
            of, "m", passed=None if letter == "-" else letter == "p", repeat=repeat, revision=revision, missing=letter == "-",
            state="failed" if letter == "-" else "ok", differential=(leader,), text_sha256=f"{revision}-{repeat}-{letter}", **changes,
        )
        for repeat, letter in enumerate(passes)
    ]  # fmt: skip


def compared(*sides: tuple[str, str]):
    old = [row for of, (before, _) in zip(ITEMS, sides, strict=False) for row in answers(of, "1", before)]
    new = [row for of, (_, now) in zip(ITEMS, sides, strict=False) for row in answers(of, "2", now)]
    return both_sides(ITEMS, old, new)


def test_pass_at_1_is_compared_on_the_items_that_both_have() -> None:
    (row, _) = metric_rows(compared(("pppp", "ffff"), ("ppff", "pppp"), ("ffff", "fff-"), ("", "pppp"), ("pp", "ffpp")), vocabulary(), FAST)
    assert (row["metric"], row["n_items"], row["n_patients"], row["n_repeated"]) == ("passed", 3, 3, 3)
    assert (row["earlier_value"], row["value"]) == (pytest.approx((1 + 0.5 + 1) / 3), pytest.approx((0 + 1 + 0.5) / 3))
    assert row["difference"] == pytest.approx(-1 / 3)
    assert (row["gained"], row["lost"]) == (1, 2)


def test_an_earlier_answer_that_is_not_known_leaves_the_others_of_its_item() -> None:
    old = answers(ITEMS[0], "1", "pp") + [replace(row, passed=None) for row in answers(ITEMS[0], "1", "ppp")[2:]]
    (row, _) = metric_rows(both_sides(ITEMS, old, answers(ITEMS[0], "2", "ppf")), vocabulary(), FAST)
    assert (row["n_items"], row["earlier_value"], row["value"]) == (1, 1, pytest.approx(2 / 3))


def test_only_the_full_request_is_compared() -> None:
    old, new = answers(ITEMS[0], "1", "pp", arm="no_image"), answers(ITEMS[0], "2", "pp", arm="no_image")
    assert both_sides(ITEMS, old, new) == []


def test_two_names_of_one_diagnosis_are_one_leader() -> None:
    old = answers(ITEMS[0], "1", "ff", "glioblastoma")
    new = answers(ITEMS[0], "2", "ff", "GBM")
    rows = metric_rows(both_sides(ITEMS, old, new), vocabulary(), FAST)
    assert [(row["metric"], row["disagreement"]) for row in rows] == [("passed", 0), ("leader", 0)]


@pytest.mark.parametrize(
    ("changes", "leader"),
    [
        ({"differential": ("A made-up  Disease.",)}, "a made up disease"),
        ({"differential": (), "state": "refused"}, "(refused)"),
        ({"differential": (), "parse_status": ParseStatus.FAILED}, "(unread)"),
        ({"differential": (), "abstained": True}, "(none)"),
        ({"missing": True}, None),
    ],
)
def test_an_answer_that_names_nothing_has_a_leader_of_its_own_kind(changes: dict[str, object], leader: str | None) -> None:
    assert leader_of(score(ITEMS[0], "m", passed=False, **changes), vocabulary()) == leader


def test_an_item_to_which_no_answer_names_anything_has_no_leader_to_compare() -> None:
    old, new = ([replace(row, differential=(), abstained=True) for row in answers(ITEMS[0], revision, "ff")] for revision in "12")
    assert [row["metric"] for row in metric_rows(both_sides(ITEMS, old, new), vocabulary(), FAST)] == ["passed"]
    new[0] = replace(new[0], differential=("stroke",), abstained=False)
    assert [row["metric"] for row in metric_rows(both_sides(ITEMS, old, new), vocabulary(), FAST)] == ["passed", "leader"]


def test_a_flip_is_a_majority_that_changed_and_its_p_value_pays_for_all_items() -> None:
    pairs = compared(("fffff", "ppppp"), ("ppppp", "ppfff"), ("ppppf", "pppff"), ("pf", "pf"), ("pf", "pp"))
    rows = flip_rows(pairs)
    assert [
        (row["case_id"], row["change"], row["earlier_passes"], row["earlier_samples"], row["passes"], row["samples"]) for row in rows
    ] == [
        ("case0", "gained", 0, 5, 5, 5),
        ("case1", "lost", 5, 5, 2, 5),
        ("case4", "gained", 1, 2, 2, 2),
    ]
    assert rows[0]["p_value"] == pytest.approx(scipy_stats.fisher_exact([[5, 0], [0, 5]]).pvalue)
    assert rows[0]["p_corrected"] == pytest.approx(5 * rows[0]["p_value"])


def test_three_tests_are_corrected_before_a_change_is_called() -> None:
    def rows(passed: float, leader: float, difference: float) -> list[dict[str, object]]:
        return [{"p_value": passed, "p_difference": difference}, {"p_value": leader}]

    assert not is_change(rows(0.02, 0.5, 0.5), FAST)
    assert is_change(rows(0.016, 0.5, 0.5), FAST)
    assert is_change(rows(0.5, 0.5, 0.001), FAST)
    assert not is_change([{"p_value": None, "p_difference": None}], FAST)


def test_the_three_tests_together_seldom_call_noise_a_change() -> None:
    calls = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sides = [
            ("".join("p" if draw < 0.6 else "f" for draw in rng.random(4)), "".join("p" if draw < 0.6 else "f" for draw in rng.random(4)))
            for _ in ITEMS
        ]
        calls += is_change(metric_rows(compared(*sides), vocabulary(), FAST), FAST)
    assert calls <= 8  # 3 are expected at most, and 9 or more have a chance below 1 %


def test_only_where_a_diagnosis_is_asked_for_is_the_answer_called_one() -> None:
    rows = metric_rows(compared(*[("fffff", "ppppp")] * 6), vocabulary(), FAST)
    assert "Another diagnosis stands first in" in change_words(rows, FAST, True)[1]
    assert "Another answer stands first in" in change_words(rows, FAST, False)[1]
    (pair, *_) = compared(("p", "f"))
    asked = [
        (Family.DIFFERENTIAL_DIAGNOSIS, Runner.OPEN),
        (Family.QUESTION_ANSWERING, Runner.CHOICE),
        (Family.CLASSIFICATION, Runner.CHOICE),
    ]
    assert [asks_diagnoses([replace(pair.item, family=family, runner=runner)]) for family, runner in asked] == [True, False, False]


def test_the_words_name_the_floor_or_say_that_it_is_not_known() -> None:
    verdict, numbers = change_words(metric_rows(compared(*[("fffff", "ppppp")] * 6), vocabulary(), FAST), FAST)
    assert verdict == "changed, beyond the noise of repeats"
    assert (
        "(pass or not) is another one in 100 % of pairs of an old and a new answer, in 0 % of pairs of repeats (the noise floor;" in numbers
    )
    assert "pass@1 went from 0 % to 100 % (+100 points, " in numbers
    assert numbers.endswith(" over 6 items; 6 gained a majority of passes, 0 lost it.")
    verdict, numbers = change_words(metric_rows(compared(("p", "f"), ("f", "p"), ("p", "p")), vocabulary(), FAST), FAST)
    assert verdict == "not known whether it changed"
    assert "Every question was asked once, so the noise floor" in numbers
    assert "p = 1.000" in numbers
    (pair,) = compared(("pf", "pf"))
    same = pair._replace(new=[replace(row, revision="2") for row in pair.old])
    assert change_words(metric_rows([same], vocabulary(), FAST), FAST)[0] == "every answer is the same as before, word for word"


def test_the_present_revision_stands_first_in_a_table_of_responses() -> None:
    rows = [
        Response(
            item_id=name, case_id="c", patient_id="p", benchmark="b", arm="full", strategy="direct", model="m", revision=revision, repeat=0,
            request_id="r", runner="open", state=ResponseState.OK,
        )
        for revision in ("2", "1") for name in ("i1", "i2")
    ]  # fmt: skip
    assert current_rows(rows) == rows[:2]
    assert current_rows([]) == []


SENT = "tables/destinations.csv"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes], str, str]:
    """Give a study whose model alpha has an earlier revision, its files from before it had one, and the report without and with it."""
    root = tmp_path_factory.mktemp("revisions")
    write_study(root, models=MODELS)
    without = build(root, MODELS, figures=False)
    results = root / "results"
    files = [*(results / "tables").glob("*"), *(results / "cases").glob("*"), results / "metrics.json", results / "provenance.json"]
    before = {path.relative_to(results).as_posix(): path.read_bytes() for path in files}
    add_earlier(root, "alpha")
    return root, before, without, build(root, MODELS, figures=False)


def test_no_other_table_no_case_and_no_provenance_sees_the_revision_before(study: tuple[Path, dict[str, bytes], str, str]) -> None:
    root, before, _, _ = study
    names = {f"tables/{name}.csv" for name in COLUMNS} - {"tables/revisions.csv", "tables/flips.csv", SENT}
    names |= {"metrics.json", "provenance.json", f"cases/{DEPTH}.parquet", f"cases/{BREADTH}.parquet"}
    assert names < set(before)
    assert [name for name in sorted(names) if (root / "results" / name).read_bytes() != before[name]] == []


def test_what_was_sent_for_the_revision_before_is_counted_too(study: tuple[Path, dict[str, bytes], str, str]) -> None:
    root, before, _, _ = study

    def calls(table: str) -> dict[tuple[str, str], int]:
        return {(row["benchmark"], row["model"]): int(row["calls"]) for row in csv.DictReader(table.splitlines())}

    old, new = calls(before[SENT].decode()), calls((root / "results" / SENT).read_text(encoding="utf-8"))
    assert new == {key: number * (2 if key[1] == "alpha" else 1) for key, number in old.items()}
    assert old[DEPTH, "alpha"] > 0


def test_the_tables_of_what_changed_hold_the_model_that_has_a_revision_before(study: tuple[Path, dict[str, bytes], str, str]) -> None:
    root, before, _, _ = study
    for name in ("revisions", "flips"):
        assert before[f"tables/{name}.csv"].decode().splitlines() == [",".join(COLUMNS[name])]
    rows = list(csv.DictReader((root / "results" / "tables" / "revisions.csv").open(encoding="utf-8")))
    assert [(row["benchmark"], row["model"], row["metric"], row["earlier_revision"], row["revision"]) for row in rows] == [
        (DEPTH, "alpha", "passed", "0", "1"), (DEPTH, "alpha", "leader", "0", "1"),
        (BREADTH, "alpha", "passed", "0", "1"), (BREADTH, "alpha", "leader", "0", "1"),
    ]  # fmt: skip
    assert float(rows[0]["p_value"]) < 0.05
    assert rows[0]["n_repeated"] == rows[0]["n_items"] == "24"
    assert (rows[2]["noise_floor"], rows[2]["p_value"], rows[2]["n_repeated"]) == ("", "", "0")
    flips = list(csv.DictReader((root / "results" / "tables" / "flips.csv").open(encoding="utf-8")))
    assert {row["change"] for row in flips} == {"gained"}
    assert {int(row["case_id"][-2:]) % 2 for row in flips} == {1}


def test_the_report_compares_revisions_and_says_so_when_there_is_nothing_to_compare(study: tuple[Path, dict[str, bytes], str, str]) -> None:
    root, before, without, page = study
    assert "Nothing to compare" in without.split('<section id="changed"')[1].partition("</section>")[0]
    assert "Nothing to compare" not in page
    assert "changes" not in json.loads(before["tables/notes.json"])
    assert '<section id="changed"' in page
    assert 'href="#changed"' in page
    section = page.split('<section id="changed"')[1].split("</section>")[0]
    (first, second) = (entry["numbers"] for entry in json.loads((root / "results/tables/notes.json").read_text())["changes"])
    assert first in section
    assert "the noise floor" in first
    assert "Every question was asked once" in second
    assert "not known" in section
    flipped = next(csv.DictReader((root / "results" / "tables" / "flips.csv").open(encoding="utf-8")))["case_id"]
    assert f'<a href="#case-{DEPTH}-{flipped}">{flipped}</a>' in section
    assert f'id="case-{DEPTH}-{flipped}"' in page
    takeaway = json.loads((root / "results/tables/notes.json").read_text())["blocks"]["changed"]["takeaway"]
    assert re.match(r"In the new revision of Alpha VLM \d+ of \d+ verdicts changed \(\d+ to passed, \d+ to failed\)\.", takeaway)
    assert "New minus old pass@1 (exploratory): Alpha VLM " in takeaway
    assert "changed" not in (root / "results/tables/verdict.json").read_text()


def test_a_public_report_does_not_list_flipped_cases_of_patients(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=6, kind="patient", arms=("full",))
    add_earlier(tmp_path, "alpha")
    page = build(tmp_path, ("alpha",), "--profile", "public", figures=False)
    section = page.split('<section id="changed"')[1].split("</section>")[0]
    assert "does not show which cases of patients flipped" in section
    assert "case0" not in section
    assert list(csv.DictReader((tmp_path / "results" / "tables" / "flips.csv").open(encoding="utf-8"))) == []
