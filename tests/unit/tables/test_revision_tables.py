"""Changes between two revisions: the tables and sentences, and no effect of the previous revision on other tables."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.report import build, parts_of
from fixtures.scoring import vocabulary
from fixtures.tables import BREADTH, DEPTH, add_earlier, item, score, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.estimates.repeats import AnswerChange
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.records.items import Family, Item, Level, Runner
from neuralmedbench.records.responses import Response, ResponseState, current_rows
from neuralmedbench.records.results import COLUMNS, SHAPES, by_measure
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.tables.changes import HEADLINE, LEADER, PASSED, PairedItems, Side, leader_of, paired_items

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


def paired(old: list[Score], new: list[Score]) -> PairedItems:
    return dict(paired_items(Side("1", old), Side("2", new)))[HEADLINE]


def changes(old: list[Score], new: list[Score]) -> dict[str, AnswerChange]:
    return {metric: change for metric, (_, change) in paired(old, new).answer_changes(vocabulary(), FAST).items()}


def compared(*sides: tuple[str, str]) -> PairedItems:
    old = [row for of, (before, _) in zip(ITEMS, sides, strict=False) for row in answers(of, "1", before)]
    new = [row for of, (_, now) in zip(ITEMS, sides, strict=False) for row in answers(of, "2", now)]
    return paired(old, new)


def test_pass_at_1_is_compared_on_the_items_that_both_have() -> None:
    sides = compared(("pppp", "ffff"), ("ppff", "pppp"), ("ffff", "fff-"), ("", "pppp"), ("pfff", "ffpp"))
    part, passed = sides.answer_changes(vocabulary(), FAST)[PASSED]
    assert sides.sizes(part) == {"n_items": 3, "n_patients": 3}
    assert passed.repeated == 3
    old, new, change = sides.pass_change(FAST)
    assert (old, new) == (pytest.approx((1 + 0.5 + 0.25) / 3), pytest.approx((0 + 1 + 0.5) / 3))
    assert change.value == pytest.approx(-0.25 / 3)
    assert (change.only_first, change.only_second) == (1, 1)


def test_an_answer_that_is_not_known_on_either_side_leaves_out_its_item_for_passes_alone() -> None:
    ungraded = [replace(row, passed=None) if row.repeat == 2 else row for row in answers(ITEMS[0], "1", "ppp")]
    graded = answers(ITEMS[0], "2", "ppf")
    for old, new in ((ungraded, graded), (graded, ungraded)):
        assert list(changes(old, new)) == [LEADER]
    assert changes(answers(ITEMS[0], "1", "pp-"), graded) == {}


def test_a_sample_that_one_side_lacks_without_a_record_is_missing() -> None:
    old = [row for one, letters in ((ITEMS[0], "pp"), (ITEMS[1], "p")) for row in answers(one, "1", letters)]
    new = [row for one in ITEMS[:2] for row in answers(one, "2", "pp")]
    sides = paired(old, new)
    assert sides.paired.tolist() == [True, False]
    assert sides.sets["unanswered"].tolist() == [False, True]


def test_what_is_left_of_a_vote_is_compared_whatever_its_number() -> None:
    first, second = (
        [replace(row, strategy="self_consistency", text_sha256="a") for row in answers(ITEMS[0], "1", "pp")][n] for n in (0, 1)
    )
    sides = dict(paired_items(Side("1", [first]), Side("2", [second])))["full", "self_consistency"]
    assert sides.paired.tolist() == sides.identical.tolist() == [True]


def test_only_the_full_request_is_compared() -> None:
    old, new = answers(ITEMS[0], "1", "pp", arm="no_image"), answers(ITEMS[0], "2", "pp", arm="no_image")
    assert [condition for condition, _ in paired_items(Side("1", old), Side("2", new))] == [("no_image", "direct")]


def test_two_names_of_one_diagnosis_are_one_leader() -> None:
    old = answers(ITEMS[0], "1", "ff", "glioblastoma")
    new = answers(ITEMS[0], "2", "ff", "GBM")
    assert {metric: change.disagreement for metric, change in changes(old, new).items()} == {PASSED: 0, LEADER: 0}


@pytest.mark.parametrize(
    ("cells", "leader"),
    [
        ({"differential": ("A made-up  Disease.",)}, "a made up disease"),
        ({"differential": (), "state": "refused"}, "(refused)"),
        ({"differential": (), "parse_status": ParseStatus.FAILED}, "(unread)"),
        ({"differential": (), "abstained": True}, "(none)"),
    ],
)
def test_an_answer_that_names_nothing_has_a_leader_of_its_own_kind(cells: dict[str, object], leader: str) -> None:
    assert leader_of(score(ITEMS[0], "m", passed=False, **cells), vocabulary()) == leader


def test_an_item_to_which_no_answer_names_anything_has_no_leader_to_compare() -> None:
    old, new = ([replace(row, differential=(), abstained=True) for row in answers(ITEMS[0], revision, "ff")] for revision in "12")
    assert list(changes(old, new)) == [PASSED]
    new[0] = replace(new[0], differential=("stroke",), abstained=False)
    assert list(changes(old, new)) == [PASSED, LEADER]


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
    names = {f"tables/{name}.csv" for name in COLUMNS} - {f"tables/{name}.csv" for name in SHAPES} - {SENT}
    names |= {"metrics.json", "provenance.json", f"cases/{DEPTH}.parquet", f"cases/{BREADTH}.parquet"}
    assert names < set(before)
    assert [name for name in sorted(names) if (root / "results" / name).read_bytes() != before[name]] == []
    for name in SHAPES:
        lines = (root / "results" / "tables" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if ",revisions," not in line] == before[f"tables/{name}.csv"].decode().splitlines()


def test_what_was_sent_for_the_revision_before_is_counted_too(study: tuple[Path, dict[str, bytes], str, str]) -> None:
    root, before, _, _ = study

    def calls(table: str) -> dict[tuple[str, str], int]:
        return {(row["benchmark"], row["model"]): int(row["calls"]) for row in csv.DictReader(table.splitlines())}

    old, new = calls(before[SENT].decode()), calls((root / "results" / SENT).read_text(encoding="utf-8"))
    assert new == {key: number * (2 if key[1] == "alpha" else 1) for key, number in old.items()}
    assert old[DEPTH, "alpha"] > 0


def test_the_tables_of_what_changed_hold_the_model_that_has_a_revision_before(study: tuple[Path, dict[str, bytes], str, str]) -> None:
    root, before, _, _ = study
    assert not any(b",revisions," in before[f"tables/{name}.csv"] for name in SHAPES)
    rows = by_measure(read_result(root / "results" / "tables", "revisions"), "value_of_slice")
    assert list(rows) == [(benchmark, "alpha", metric) for benchmark in (DEPTH, BREADTH) for metric in (PASSED, LEADER)]
    assert {row["same_text"]["source"] for row in rows.values()} == {"1 against 0"}
    depth, breadth = rows[DEPTH, "alpha", PASSED], rows[BREADTH, "alpha", PASSED]
    assert (depth["pass1_before"]["source"], depth["pass1_patients"]["source"]) == ("0", "1")
    assert float(depth["excess"]["p_value"]) < 0.05
    assert depth["noise_floor"]["n_items"] == depth["same_text"]["n_items"] == "24"
    change = float(depth["pass1_patients"]["value"]) - float(depth["pass1_before"]["value"])
    assert float(depth["pass1_difference"]["difference"]) == pytest.approx(change, abs=2e-6)
    assert int(depth["gained"]["count"]) + int(depth["lost"]["count"]) > 0
    assert not {"noise_floor", "excess"} & breadth.keys(), "one answer an item has no repeats"


def test_the_report_compares_revisions_and_says_so_when_there_is_nothing_to_compare(study: tuple[Path, dict[str, bytes], str, str]) -> None:
    _, _, without, page = study
    before, section = (parts_of(text)["changed"] for text in (without, page))
    assert "What changed: not measured.</b> After an update of a model’s API, raise revision in its yaml" in before
    assert "not measured" not in section
    lines = dict(re.findall(r'<tr data-benchmark="([\w-]+)"(.*?)</tr>', section, flags=re.DOTALL))
    assert 'data-element="noise-floor"' in lines[DEPTH]
    assert 'data-element="noise-floor"' not in lines[BREADTH]
    assert "a difference beyond this noise" in section
    assert "With one answer per item the noise is not known (–)." in section
    assert "nmb run compare config --pair MODEL@OLD=MODEL@NEW" in section
