"""Items whose requests are equal share one answer: one draw stands for all of them, in intervals, tests and pairs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fixtures.report import build, parts_of
from fixtures.tables import BREADTH, item, response, score, write_study
from neuralmedbench.estimates.intervals import IntervalSettings, rate_interval
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.items import Axis, Family, Gold, Item, Level, Runner
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import by_measure
from neuralmedbench.records.scores import response_key
from neuralmedbench.tables.outcomes import PAIR_METRICS, Key, Outcomes, gather_outcomes
from neuralmedbench.tables.shared_requests import joined_clusters, request_codes

SETTINGS = IntervalSettings(resamples=200, seed=3)
NO_IMAGE = Key("m", "no_image")


def pairs_of(number: int) -> list[Item]:
    """Return pairs of questions, each of a patient of its own."""
    return [
        replace(
            item("pairs", f"c{pair}{side}", f"p{pair}", Family.QUESTION_ANSWERING, level=Level.NONE, runner=Runner.CHOICE),
            item_id=f"pairs/{pair:02d}-{side}",
            pair_id=f"pair{pair:02d}",
            options=("left", "right"),
        )
        for pair in range(number)
        for side in ("1", "2")
    ]


def outcomes(items: list[Item], calls: dict[str, str]) -> Outcomes:
    """Return outcomes under `full` and `no_image`; one call of `calls` answers each item, "left" to all of it."""
    rows, responses, gold = [], [], []
    for one in items:
        right = "left" if one.item_id.endswith("1") else "right"
        gold.append(Gold(item_id=one.item_id, answer=right, choice="A" if right == "left" else "B"))
        for arm in ("full", "no_image"):
            rows.append(score(one, "m", passed=right == "left", arm=arm, differential=("left",)))
            key = calls[one.item_id] if arm == "no_image" else one.item_id
            responses.append(replace(response(one, "m", "left", arm=arm), call_keys=(key,)))
    return gather_outcomes("pairs", Axis.CONTROL, items, gold, scores={"m": rows}, sampled={"m": False}, responses={"m": responses})


def test_one_request_of_all_items_is_one_cluster_and_has_no_interval() -> None:
    items = pairs_of(12)
    found = outcomes(items, dict.fromkeys((one.item_id for one in items), "call"))
    everything = np.ones(len(items), dtype=bool)
    assert (found.request_count(NO_IMAGE, everything), found.request_count(Key("m"), everything)) == (1, 24)
    assert found.by_patient(SETTINGS, NO_IMAGE).clusters == 1
    assert found.by_patient(SETTINGS).clusters == found.by_patient(SETTINGS, Key("m")).clusters == 12


def test_patients_who_share_requests_are_joined_and_the_interval_is_wider() -> None:
    items = pairs_of(12)
    # the patients 0 to 5 share a request, and 6 to 11 share another
    found = outcomes(items, {one.item_id: f"call{int(one.item_id[6:8]) // 6}" for one in items})
    by, plain = found.by_patient(SETTINGS, NO_IMAGE), found.by_patient(SETTINGS)
    assert by.clusters == 2
    values = np.repeat([1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], 2)
    wide, narrow = rate_interval(values, by), rate_interval(values, plain)
    assert wide.value == narrow.value
    assert wide.high - wide.low > narrow.high - narrow.low


def test_clusters_are_connected_components_of_patients_and_requests() -> None:
    patients, requests = np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 1, 2, 2, 3])
    assert joined_clusters(patients, [requests]).tolist() == [0, 0, 0, 0, 0, 1]
    assert joined_clusters(patients, [np.arange(6)]).tolist() == patients.tolist()
    # two arms together join what either of them joins
    assert joined_clusters(np.arange(4), [np.array([0, 0, 1, 2]), np.array([0, 1, 2, 2])]).tolist() == [0, 0, 1, 1]


def test_pairs_that_share_a_request_have_no_value() -> None:
    items = pairs_of(2)
    shared = outcomes(items, dict.fromkeys((one.item_id for one in items), "call"))
    assert all(np.isnan(shared.metric(name, NO_IMAGE)).all() for name in PAIR_METRICS)
    assert shared.pairs_of_one_request(NO_IMAGE) == 2
    assert np.nanmean(shared.metric("pair_part", Key("m"))) == 1.0
    # one pair shares a request, the other does not
    half = outcomes(items, {one.item_id: "call" if "/00" in one.item_id else one.item_id for one in items})
    assert (half.pairs_of_one_request(NO_IMAGE), int((~np.isnan(half.metric("pair_same", NO_IMAGE))).sum())) == (1, 1)


def test_items_without_a_call_and_arms_without_equal_calls_share_nothing() -> None:
    items = pairs_of(1)
    different = [replace(response(one, "m", "left"), call_keys=(one.item_id,)) for one in items]
    assert request_codes(items, different) == {}
    assert request_codes(items, [replace(row, call_keys=()) for row in different]) == {}
    # dialogues that begin alike and go on differently share nothing
    assert request_codes(items, [replace(row, call_keys=("first", row.item_id)) for row in different]) == {}
    assert request_codes(items, [replace(row, call_keys=("first",)) for row in different])["full", "direct"].tolist() == [0, 0]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Make a run in which the breadth items share one request without their pictures, and are pairs."""
    root = tmp_path_factory.mktemp("shared")
    write_study(root, models=("alpha",), patients=10)
    path = root / "results" / "responses" / BREADTH / "alpha.parquet"
    rows = read_records(path, Response)
    calls = [replace(row, call_keys=("one" if row.arm == "no_image" else f"{row.item_id} {row.repeat}",)) for row in rows]
    write_records(path, Response, calls, key=response_key)
    path = root / "data" / "items" / f"{BREADTH}.parquet"
    write_records(path, Item, [replace(one, pair_id=one.case_id) for one in read_records(path, Item)], key=lambda one: one.item_id)
    return root, build(root, ("alpha",), figures=False)


def test_tables_and_page_say_that_an_arm_is_one_request(made: tuple[Path, str]) -> None:
    root, text = made
    (arm,) = (row for row in read_result(root / "results" / "tables", "arms") if row["benchmark"] == BREADTH)
    assert (arm["n_items"], arm["n_patients"]) == ("20", "10")
    assert arm["note"] == "one request shared by 20 items"
    assert arm["difference"]
    assert arm["low"] + arm["high"] + arm["p_value"] == ""
    asked = by_measure(read_result(root / "results" / "tables", "rates"), "arm", "slice")
    rates = asked[BREADTH, "alpha", "no_image", "all"]
    assert [rates["pass1"][name] for name in ("note", "low", "method")] == ["one request shared by 20 items", "", "none"]
    for name in PAIR_METRICS:
        assert rates[name]["value"] == ""
        assert rates[name]["note"].startswith("the items of 10 pairs share one request")
    assert asked[BREADTH, "alpha", "full", "all"]["pair_right"]["value"]
    part = parts_of(text)["arms"]
    line = next(row for row in re.findall(r"<tr.*?</tr>", part, flags=re.DOTALL) if f'data-benchmark="{BREADTH}"' in row)
    assert "<small>one request shared by 20 items</small>" in line
    assert "the items of 10 pairs share one request" in part


def test_the_confidence_under_such_an_arm_has_no_interval(made: tuple[Path, str]) -> None:
    rows = {
        (row["measure"], row["other_arm"]): row
        for row in read_result(made[0] / "results" / "tables", "confidence")
        if (row["benchmark"], row["arm"]) == (BREADTH, "no_image")
    }
    assert rows["brier", ""]["value"]
    assert rows["brier", ""]["n_patients"] == "10"
    assert "".join(row["low"] for row in rows.values()) == ""
