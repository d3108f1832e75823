"""Changes between two revisions: the tables and sentences, and no effect of the previous revision on other tables."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.report import build
from fixtures.scoring import vocabulary
from fixtures.tables import BREADTH, DEPTH, add_earlier, item, score, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.items import Family, Item, Level, Runner
from neuralmedbench.records.responses import Response, ResponseState, current_rows
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.records.scores import ParseStatus, Score
from neuralmedbench.tables.changes import leader_of
from neuralmedbench.tables.revisions import metric_rows
from neuralmedbench.tables.stored_runs import HEADLINE, PairedItems, outcomes_of, sides_of

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
    before, now = (outcomes_of(scores, {}).get(HEADLINE, {}) for scores in (old, new))
    return sides_of(before, now)


def compared(*sides: tuple[str, str]) -> PairedItems:
    old = [row for of, (before, _) in zip(ITEMS, sides, strict=False) for row in answers(of, "1", before)]
    new = [row for of, (_, now) in zip(ITEMS, sides, strict=False) for row in answers(of, "2", now)]
    return paired(old, new)


def test_pass_at_1_is_compared_on_the_items_that_both_have() -> None:
    (row, _) = metric_rows(
        compared(("pppp", "ffff"), ("ppff", "pppp"), ("ffff", "fff-"), ("", "pppp"), ("pfff", "ffpp")), vocabulary(), FAST
    )
    assert (row["metric"], row["n_items"], row["n_patients"], row["n_repeated"]) == ("passed", 3, 3, 3)
    assert (row["earlier_value"], row["value"]) == (pytest.approx((1 + 0.5 + 0.25) / 3), pytest.approx((0 + 1 + 0.5) / 3))
    assert row["difference"] == pytest.approx(-0.25 / 3)
    assert (row["gained"], row["lost"]) == (1, 1)


def test_an_answer_that_is_not_known_on_either_side_leaves_out_its_item_for_passes_alone() -> None:
    ungraded = [replace(row, passed=None) if row.repeat == 2 else row for row in answers(ITEMS[0], "1", "ppp")]
    graded = answers(ITEMS[0], "2", "ppf")
    for old, new in ((ungraded, graded), (graded, ungraded)):
        assert [row["metric"] for row in metric_rows(paired(old, new), vocabulary(), FAST)] == ["leader"]
    assert metric_rows(paired(answers(ITEMS[0], "1", "pp-"), graded), vocabulary(), FAST) == []


def test_only_the_full_request_is_compared() -> None:
    old, new = answers(ITEMS[0], "1", "pp", arm="no_image"), answers(ITEMS[0], "2", "pp", arm="no_image")
    assert paired(old, new).answered == []


def test_two_names_of_one_diagnosis_are_one_leader() -> None:
    old = answers(ITEMS[0], "1", "ff", "glioblastoma")
    new = answers(ITEMS[0], "2", "ff", "GBM")
    rows = metric_rows(paired(old, new), vocabulary(), FAST)
    assert [(row["metric"], row["disagreement"]) for row in rows] == [("passed", 0), ("leader", 0)]


@pytest.mark.parametrize(
    ("changes", "leader"),
    [
        ({"differential": ("A made-up  Disease.",)}, "a made up disease"),
        ({"differential": (), "state": "refused"}, "(refused)"),
        ({"differential": (), "parse_status": ParseStatus.FAILED}, "(unread)"),
        ({"differential": (), "abstained": True}, "(none)"),
    ],
)
def test_an_answer_that_names_nothing_has_a_leader_of_its_own_kind(changes: dict[str, object], leader: str) -> None:
    assert leader_of(score(ITEMS[0], "m", passed=False, **changes), vocabulary()) == leader


def test_an_item_to_which_no_answer_names_anything_has_no_leader_to_compare() -> None:
    old, new = ([replace(row, differential=(), abstained=True) for row in answers(ITEMS[0], revision, "ff")] for revision in "12")
    assert [row["metric"] for row in metric_rows(paired(old, new), vocabulary(), FAST)] == ["passed"]
    new[0] = replace(new[0], differential=("stroke",), abstained=False)
    assert [row["metric"] for row in metric_rows(paired(old, new), vocabulary(), FAST)] == ["passed", "leader"]


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
    names = {f"tables/{name}.csv" for name in COLUMNS} - {"tables/revisions.csv", SENT}
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
    assert before["tables/revisions.csv"].decode().splitlines() == [",".join(COLUMNS["revisions"])]
    rows = list(csv.DictReader((root / "results" / "tables" / "revisions.csv").open(encoding="utf-8")))
    assert [(row["benchmark"], row["model"], row["metric"], row["earlier_revision"], row["revision"]) for row in rows] == [
        (DEPTH, "alpha", "passed", "0", "1"), (DEPTH, "alpha", "leader", "0", "1"),
        (BREADTH, "alpha", "passed", "0", "1"), (BREADTH, "alpha", "leader", "0", "1"),
    ]  # fmt: skip
    assert float(rows[0]["p_value"]) < 0.05
    assert rows[0]["n_repeated"] == rows[0]["n_items"] == "24"
    assert (rows[2]["noise_floor"], rows[2]["p_value"], rows[2]["n_repeated"]) == ("", "", "0")


def test_the_report_compares_revisions_and_says_so_when_there_is_nothing_to_compare(study: tuple[Path, dict[str, bytes], str, str]) -> None:
    _, _, without, page = study
    assert "Nothing to compare" in without.split('<section id="changed"')[1].partition("</section>")[0]
    assert "Nothing to compare" not in page
    assert '<section id="changed"' in page
    assert 'href="#changed"' in page
    section = page.split('<section id="changed"')[1].split("</section>")[0]
    assert "the noise floor" in section
    assert "not known" in section
    assert "nmb run compare config --pair MODEL@OLD=MODEL@NEW" in section
