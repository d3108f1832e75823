"""Rates by family, both readings of pass@5 on the same items, and definitions that follow from the families of the items."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from conftest import ROOT
from fixtures.report import blocks_of, build, parts_of
from fixtures.tables import BREADTH, DEPTH, item, score, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, read_table, write_records
from neuralmedbench.records.items import DIAGNOSES, Family, Gold, Item, Level, Runner
from neuralmedbench.records.results import FAMILY_TITLES, PRIOR, RANKED_DIFFERENTIAL, by_measure
from neuralmedbench.records.scores import Grade, Rating, Score
from neuralmedbench.records.vocabulary import Vocabulary
from neuralmedbench.report.topics import SHOWN_FROM
from neuralmedbench.tables.floors import Floor
from neuralmedbench.tables.outcomes import Key, gather_outcomes
from neuralmedbench.tables.pass_rules import CHOICE_RULE, CLASS_RULE, PASS_RULES, pass_definition, pass_rules
from neuralmedbench.tables.rates import rate_rows

DX, PLACE, REASONS = Family.DIFFERENTIAL_DIAGNOSIS, Family.LESION_RECOGNITION, Family.RATIONALE_GENERATION
OF_RANKED = (RANKED_DIFFERENTIAL, "true")
RULES = {*PASS_RULES.values(), CHOICE_RULE, CLASS_RULE}
DEFINING = ("glance", "leaderboard", "methods")
"""Blocks of the page that say what a rate is."""


def question(number: int, family: Family, runner: Runner = Runner.OPEN) -> Item:
    return item(DEPTH, f"case{number}", f"p{number}", family, level=Level.DIRECT, runner=runner)


def answers(of: Item, passes: str, **changes: object) -> list[Score]:
    """Scores of five samples: `+` passes and names the reference, `c` only holds it among the candidates, `-` neither."""
    return [score(of, "m", passed=sign == "+", repeat=repeat, in_candidates=sign in "+c", **changes) for repeat, sign in enumerate(passes)]


@pytest.fixture
def mixed() -> SimpleNamespace:
    """Two diagnoses, a rationale, and two places of lesions of one model, with five samples each."""
    items = [question(0, DX), question(1, DX), question(2, REASONS), question(3, PLACE), question(4, PLACE)]
    scores = [row for one, passes in zip(items, ("+++++", "+c---", "ccccc", "+----", "-----"), strict=True) for row in answers(one, passes)]
    gold = [Gold(item_id=one.item_id, answer="stroke") for one in items]
    outcomes = gather_outcomes(DEPTH, "depth", items, gold, scores={"m": scores}, sampled={"m": True})
    prior = {"pass1": np.array([0.5, 0.5, 0.25, 0.0, 0.0]), "candidates5": np.array([1.0, 1.0, 1.0, np.nan, np.nan])}
    constant = {name: Floor(values, values) for name, values in prior.items()}
    return SimpleNamespace(
        benchmarks={DEPTH: SimpleNamespace(name=DEPTH, outcomes=outcomes, floors=constant, participants={})},
        models={"m": SimpleNamespace(title="M")},
        readers={},
        settings=IntervalSettings(resamples=20, seed=1),
        vocabulary=Vocabulary(version="", digest="", diagnoses={}, locations={}),
    )


def test_both_readings_of_pass_at_5_are_over_the_same_items(mixed: SimpleNamespace) -> None:
    outcomes, key = mixed.benchmarks[DEPTH].outcomes, Key("m")
    known = {name: ~np.isnan(outcomes.metric(name, key)) for name in ("pass5", "candidates5", "all_right")}
    assert all(mask.tolist() == [True, True, True, False, False] for mask in known.values())
    assert outcomes.differential_items(key).tolist() == known["pass5"].tolist()
    assert np.nanmean(outcomes.metric("pass5", key)) == pytest.approx(2 / 3)
    assert np.nanmean(outcomes.metric("candidates5", key)) == pytest.approx((1 + 0.4 + 1) / 3)


def test_items_with_fewer_samples_are_in_neither_reading(mixed: SimpleNamespace) -> None:
    old = mixed.benchmarks[DEPTH].outcomes
    counts = replace(old.counts[Key("m")], samples=np.array([5, 1, 5, 5, 5]))
    outcomes = replace(old, counts={Key("m"): counts})
    for name in ("pass5", "candidates5", "all_right"):
        assert (~np.isnan(outcomes.metric(name, Key("m")))).tolist() == [True, False, True, False, False], name
    once = replace(old, counts={Key("m"): replace(counts, samples=np.ones(5, dtype=int))})
    assert np.isnan(once.metric("pass5", Key("m"))).all()
    assert (~np.isnan(once.metric("candidates5", Key("m")))).tolist() == [True, True, True, False, False]


def test_a_family_has_rates_of_its_own_and_localisation_a_pass_at_5_nowhere_else(mixed: SimpleNamespace) -> None:
    rates = by_measure(rate_rows(mixed), "slice", "value_of_slice")
    place, whole = (rates[DEPTH, "m", *part] for part in (("family", PLACE), OF_RANKED))
    assert (place["pass1"].value, place["pass5"].value, "candidates5" in place) == (pytest.approx(0.1), pytest.approx(0.5), False)
    assert place["pass1"].low < 0.1 < place["pass1"].high
    assert {(row.n_items, row.n_patients, row.n_answers) for row in whole.values()} == {(3, 3, 15)}
    values = [whole[name].value for name in ("pass1", "pass5", "candidates5", "all_right")]
    assert values == pytest.approx([6 / 15, 2 / 3, 0.8, 1 / 3])


def test_the_best_constant_answer_has_rates_by_family_and_of_ranked_items_alone(mixed: SimpleNamespace) -> None:
    rates = {(row.slice, row.value_of_slice, row.measure): row for row in rate_rows(mixed) if row.model == PRIOR}
    assert {key[0] for key in rates} == {"family", RANKED_DIFFERENTIAL}
    assert (rates["family", DX, "pass1"].value, rates["family", PLACE, "pass1"].value) == (0.5, 0.0)
    among = rates[*OF_RANKED, "candidates5"]
    assert (among.value, among.high, among.n_items) == (1.0, 1.0, 3)


def test_groups_count_ranked_items_alone_where_the_rate_is_of_these(mixed: SimpleNamespace) -> None:
    rates = {(row.slice, row.value_of_slice, row.measure): row for row in rate_rows(mixed) if row.model == "m"}
    assert ("family", PLACE, "candidates5") not in rates
    assert [rates["family", PLACE, name].n_items for name in ("pass1", "pass5", "all_right")] == [2, 2, 2]
    for part in (("all", "all"), ("level", "direct")):
        assert {rates[*part, name].n_items for name in ("pass5", "candidates5", "all_right")} == {3}, part
        assert rates[*part, "pass1"].n_items == 5


def test_every_family_has_a_rule_and_a_title() -> None:
    assert set(PASS_RULES) == set(Family)
    assert set(FAMILY_TITLES) == {str(family) for family in Family}
    assert len(RULES) == len(Family) + 2


def test_a_rule_follows_from_how_an_item_passes() -> None:
    assert pass_rules([question(0, PLACE, Runner.CHOICE), question(1, DX, Runner.CHOICE)]) == {CHOICE_RULE: [DX, PLACE]}
    assert pass_rules([question(0, Family.CLASSIFICATION, Runner.STRUCTURED)]) == {CLASS_RULE: [Family.CLASSIFICATION]}
    assert pass_definition([question(0, DX)]) == "An answer passes if it names the reference diagnosis first."
    both = pass_definition([question(0, DX, Runner.DIALOGUE), question(1, PLACE)])
    assert both.startswith(
        "An answer passes by the rule of its task. Diagnosis: it names the reference diagnosis first. Localisation: it names the place"
    )
    assert both.endswith("that there is none. The last answer of a dialogue counts.")


KINDS: dict[str, tuple[Family, Runner] | None] = {
    "diagnosis": (DX, Runner.OPEN),
    "localisation": (PLACE, Runner.OPEN),
    "diagnosis and localisation": None,
    "options": (DX, Runner.CHOICE),
    "free answers": (Family.QUESTION_ANSWERING, Runner.OPEN),
}
"""Studies by what the items of their depth benchmark ask for; None: half of them diagnoses, half of them places."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rates") / "made"
    write_study(root, models=("alpha",), patients=SHOWN_FROM, arms=("full",))
    return root


def of_kind(root: Path, kind: tuple[Family, Runner] | None) -> None:
    """Change the items of the depth benchmark of a study, and their scores, to one kind."""
    of_item: dict[str, tuple[Family, Runner]] = {}

    def changed(row: Item | Score) -> Item | Score:
        family, runner = kind or ((DX if row.family == DX else PLACE), Runner.OPEN)
        of_item[row.item_id] = family, runner
        return replace(
            row, family=family, runner=runner, **({"options": ("a", "b")} if isinstance(row, Item) and runner is Runner.CHOICE else {})
        )

    for folder, record in (("data/items", Item), ("results/scores", Score)):
        path = root / folder / (f"{DEPTH}.parquet" if record is Item else f"{DEPTH}/alpha.parquet")
        rows = [changed(row) for row in read_records(path, record)]
        write_records(path, record, rows, key=lambda row: (row.item_id, getattr(row, "arm", ""), getattr(row, "repeat", 0)))


def definitions_on(page: str) -> dict[str, str]:
    """Give the text of each block that defines a rate, without markup."""
    return {
        name: unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", "", block))) for name, block in blocks_of(page).items() if name in DEFINING
    }


def test_the_leaderboard_has_pass_at_5_of_the_rows_of_ranked_differentials(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "study"
    shutil.copytree(made, root)
    of_kind(root, None)
    build(root, ("alpha",), figures=False)
    tables = root / "results" / "tables"
    rates = by_measure(read_result(tables, "rates"), "slice")
    board = [row for row in read_table(tables / "leaderboard.csv") if row["benchmark"] == DEPTH]
    for row in board:
        ranked = rates[DEPTH, row["model"], RANKED_DIFFERENTIAL]
        for name in ("pass5", "candidates5"):
            ends = [ranked[name][end] for end in ("value", "low", "high")] if name in ranked else [""] * 3
            assert [row[f"{name}{end}"] for end in ("", "_low", "_high")] == ends
        assert row["all_right"] == (ranked["all_right"]["value"] if "all_right" in ranked else "")
    assert (board[0]["differential_items"], board[0]["differential_patients"], board[0]["n_items"]) == ("10", "10", "20")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long) if kind in ("diagnosis", "localisation") else kind for kind in KINDS]
)
def test_every_definition_on_the_page_names_what_its_items_ask_for_and_nothing_else(kind: str, made: Path, tmp_path: Path) -> None:
    root = tmp_path / "study"
    shutil.copytree(made, root)
    of_kind(root, KINDS[kind])
    page = build(root, ("alpha",), figures=False)
    items = [
        *read_records(root / "data" / "items" / f"{DEPTH}.parquet", Item),
        *read_records(root / "data" / "items" / f"{BREADTH}.parquet", Item),
    ]
    wanted = set(pass_rules(items))
    blocks = definitions_on(page)
    for name in DEFINING:
        assert {rule for rule in RULES if rule in blocks[name]} == wanted, name
    # what is about ranked differentials has their items alone, and stands only where there are such items
    rows = [row for row in read_result(root / "results" / "tables", "rates") if row["slice"] == RANKED_DIFFERENTIAL]
    ranked = [one for one in items if one.family in DIAGNOSES and one.runner is Runner.OPEN]
    assert {row["n_items"] for row in rows} == ({str(len(ranked))} if ranked else set())
    repeats = parts_of(page)["repeats"]
    assert ("Items that ask for a ranked differential" in repeats) == bool(ranked)
    assert ("Repeats: not measured." in repeats) == (not ranked)
    assert set(re.findall(f'data-value="({len(items)}|{len(ranked)})">\\1</td>', repeats)) == ({str(len(ranked))} if ranked else set())


def test_no_definition_is_written_by_hand() -> None:
    """A sentence on the page that says what an answer names would be wrong for a run whose items ask for something else."""
    room = ROOT / "scripts" / "neuralmedbench"
    files = [*room.glob("report/templates/**/*.j2"), *room.glob("figures/*.py"), *room.glob("tables/*.py")]
    by_hand = re.compile(
        r"names? the (?:reference|final|right) (?:diagnosis|class)|(?:answers|passes) .{0,20}place and side", re.IGNORECASE
    )
    found = [path.name for path in files if path.name != "pass_rules.py" and by_hand.search(path.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize("rule", sorted(RULES))
def test_the_page_of_metrics_has_every_rule(rule: str) -> None:
    assert rule in (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_the_page_that_defines_pass_at_1_speaks_of_places_too() -> None:
    page = (ROOT / "docs" / "read-the-report.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if re.search("pass@1`? is the share", line)]
    assert lines
    assert all("reference diagnosis" in line and "place and side of the lesion" in line for line in lines)


@pytest.mark.parametrize(("kind", "number", "mark"), [("patient", 7, "<10"), ("phantom", 4, "4")])
def test_a_public_run_hides_pass_at_5_of_few_patients_in_every_table(tmp_path: Path, kind: str, number: int, mark: str) -> None:
    write_study(tmp_path, models=("alpha",), patients=30, kind=kind, arms=("full",))
    few = {f"case{place:02d}" for place in range(number)}
    for path, record in ((tmp_path / "data" / "items", Item), (tmp_path / "results" / "scores" / DEPTH, Score)):
        file = path / f"{DEPTH if record is Item else 'alpha'}.parquet"
        rows = [row if row.case_id in few else replace(row, family=PLACE) for row in read_records(file, record)]
        write_records(file, record, rows, key=lambda row: (row.item_id, getattr(row, "arm", ""), getattr(row, "repeat", 0)))
    page = build(tmp_path, ("alpha",), "public", figures=False)
    tables = tmp_path / "results" / "tables"
    (board,) = [row for row in read_table(tables / "leaderboard.csv") if (row["benchmark"], row["model"]) == (DEPTH, "alpha")]
    assert board["pass1"]
    assert {board[name] for name in ("pass5", "pass5_low", "candidates5", "all_right", "differential_items", "differential_patients")} == {
        ""
    }
    rates = by_measure(read_result(tables, "rates"), "slice", "value_of_slice")
    parts = [("family", DX), OF_RANKED]
    assert {rates[DEPTH, "alpha", *part][name]["n_patients"] for part in parts for name in ("pass1", "pass5")} == {mark}
    hidden = [rates[DEPTH, model, *part] for model in ("alpha", PRIOR) for part in parts]
    assert {row["value"] + row["low"] + row["high"] for measures in hidden for row in measures.values()} == {""}
    assert {row["value"] for name, row in rates[DEPTH, "alpha", "all", "all"].items() if name in ("pass5", "candidates5", "all_right")} == {
        ""
    }
    assert "pass@5, samples" not in blocks_of(page)["leaderboard"]


def labelled(root: Path) -> None:
    """Let a grader label the steps of every answer."""
    path = root / "results" / "grades" / DEPTH / "alpha" / "llm.parquet"
    first = [row for row in read_records(path, Grade) if row.arm == "full" and row.criterion == "core_diagnosis"]
    steps = [replace(row, criterion=f"reasoning.{name}", value=0.75) for row in first for name in ("factuality", "completeness")]
    rows = [*read_records(path, Grade), *steps]
    write_records(path, Grade, rows, key=lambda row: (row.item_id, row.arm, row.repeat, row.criterion))


def test_depth_says_that_reasoning_was_not_measured_or_shows_it_with_its_agreement(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "study"
    shutil.copytree(made, root)
    page = build(root, ("alpha",), figures=False)
    blocks = blocks_of(page)
    assert blocks["leaderboard"].count("Rates are of final answers: reasoning was not measured in this run.") == 1
    assert "not measured.</b> Only final answers were judged." in parts_of(page)["steps"]
    assert "These are final answers, also for the rationale items; reasoning was not measured in this run." in blocks["glance"]
    labelled(root)
    page = build(root, ("alpha",), figures=False)
    blocks, steps = blocks_of(page), parts_of(page)["steps"]
    assert "not measured" not in blocks["leaderboard"] + blocks["glance"]
    assert 'Rates are of final answers. Reasoning: <a href="#steps">steps labelled by a grader</a>.' in blocks["leaderboard"]
    assert "not known: one grader, and no clinician labelled steps" in steps
    assert re.search(r'data-element="reasoning-factuality" data-value="0\.750000"><b>75 %</b>', steps)
    assert "of the steps that the case decides Alpha VLM supports 75 %" in blocks["glance"]


@pytest.mark.parametrize("simulated", [False, True])
def test_clinicians_who_rated_the_reasoning_stand_beside_the_depth_score_and_simulated_raters_do_not(
    made: Path, tmp_path: Path, simulated: bool
) -> None:
    root = tmp_path / "study"
    shutil.copytree(made, root)
    scores = [row for row in read_records(root / "results" / "scores" / DEPTH / "alpha.parquet", Score) if row.arm == "full"]
    ratings = [
        Rating(
            round_id="r01", rater_id=rater, item_id=row.item_id, arm=row.arm, strategy=row.strategy, model=row.model, revision=row.revision,
            repeat=row.repeat, text_sha256=row.text_sha256, axis="reasoning", value=float(place % 4 + shift), seconds=30.0, stale=False,
            simulated=simulated,
        )
        for place, row in enumerate(scores)
        for rater, shift in (("a", 0), ("b", place % 2))
    ]  # fmt: skip
    write_records(
        root / "results" / "ratings" / "ratings.parquet", Rating, ratings, key=lambda row: (row.item_id, row.repeat, row.rater_id)
    )
    blocks = blocks_of(build(root, ("alpha",), figures=False))
    assert ('Reasoning: <a href="#ratings">ratings of clinicians</a>' in blocks["leaderboard"]) != simulated
    means = re.findall(r"<tr>(?:(?!</tr>).)*<td>r01</td><td>reasoning</td>(?:(?!</tr>).)*<td>(\w+)</td></tr>", blocks["ratings"], re.DOTALL)
    assert means == ["simulated" if simulated else "clinicians"]
    who = "Simulated raters" if simulated else "Clinicians"
    assert re.search(rf"<p>{who} agree with alpha 0\.\d\d \(0\.\d\d to \d\.\d\d\) on reasoning", blocks["ratings"])
    assert ('data-element="agreement"' in blocks["ratings"]) != simulated
    assert ("reasoning was not measured" in blocks["leaderboard"]) == ("reasoning was not measured" in blocks["glance"]) == simulated


def test_points_found_by_words_are_on_no_page_and_in_no_table(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "study"
    shutil.copytree(made, root)
    path = root / "results" / "scores" / DEPTH / "alpha.parquet"
    rows = [replace(row, keyword_coverage=0.43217) for row in read_records(path, Score)]
    write_records(path, Score, rows, key=lambda row: (row.item_id, row.arm, row.repeat))
    blocks = blocks_of(build(root, ("alpha",), figures=False))
    assert [name for name, block in blocks.items() if "0.432170" in block] == []
    assert {row["rubric"] for row in read_table(root / "results/tables/leaderboard.csv")} == {""}
    assert "0.432170" not in "".join(path.read_text(encoding="utf-8") for path in (root / "results/tables").glob("*.csv"))


def test_answers_without_a_confidence_are_counted_by_reason_beside_the_surest(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "study"
    shutil.copytree(made, root)
    path = root / "results" / "scores" / DEPTH / "alpha.parquet"
    rows = [replace(row, state="refused", confidence=None) if row.repeat == 3 else row for row in read_records(path, Score)]
    write_records(path, Score, rows, key=lambda row: (row.item_id, row.arm, row.repeat))
    part = parts_of(build(root, ("alpha",), figures=False))["unstated"]
    refused = sum((row.state, row.arm, row.strategy) == ("refused", "full", "direct") for row in rows)
    assert refused
    line = next(row for row in re.findall(r"<tr.*?</tr>", part, flags=re.DOTALL) if f'data-benchmark="{DEPTH}"' in row)
    cells = dict(re.findall(r'data-element="([a-z]+)" data-value="(\d+)"><b>', line))
    assert cells == dict.fromkeys(("truncated", "abstained", "unparsable", "unstated", "missing"), "0") | {"refused": str(refused)}


def test_points_that_a_model_judged_stand_in_the_leaderboard_and_say_so(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "study"
    shutil.copytree(made, root)
    path = root / "results" / "scores" / DEPTH / "alpha.parquet"
    rows = [replace(row, rubric=0.4) for row in read_records(path, Score)]
    write_records(path, Score, rows, key=lambda row: (row.item_id, row.arm, row.repeat))
    block = blocks_of(build(root, ("alpha",), figures=False))["leaderboard"]
    assert "Rubric, judged by a model" in block
    assert '<td class="number" data-value="0.400000">40 %</td>' in block


DISCLOSING = [
    "findings_disclosed",
    "findings_of_another",
    "findings_only",
    "findings_and_history",
    "evidence_supplied",
    "evidence-findings",
]


def test_there_are_no_points_under_arms_that_disclose_findings(mixed: SimpleNamespace) -> None:
    """Findings copied from the request would earn most of them."""
    one, arms = question(0, DX), ["full", "no_image", *DISCLOSING]
    scores = [score(one, "m", passed=True, arm=arm, rubric=0.4) for arm in arms]
    gold = [Gold(item_id=one.item_id, answer="stroke")]
    mixed.benchmarks[DEPTH].outcomes = gather_outcomes(DEPTH, "depth", [one], gold, scores={"m": scores}, sampled={"m": True})
    mixed.benchmarks[DEPTH].floors = dict.fromkeys(("pass1", "candidates5"), Floor(np.ones(1), np.ones(1)))
    rows = [row for row in rate_rows(mixed) if row.slice == "all"]
    assert {row.arm for row in rows if row.measure == "pass1"} == set(arms)
    assert {row.arm for row in rows if row.measure == "rubric"} == {"full", "no_image"}
