"""The first screen: its badges, its figure and its words are true of the run, whatever it holds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fixtures.report import MODELS, blocks_of, build
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.figures.gallery import FIGURES
from neuralmedbench.files.cases import read_audit, write_audit
from neuralmedbench.files.json_files import read_json
from neuralmedbench.records.case import Audit
from neuralmedbench.records.items import Axis, Kind
from neuralmedbench.report.page import FILTERS, render
from neuralmedbench.report.source import PageSource, read_source
from neuralmedbench.tables.claims import power_sentence
from neuralmedbench.tables.contrasts import picture_sentence
from neuralmedbench.tables.deid_audit import privacy_takeaway
from neuralmedbench.tables.family import picture_benchmarks
from neuralmedbench.tables.first_screen import _leader, badges, title_answer
from neuralmedbench.tables.form_warnings import open_rate
from neuralmedbench.tables.leaderboard import glance_takeaway
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import cluster_of

KEPT = {"pictures_kept": 176, "pictures_rewritten": 0}


def audited(*audits: Audit) -> Study:
    rest: dict[str, Any] = {"cluster": "item", "items": (), "responses": {}, "grades": {}}
    found = {
        audit.benchmark: SimpleNamespace(audit=audit, config=SimpleNamespace(title=audit.benchmark.title()), stated=0, **rest)
        for audit in audits
    }
    return cast(Study, SimpleNamespace(benchmarks=found, limit=0, all_graders={}, sampled_ratings=[]))


def audit(name: str, kind: str, checks: dict[str, int], state: str = "passed") -> Audit:
    return Audit(benchmark=name, profile="pseudonymised", kind=kind, state=state, checks=checks)


@pytest.mark.parametrize(
    ("audits", "badge", "sentence"),
    [
        ([], ("none", "nothing to check"), "The audit passed for 0 of 0 benchmarks."),
        ([audit("demo", "phantom", {})], ("ok", "passed"), "The audit passed for 1 of 1 benchmark."),
        ([audit("mirp", "public", KEPT)], ("none", "not run: public data"), "No check ran on Mirp: public data, used as published."),
        ([audit("exam", "public", {})], ("none", "not run: public data"), "No check ran on Exam: public data, used as published."),
        ([audit("scans", "public", {"header_dates": 3})], ("ok", "passed"), "The audit passed for 1 of 1 benchmark."),
        (
            [audit("demo", "phantom", {"header_dates": 3}), audit("mirp", "public", KEPT)],
            ("none", "passed; not run on Mirp: public data"),
            "The audit passed for 1 of 1 benchmark; no check ran on Mirp: public data, used as published.",
        ),
        (
            [audit("mine", "patient", {"header_dates": 3}, "failed"), audit("mirp", "public", KEPT)],
            ("warn", "not passed everywhere; not run on Mirp: public data"),
            "The audit passed for 0 of 1 benchmark; no check ran on Mirp: public data, used as published.",
        ),
    ],
)
def test_only_a_check_that_ran_is_called_passed(audits: list[Audit], badge: tuple[str, str], sentence: str) -> None:
    study = audited(*audits)
    tables: Any = {"leaderboard": [], "deidentification": []}
    found = next(one for one in badges(study, tables) if one["name"] == "De-identification")
    assert (found["state"], found["text"]) == badge
    assert privacy_takeaway(study, tables).takeaway == sentence


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> PageSource:
    """Return the page of a run of two benchmarks, of which breadth is public pictures used as published."""
    root: Path = tmp_path_factory.mktemp("first-screen")
    write_study(root, patients=6)
    path = root / "data" / "deidentified" / BREADTH / "audit.json"
    write_audit(path, replace(read_audit(path), kind="public", checks=KEPT, score=()))
    build(root, figures=False)
    lists = {"benchmarks": [DEPTH, BREADTH], "models": MODELS, "graders": GRADERS, "published": []}
    assert read_json(root / "results" / "tables" / "verdict.json")["badges"][2]["state"] == "none"
    return read_source(root, root / "results", lists, profile="internal")


def test_the_privacy_block_calls_no_public_set_passed(source: PageSource) -> None:
    block = blocks_of(render(source))["privacy"]
    lines = {name: block.partition(f'<p data-benchmark="{name}"')[2].partition("</p>")[0] for name in (DEPTH, BREADTH)}
    assert ">passed</span>" in lines[DEPTH]
    assert "passed" not in lines[BREADTH]
    assert "not run: public data" in lines[BREADTH]


def glance(source: PageSource, **tables: list[dict[str, str]]) -> str:
    return blocks_of(render(replace(source, tables=source.tables | tables)))["glance"]


def test_a_figure_is_drawn_only_where_it_has_points(source: PageSource) -> None:
    assert "<figure" in glance(source)
    for axis, other in (("breadth", "depth"), ("depth", "breadth")):
        board = [row for row in source.tables["leaderboard"] if row["axis"] == axis]
        block = glance(source, leaderboard=board)
        assert "<figure" not in block
        assert f"the run has no benchmark of {other}. Name one" in block
    unknown = [row | {"pass1_patients": ""} if row["axis"] == "depth" else row for row in source.tables["leaderboard"]]
    block = glance(source, leaderboard=unknown)
    assert "<figure" not in block
    assert "no model has pass@1 on both" in block
    assert FIGURES["glance"].description(unknown) == FIGURES["glance"].description([]) == FIGURES["glance"].empty


NAMES = ("Ada", "Bea", "Cid")
WRONG = re.compile(
    r"\b1 (?:other )?(?:items|patients|models|answers|comparisons|benchmarks)\b|\b(?:0|1) are\b|\ball (?:0|1|2)\b|\bnone of (?:the )?[012]\b"
    r"|\b[023] (?:item|patient|model|answer|comparison|benchmark)\b|\b[023] is\b"
)
"""Numbers with a noun or a verb in the wrong form."""


def board(names: tuple[str, ...], *, lacking: int = 0) -> list[dict[str, Any]]:
    rates = {
        "pass1_patients": 0.69,
        "pass1_patients_low": 0.49,
        "pass1_patients_high": 0.85,
        "n_items": 32,
        "n_patients": 12,
        "in_reference_pool": False,
    }
    rows = [
        {"benchmark": DEPTH, "model": name, "title": name, "rank": place + 1, "expected": 9, **rates} for place, name in enumerate(names)
    ]
    return [row | {"missing": lacking if not place else 0} for place, row in enumerate(rows)]


def run_of(names: tuple[str, ...], limit: int = 0) -> Study:
    models = {name: SimpleNamespace(title=name, backend="litellm") for name in names}
    both = {
        name: SimpleNamespace(
            config=SimpleNamespace(title=name.title(), axis=axis, kind=Kind.PICTURES, arms=["full"]),
            responses={},
            grades={},
            cluster="patient",
            items=(),
            stated=0,
        )
        for name, axis in ((DEPTH, Axis.DEPTH), (BREADTH, Axis.BREADTH))
    }
    for one in both.values():
        one.audit = audit("any", "phantom", {})
    settings = SimpleNamespace(confidence=0.95, max_missing_fraction=0.02)
    rest = {"readers": {}, "all_graders": {}, "graders": {}, "sampled_ratings": []}
    return cast(Study, SimpleNamespace(benchmarks=both, models=models, limit=limit, settings=settings, **rest))


def sentences_for(count: int) -> dict[str, str]:
    """Return every sentence with a count in it, for so many models, comparisons or missing answers."""
    names, study = NAMES[:count], run_of(NAMES[:count], limit=count)
    claim = {"family": "first screen", "benchmark": DEPTH, "measure": "pass1_patients", "p_value": 0.01, "model": "Ada", "other": "Bea"}
    claim |= {"difference": 0.1, "detectable": 0.36, "low": 0.1, "high": 0.3, "n_items": 1, "n_patients": 12}
    shown, open_ = {"p_corrected": 0.01, "answer": "better"}, {"p_corrected": 0.9, "answer": "inconclusive"}
    rows: Any = {name: [] for name in ("arms", "rates", "reasoning", "ratings", "pairs", "title")}
    compared = [claim | (shown if place < count else open_) for place in range(3)]
    everybody = rows | {"leaderboard": board(NAMES)}
    worse = [claim | shown | {"other": name} for name in NAMES[1 : count + 1]]
    return {
        "power": power_sentence(everybody | {"pairs": compared[:count]}),
        "answer": title_answer(study, rows | {"leaderboard": board(names)})["short"],
        "leader": _leader(run_of(NAMES), everybody | {"pairs": worse}, DEPTH),
        "missing": glance_takeaway(run_of(NAMES), rows | {"leaderboard": board(NAMES, lacking=count)}).takeaway,
        "sample": FILTERS["sample"]({"n_items": str(count), "n_patients": "(hidden)"}),  # type: ignore[arg-type]
        "limited": badges(study, rows | {"leaderboard": board(names)})[0]["text"],
    }


EXPECTED = {
    0: {
        "power": "",
        "missing": "none is missing",
        "leader": "Bea and Cid do not score significantly lower.",
        "sample": "0 items, (hidden) patients",
    },
    1: {
        "power": "36 points between two models.",
        "leader": "Cid does not score significantly lower, but Bea does.",
        "missing": "of 27 answers to the full request 1 is missing for reasons of the run, not of the models.",
        "sample": "1 item, (hidden) patients",
        "limited": "1 answer per model: no result",
    },
    2: {
        "power": "after correction for both comparisons.",
        "leader": "Bea and Cid score significantly lower.",
        "missing": "2 are missing",
        "limited": "2 answers per model: no result",
    },
    3: {
        "power": "after correction for all 3 comparisons.",
        "sample": "3 items, (hidden) patients",
    },
}


@pytest.mark.parametrize("count", EXPECTED)
def test_a_count_has_the_noun_and_the_verb_that_it_needs(count: int) -> None:
    found = sentences_for(count)
    assert {name: text for name, text in found.items() if WRONG.search(text)} == {}
    assert {name: found[name] for name, words in EXPECTED[count].items() if words not in found[name]} == {}
    assert (found["power"] == "") is (count == 0)


def findings(measure: str, arm: str = "findings_disclosed", **cells: object) -> dict[str, object]:
    return {"benchmark": DEPTH, "model": "Ada", "measure": measure, "arm": arm, "n_items": 20, "value": None} | cells


def test_the_title_is_answered_by_two_rates_side_by_side_and_nothing_compares_them() -> None:
    broad = {"benchmark": BREADTH, "n_items": 60, "n_patients": 60}
    broad |= {"pass1_patients": 0.4, "pass1_patients_low": 0.23, "pass1_patients_high": 0.59}
    rows: Any = {"rates": [], "reasoning": [], "ratings": []}
    best_of_breadth = [row | broad | {"rank": 3 - place} for place, row in enumerate(board(NAMES))]
    rows["leaderboard"] = [*board(NAMES), *best_of_breadth]
    depth = f"Depth, {DEPTH.title()}: Ada passes 69 % (49 % to 85 %) of 32 items of 12 patients"
    breadth = f"Breadth, {BREADTH.title()}: Cid passes 40 % (23 % to 59 %) of 60 items of 60 patients"
    assert title_answer(run_of(NAMES), rows) == {
        "short": f"{depth}; {breadth}.",
        "support": "These are final answers; reasoning was not measured in this run.",
    }
    unranked = [row | {"rank": None, "missing_fraction": 0.0} for row in best_of_breadth]
    answer = title_answer(run_of(NAMES), rows | {"leaderboard": [*board(NAMES), *unranked]})
    assert answer["short"] == f"{depth}; Breadth, {BREADTH.title()}: no model has a rank yet."
    alone = run_of(NAMES)
    del alone.benchmarks[BREADTH]
    assert title_answer(alone, rows)["short"] == f"{depth}; Breadth: no set was run."


def test_what_is_known_of_the_reasoning_stands_below_the_rates() -> None:
    rates = [{"benchmark": DEPTH, "model": "Ada", "slice": "family", "value_of_slice": "rationale_generation"}]
    rows: Any = {"leaderboard": board(NAMES), "rates": rates, "reasoning": [], "ratings": []}
    support = title_answer(run_of(NAMES), rows)["support"]
    assert support == "These are final answers, also for the rationale items; reasoning was not measured in this run."
    rated = {"model": "Ada", "axis": "reasoning", "simulated": False, "mean": 3.0}
    assert "the reasoning of Ada was judged" in title_answer(run_of(NAMES), rows | {"ratings": [rated]})["support"]
    assert "was not measured" in title_answer(run_of(NAMES), rows | {"ratings": [rated | {"simulated": True}]})["support"]


def test_built_in_baselines_are_called_what_they_are() -> None:
    rows: Any = {"leaderboard": [row | {"baseline": True} for row in board(NAMES)]}
    assert glance_takeaway(run_of(NAMES), rows).takeaway.startswith("3 built-in baselines on 1 benchmark: ")
    rows["leaderboard"][0]["baseline"] = False
    assert glance_takeaway(run_of(NAMES), rows).takeaway.startswith("3 models on 1 benchmark: ")


def test_a_button_saves_only_a_figure_that_is_on_the_page(source: PageSource) -> None:
    assert 'data-svg="glance"' in glance(source)
    depth = [row for row in source.tables["leaderboard"] if row["axis"] == "depth"]
    assert 'data-svg="glance"' not in glance(source, leaderboard=depth)


def test_what_was_asked_and_did_not_come_is_not_known(source: PageSource) -> None:
    arms = [row | {"difference": ""} if row["model"] == "alpha" else row for row in source.tables["arms"]]
    assert "not known" not in glance(source)
    assert glance(source, arms=arms).count('<td class="seen">not known</td>') == 1
    assert glance(source, arms=[row for row in arms if row["model"] != "alpha"]).count('<td class="seen">not asked</td>') == 1


def test_of_several_sets_the_screen_names_the_one_that_it_shows(source: PageSource) -> None:
    assert "of 2 sets" not in glance(source)
    board = [
        *source.tables["leaderboard"],
        *(row | {"benchmark": "more"} for row in source.tables["leaderboard"] if row["axis"] == "breadth"),
    ]
    more = replace(source, benchmarks=source.benchmarks | {"more": source.benchmarks[BREADTH]})
    assert "Breadth<small>Breadth, made up, 1 of 2 sets</small>" in glance(more, leaderboard=board)


ARM = {"arm": "no_image", "difference": -0.1, "n_patients": 30, "model": "ada"}


@pytest.mark.parametrize(
    ("arms", "chosen"),
    [
        ([], []),
        ([ARM | {"benchmark": "deep"}, ARM | {"benchmark": "wide"}], ["deep"]),
        # two patients say nothing: the set with the most patients is what is there
        (
            [ARM | {"benchmark": "deep", "n_patients": 2}, ARM | {"benchmark": "wide"}, ARM | {"benchmark": "wider", "n_patients": 31}],
            ["wider"],
        ),
        ([ARM | {"benchmark": "deep", "n_patients": 2}, ARM | {"benchmark": "wide", "n_patients": 4}], ["deep"]),
        ([ARM | {"benchmark": "deep", "difference": None}, ARM | {"benchmark": "wide"}], ["wide"]),
        ([ARM | {"benchmark": "deep", "n_patients": 2}, ARM | {"benchmark": "deeper"}], ["deeper", "deep"]),
        # what a person did without pictures says nothing of models
        ([ARM | {"benchmark": "wide", "model": "person"}, ARM | {"benchmark": "wide", "arm": "no_text"}], []),
    ],
)
def test_whether_pictures_are_used_is_told_of_depth_or_else_of_the_largest_set(arms: list[dict[str, Any]], chosen: list[str]) -> None:
    axes = {"deep": Axis.DEPTH, "deeper": Axis.DEPTH, "wide": Axis.BREADTH, "wider": Axis.BREADTH}
    run = SimpleNamespace(
        benchmarks={name: SimpleNamespace(config=SimpleNamespace(axis=axis)) for name, axis in axes.items()},
        readers={"person": "clinician"},
    )
    assert picture_benchmarks(cast(Study, run), arms) == chosen


def test_the_pictures_of_another_set_than_that_of_depth_are_named_in_head_and_sentence(source: PageSource) -> None:
    told = source.verdict | {"answer": source.verdict["answer"] | {"pictures": BREADTH}}
    block = glance(replace(source, verdict=told))
    assert "Uses the pictures?<small>Breadth, made up</small>" in block
    assert "Uses the pictures?</th>" in glance(source)
    # a page of tables that were made before has none of it
    before = source.verdict | {"answer": {name: value for name, value in source.verdict["answer"].items() if name != "pictures"}}
    assert "Uses the pictures?</th>" in glance(replace(source, verdict=before))
    wide = SimpleNamespace(config=SimpleNamespace(axis=Axis.BREADTH, title="Wide"))
    models = {name.lower(): SimpleNamespace(title=name) for name in ("Ada", "Bea", "Cyd")}
    run = cast(Study, SimpleNamespace(benchmarks={"wide": wide}, models=models, settings=IntervalSettings()))
    claim = {"family": "first screen", "benchmark": "wide", "model": "ada", "difference": -0.2, "p_value": 0.01, "answer": "worse"}
    claim |= {"low": -0.3, "high": -0.1}
    worse = "Pictures: on Wide Ada 20 points lower without them (10 to 30)"
    assert picture_sentence(run, {"arms": [claim], "pairs": []}) == f"{worse}."
    near = {"difference": 0.0, "low": -0.04, "high": 0.05}
    answers = [claim, claim | near | {"model": "bea", "answer": "alike"}, claim | near | {"model": "cyd", "answer": "inconclusive"}]
    three = picture_sentence(run, {"arms": answers, "pairs": []})
    assert three == f"{worse}; Bea no, within 10 points (−4 to +5); Cyd inconclusive (−4 to +5)."
    # of more models the sentence lists names under each answer
    models["dee"] = SimpleNamespace(title="Dee")
    four = picture_sentence(run, {"arms": [*answers, claim | {"model": "dee"}], "pairs": []})
    assert four == "Pictures: on Wide Ada and Dee significantly lower without them; no for Bea, within 10 points; inconclusive for Cyd."


UNREAD = {"benchmark": BREADTH, "model": "Ada", "title": "Ada", "rank": 1, "pass1": 0.225, "pass1_low": 0.13, "pass1_high": 0.35}
UNREAD |= {"n_items": 60, "n_patients": 60, "cluster": "item", "expected": 60, "unparsable": 26, "unread_fraction": 26 / 60}
UNREAD |= {name.replace("pass1", "pass1_patients"): rate for name, rate in UNREAD.items() if name.startswith("pass1")}
CONSTANT = {"benchmark": BREADTH, "model": "prior", "pass1": 0.38, "chance": 0.25}
CONSTANT |= {"pass1_patients": 0.38, "pass1_patients_low": 0.3, "pass1_patients_high": 0.45}


def test_a_rate_with_many_unread_answers_stands_between_two_and_is_not_called_worse_than_guessing() -> None:
    words = open_rate(UNREAD, {"leaderboard": [UNREAD, CONSTANT]})
    assert words == (
        " (23 % are right if all of these are wrong, 66 % if all are right; inconclusive against the best constant answer, 38 %)"
    )
    assert open_rate(UNREAD | {"unparsable": 3, "unread_fraction": 0.05}, {"leaderboard": [CONSTANT]}) == ""
    assert open_rate(UNREAD | {"unread_missing": 2}, {"leaderboard": [CONSTANT]}) == ""
    assert "constant" not in open_rate(UNREAD | {"pass1": 0.5}, {"leaderboard": [CONSTANT]})


def test_a_run_of_texts_without_depth_leads_with_its_right_answers() -> None:
    study = run_of(("Ada",))
    del study.benchmarks[DEPTH]
    rows: Any = {"leaderboard": [UNREAD | {"unparsable": 2, "unread_fraction": 2 / 60}, CONSTANT]}
    study.benchmarks[BREADTH].config.kind = Kind.TEXT  # type: ignore[misc]
    told = title_answer(study, rows)
    assert told["asked"] == "How many answers are right?"
    assert told["short"] == (
        "Ada answers 23 % (13 % to 35 %) of 60 items rightly; the best constant answer earns 38 % (30 % to 45 %) and one option at random 25 %."
        " Of its answers 2 could not be read."
    )
    rows["leaderboard"][0] = UNREAD
    assert "43 % could not be read (23 % are right if all of these are wrong" in title_answer(study, rows)["short"]


def test_imported_answers_that_were_never_given_are_no_fault_of_the_run() -> None:
    study, rows = run_of(NAMES), {"leaderboard": board(NAMES, lacking=2)}
    assert "2 are missing for reasons of the run" in glance_takeaway(study, rows).takeaway
    study.models["Ada"].backend = "imported"  # type: ignore[misc]
    assert "2 imported ones were not among the answers that were handed in" in glance_takeaway(study, rows).takeaway
    assert "reasons of the run" not in glance_takeaway(study, rows).takeaway


def test_sets_with_patients_and_without_share_a_noun_that_fits_both() -> None:
    assert cluster_of([{"cluster": "patient"}, {"cluster": "item"}]) == "case"
    assert [cluster_of([{"cluster": "item"}]), cluster_of([{"cluster": ""}]), cluster_of([])] == ["item", "patient", "patient"]
