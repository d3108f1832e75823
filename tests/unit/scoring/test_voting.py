"""Self-consistency: the vote of the samples, and its effect on tables, traces and ratings."""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from fixtures.scoring import GOLD, ITEM, LESION_ITEM, answered, differential, lesion_answer, vocabulary
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.ratings.exports import RatedResponse
from neuralmedbench.recording.finished_runs import look_up_cell
from neuralmedbench.recording.trace import read_answers, recount, trace
from neuralmedbench.records.items import Family, Gold, Runner
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.results import LEFT_OPEN
from neuralmedbench.records.scores import Score, response_key, text_digest
from neuralmedbench.scoring.scores import elect, score_responses
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.study import read_study
from neuralmedbench.tables.write import write_tables

CHOICE = replace(
    ITEM, item_id="demo/q1", runner=Runner.CHOICE, family=Family.QUESTION_ANSWERING, options=("GBM", "glioblastoma", "abscess")
)
VOTES = {"strategy": "self_consistency"}


def scored(texts, item=ITEM, gold=GOLD, **changes):
    """Score samples given in this order; None is missing."""
    rows = [
        answered(
            text or "", item, repeat=repeat, state=ResponseState.OK if text is not None else ResponseState.FAILED, **{**VOTES, **changes}
        )
        for repeat, text in enumerate(texts)
    ]
    return score_responses(rows, {item.item_id: item}, {item.item_id: replace(gold, item_id=item.item_id)}, [], vocabulary=vocabulary())


def leader(texts, item=ITEM, **changes):
    (row,) = scored(texts, item, **changes)
    return row.differential[:1]


def test_what_most_samples_say_is_the_one_answer_and_stands_under_its_own_number():
    (row,) = scored([differential("abscess"), differential("glioblastoma"), differential("glioblastoma", "abscess")])
    assert row.differential == ("glioblastoma",)
    assert row.repeat == 1
    assert row.relation == "exact"


def test_the_elected_row_is_found_beside_its_response():
    """Grades, ratings and the case browser bind a score to a response by key and text: another number would bind it to another answer."""
    texts = [differential("abscess"), differential("glioblastoma"), differential("glioblastoma")]
    (row,) = scored(texts)
    key = response_key(answered(texts[1], repeat=1, **VOTES))
    assert response_key(row) == key
    assert row.text == texts[1]


def test_other_strategies_do_not_vote():
    assert len(scored([differential("abscess")] * 3, strategy="cot")) == 3
    assert len(scored([differential("abscess")] * 3)) == 1


def test_two_names_of_one_diagnosis_are_one_vote():
    assert leader([differential("abscess"), differential("GBM"), differential("glioblastoma multiforme"), differential("metastasis")]) == (
        "GBM",
    )


def test_two_options_are_two_votes_even_when_they_are_names_of_one_thing():
    said = ["ANSWER: A", "ANSWER: B", "ANSWER: C", "ANSWER: C"]
    (row,) = scored(said, CHOICE, Gold(item_id="", answer="abscess", choice="C"))
    assert row.differential == ("abscess",)
    assert row.passed is True


def test_lesions_vote_by_place_and_side_because_these_are_scored():
    said = [
        lesion_answer("tumour", "frontal lobe", "left"),
        lesion_answer("stroke", "parietal lobe", "right"),
        lesion_answer("abscess", "parietal lobe", "right"),
    ]
    (row,) = scored(said, LESION_ITEM)
    assert (row.fields["location"], row.fields["side"]) == ("parietal lobe", "right")


def test_a_tie_goes_the_same_way_whatever_the_order_of_the_samples():
    names = ["abscess", "glioblastoma", "metastasis", "glioblastoma", "abscess"]
    winners = {leader([differential(name) for name in order]) for order in permutations(names)}
    assert len(winners) == 1
    assert winners <= {("abscess",), ("glioblastoma",)}


def test_ties_are_not_won_by_the_alphabet():
    items = [replace(ITEM, item_id=f"demo/c{number}/differential_diagnosis") for number in range(40)]
    winners = [leader([differential("abscess"), differential("glioblastoma")], item)[0] for item in items]
    assert 8 < winners.count("abscess") < 32


def test_the_order_of_the_rows_makes_no_difference():
    rows = [row for text in ("abscess", "glioblastoma", "glioblastoma") for row in scored([differential(text)], strategy="cot")]
    rows = [replace(row, strategy="self_consistency", repeat=repeat) for repeat, row in enumerate(rows)]
    shuffled = list(rows)
    random.Random(3).shuffle(shuffled)
    assert elect(rows, vocabulary()) == elect(shuffled, vocabulary())


def test_a_refusal_and_an_answer_that_names_nothing_have_no_vote():
    refused = answered("I cannot help.", repeat=0, state=ResponseState.REFUSED, **VOTES)
    unknown = answered(differential("unknown"), repeat=1, **VOTES)
    said = answered(differential("glioblastoma"), repeat=2, **VOTES)
    items, gold = {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}
    (row,) = score_responses([refused, unknown, said], items, gold, [], vocabulary=vocabulary())
    assert (row.repeat, row.differential) == (2, ("glioblastoma",))
    (none,) = score_responses([refused, unknown], items, gold, [], vocabulary=vocabulary())
    assert (none.repeat, none.state, none.missing) == (0, "refused", False)


@pytest.mark.parametrize(
    ("texts", "missing"),
    [
        (["glioblastoma", "glioblastoma", "glioblastoma", None, None], False),  # 3 : 0, two could not change it
        (["glioblastoma", "glioblastoma", "abscess", None], True),  # 2 : 1, one more could make it 2 : 2
        (["glioblastoma", None, None, None, None], True),
        ([None, None, None], True),
        (["glioblastoma", "abscess", "metastasis"], False),  # all present: a tie is not a missing answer
    ],
)
def test_an_item_is_missing_when_samples_that_did_not_come_could_have_turned_the_vote(texts, missing):
    """Failures are ours: the vote of one sample out of five is not the model's majority answer."""
    (row,) = scored([text and differential(text) for text in texts])
    assert row.missing is missing
    assert (row.passed is None) or not missing


WON = 3
"""The sample that wins every vote of the synthetic run."""


def order(row):
    return row.item_id, row.arm, row.strategy, row.repeat


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a synthetic run whose depth benchmark was also asked with five voting samples; one item has no valid vote."""
    root = tmp_path_factory.mktemp("votes")
    write_study(root, models=("alpha", "beta"), patients=6)
    scores_file, responses_file = (root / f"results/{kind}/{DEPTH}/alpha.parquet" for kind in ("scores", "responses"))
    scores, responses = read_records(scores_file, Score), read_records(responses_file, Response)
    votes = [replace(row, **VOTES) for row in scores if row.arm == "full" and row.repeat == WON]
    votes[0] = replace(votes[0], passed=None, missing=True, state="failed")
    write_records(scores_file, Score, [*scores, *votes], key=order)
    write_records(responses_file, Response, [*responses, *(replace(row, **VOTES) for row in responses if row.arm == "full")], key=order)
    settings = IntervalSettings(resamples=50, seed=1, confidence=0.95, max_missing_fraction=0.02)
    read = read_study(root, [DEPTH, BREADTH], ("alpha", "beta"), GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=settings)
    write_tables(read, root / "results/tables", root / "results/metrics.json")
    return root


def rates(root: Path) -> list[dict[str, str]]:
    return [row for row in read_result(root / "results/tables", "rates") if row["strategy"] == "self_consistency"]


def test_tables_expect_one_answer_an_item_of_a_vote_and_no_pass_at_five(study):
    """The winner's number is 3: taken as a count of samples it would turn one answer into four."""
    rows = {row["measure"]: row for row in rates(study) if row["slice"] == "all"}
    assert rows.keys() == {"pass1", "candidates5"}
    row, items = rows["pass1"], {one.item_id for one in read_records(study / f"results/scores/{DEPTH}/alpha.parquet", Score)}
    assert int(row["n_answers"]) == len(items) == 12
    assert int(row["left_out"]) == 1


def test_the_headline_is_made_of_direct_answers_alone(study):
    with (study / "results/tables/leaderboard.csv").open(newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file) if row["benchmark"] == DEPTH}
    assert rows["alpha"]["expected"] == rows["beta"]["expected"] == "60"
    assert rows["alpha"]["missing"] == "0"


def test_a_trace_counts_the_votes_again_and_lists_every_call_behind_them(study):
    row = next(row for row in rates(study) if (row["measure"], row["slice"]) == ("pass1", "all"))
    words = f"benchmark={DEPTH},model=alpha,arm=full,strategy=self_consistency,topic=rates,measure=pass1,slice=all"
    assert (row["value"], row["method"]) == ("", LEFT_OPEN), "one of twelve is missing: more than 2 %"
    assert float(row["high"]) - float(row["low"]) == pytest.approx(1 / 12, abs=1e-6)
    for bound in ("low", "high"):
        text = trace(look_up_cell("measures", words, bound, study / "results/tables"), root=study)
        assert f"recomputed from the scores: {row[bound]}, the same" in text
    answers = read_answers(DEPTH, Key("alpha", strategy="self_consistency"), root=study)
    assert (answers.samples.number()[answers.places] == 1).all()
    assert {len(answers.responses[answers.outcomes.items[place].item_id]) for place in answers.places} == {5}
    assert (recount("expected", answers), recount("missing", answers)) == (12, 1)


def test_a_rating_of_the_elected_answer_is_that_of_its_response():
    """A packet identifies a response by key and text; the elected score has the same key and text."""
    texts = [differential("abscess"), differential("glioblastoma"), differential("glioblastoma")]
    (row,) = scored(texts)
    rated = RatedResponse(
        item_id=row.item_id, arm=row.arm, strategy=row.strategy, model=row.model, revision=row.revision, repeat=row.repeat,
        text_sha256=row.text_sha256,
    )  # fmt: skip
    now = {response_key(one): text_digest(one.text) for one in (answered(text, repeat=n, **VOTES) for n, text in enumerate(texts))}
    assert now[rated.item_id, rated.arm, rated.strategy, rated.model, rated.revision, rated.repeat] == rated.text_sha256
