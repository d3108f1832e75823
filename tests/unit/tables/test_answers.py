"""The frame of answers: which samples are expected, missing, graded; names that look like numbers or like nothing stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.tables import item, score
from neuralmedbench.records.items import Family, Item, Level, Runner
from neuralmedbench.tables.answers import Answers, gather_answers, paired_samples

NAMES = ("007", "1e5", "NA", "NULL", "None", "True", "nan")
"""Patients, cases and models whose names a reader of tables may take for something else."""


def items() -> list[Item]:
    """Give one item a name, sorted."""
    return [item("b", name, name, Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN) for name in NAMES]


def gathered(scores: dict[str, list[object]]) -> Answers:
    return gather_answers(items(), scores)  # type: ignore[arg-type]


def test_names_that_look_like_numbers_or_like_nothing_stay_names() -> None:
    answers = gathered({name: [score(one, name, passed=True, arm=arm) for one in items() for arm in ("full", "NA")] for name in NAMES})
    assert sorted({model for model, _, _ in answers.spans}) == sorted(NAMES)
    assert answers.arms("None") == ["NA", "full"]
    for name in NAMES:
        assert answers.of((name, "NA", "direct")).mean("passed").tolist() == [1.0] * len(NAMES)


def test_an_expected_sample_without_a_record_is_missing_and_has_no_verdict() -> None:
    first, second, *others = items()
    rows = [score(first, "m", passed=True, repeat=repeat) for repeat in (0, 2)] + [score(second, "m", passed=None)]
    samples = gathered({"m": rows}).of(("m", "full", "direct"))
    assert samples.number().tolist() == [3] * len(NAMES), "as many samples as any item of its runner has"
    assert samples.number(samples["there"]).tolist() == [2, 1] + [0] * len(others)
    assert samples.number(samples["graded"]).tolist() == [2] + [0] * (len(others) + 1)
    assert samples.there.mean("passed").tolist()[:2] == [1.0, 0.0]
    assert np.isnan(samples.graded.mean("passed")[1])
    assert [(place, row.repeat) for place, row in samples.rows()] == [(0, 0), (0, 2), (1, 0)]
    assert (samples.asked.tolist(), samples.answered.tolist()) == ([True, True, *[False] * len(others)], [False] * len(NAMES))


def test_under_an_arm_an_item_is_expected_of_all_models_that_any_was_asked() -> None:
    first, second, *_ = items()
    rows = {"one": [score(first, "one", passed=True, arm="no_image")], "two": [score(second, "two", passed=True, arm="no_image")]}
    answers = gathered(rows)
    for model, there in (("one", [1, 0]), ("two", [0, 1])):
        samples = answers.of((model, "no_image", "direct"))
        assert samples.number().tolist() == [1, 1] + [0] * (len(NAMES) - 2)
        assert samples.number(samples["there"]).tolist()[:2] == there
    assert paired_samples(answers.of(("one", "no_image", "direct")), answers.of(("two", "no_image", "direct"))) == []
    assert len(answers.of(("one", "blank_image", "direct")).scores) == 0


@pytest.mark.parametrize("repeat", [0, 3])
def test_the_sample_that_is_left_of_a_vote_keeps_its_number_and_the_others_are_not_missing(repeat: int) -> None:
    first, *_ = items()
    answers = gathered({"m": [score(first, "m", passed=True, repeat=repeat, strategy="self_consistency")]})
    samples = answers.of(("m", "full", "self_consistency"))
    assert [(place, row.repeat) for place, row in samples.rows()] == [(0, repeat)]
    assert samples.answered.tolist() == [True] + [False] * (len(NAMES) - 1)
    assert samples.number().tolist() == [1] + [0] * (len(NAMES) - 1)


def test_answers_to_items_without_a_reference_are_left_out() -> None:
    first, second, *_ = items()
    answers = gather_answers([first], {"m": [score(one, "m", passed=True) for one in (first, second)]})
    assert [row.item_id for row in answers.scores if row] == [first.item_id]
