"""Every arm there is, on two phantoms: pictures are made, requests differ as their arm says, answers are scored, tables and page are built."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from conftest import ROOT, table
from neuralmedbench.config.arms import known_arms
from neuralmedbench.files.tables import read_records
from neuralmedbench.records.altered import AlteredPicture
from neuralmedbench.records.items import Disclosure, Item, evidence_images
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response

pytestmark = pytest.mark.workflow

NOT_HERE = {
    "diagnosis_withheld": "no question states a diagnosis",
    "evidence_supplied": "no case has published evidence",
    "options_shuffled": "no question has options",
    "none_of_the_above": "no question has options",
    "layout": "no model of the run names a layout",
    "evidence": "no work-up is asked",
}
"""Arms that can ask nothing of these two cases, by the name of their file, with the reason."""

NAME = "demo-tiny"


def arms() -> list[str]:
    """Give all arms but `NOT_HERE`; of a family of arms (levels, directions) the first and the last one."""
    families: dict[str, list[str]] = defaultdict(list)
    for arm in known_arms(ROOT / "config"):
        families[arm.partition("-")[0]].append(arm)
    return [arm for name, members in families.items() if name not in NOT_HERE for arm in dict.fromkeys((members[0], members[-1]))]


@pytest.fixture(scope="module")
def run(finished_run: Path, tmp_path_factory: pytest.TempPathFactory, run_snakemake: Callable[..., CompletedProcess[str]]) -> Path:
    """Give the small run, gone on with every arm."""
    folder = tmp_path_factory.mktemp("arms") / "project"
    shutil.copytree(finished_run, folder, symlinks=True)
    path = folder / f"config/benchmarks/{NAME}.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(config | {"arms": arms(), "samples": 1}), encoding="utf-8")
    done = run_snakemake(folder, "--configfile", "config/test.yaml", "--", "results/test/report.html")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return folder


@pytest.fixture(scope="module")
def requests(run: Path) -> dict[str, dict[str, Request]]:
    """Give the requests by arm and item."""
    found: dict[str, dict[str, Request]] = defaultdict(dict)
    for row in read_records(run / f"data/prompts/{NAME}.parquet", Request):
        found[row.arm][row.item_id] = row
    return found


def test_every_arm_asks_something_and_no_request_is_that_of_full(requests: dict[str, dict[str, Request]]) -> None:
    assert set(requests) == set(arms())
    for arm, rows in requests.items():
        same = [item for item, row in rows.items() if arm != "full" and row.request_id == requests["full"][item].request_id]
        assert not same, arm


def test_every_request_is_answered_by_every_model(run: Path, requests: dict[str, dict[str, Request]]) -> None:
    asked = {(arm, item) for arm, rows in requests.items() for item in rows}
    for path in (run / f"results/test/responses/{NAME}").glob("*.parquet"):
        rows = read_records(path, Response)
        assert {(row.arm, row.item_id) for row in rows} == asked
        assert {row.state for row in rows} == {"ok"}


def test_altered_pictures_lie_beside_their_case_and_are_what_is_sent(run: Path, requests: dict[str, dict[str, Request]]) -> None:
    altered = read_records(run / f"data/altered/{NAME}/pictures.parquet", AlteredPicture)
    items = {row.item_id: row for row in read_records(run / f"data/items/{NAME}.parquet", Item)}
    own = {item.case_id: {image.sha256 for image in evidence_images(item)} for item in items.values()}
    assert {row.arm.partition("-")[0] for row in altered} >= {"blank_image", "mirrored_image", "degraded"}
    for row in altered:
        assert set(row.sources) <= own[row.case_id]
        assert Path(row.path).parent.name == f"sub-{row.case_id}"
    made = {(row.arm, row.sha256) for row in altered}
    for arm in {row.arm for row in altered}:
        for request in requests[arm].values():
            sent = {image.sha256 for turn in request.turns for image in turn.images}
            assert any((arm, digest) in made for digest in sent)
            assert all((arm, digest) in made or digest in own[request.case_id] for digest in sent)


def test_pictures_of_another_are_those_of_another_patient_and_without_the_lesion_of_the_case_itself(
    run: Path, requests: dict[str, dict[str, Request]]
) -> None:
    items = {row.item_id: row for row in read_records(run / f"data/items/{NAME}.parquet", Item)}
    rows = [row for row in read_records(run / f"data/disclosures/{NAME}.parquet", Disclosure) if row.images]
    assert {row.arm for row in rows} == {"image_of_another", "lesion_left_out"}
    for row in rows:
        own, shown = items[row.item_id], items[row.images_of]
        assert (own.patient_id != shown.patient_id) is (row.arm == "image_of_another")
        digests = [image.sha256 for turn in requests[row.arm][row.item_id].turns for image in turn.images]
        assert digests == [next(image.sha256 for image in shown.images if image.image_id == name) for name in row.images]


def test_tables_and_page_hold_every_arm(run: Path) -> None:
    assert {row["arm"] for row in table(run, "arms") if row["benchmark"] == NAME} == set(arms()) - {"full"}
    measures = {row["measure"] for row in table(run, "grounding") if row["benchmark"] == NAME}
    assert measures >= {
        "follows_picture",
        "stays_with_text",
        "neither",
        "visual_reliance",
        "mirage",
        "invented_reasoning",
        "side_flips",
        "class",
    }
    assert {row["told"] for row in table(run, "grounding") if row["measure"] == "class"} == {"cannot be told"}, "two patients"
    page = (run / "results/test/report.html").read_text(encoding="utf-8")
    assert re.search(r'id="grounding"', page)


def test_arms_that_are_left_out_are_known_and_have_a_reason() -> None:
    files = {arm.partition("-")[0] for arm in known_arms(ROOT / "config")}
    assert set(NOT_HERE) <= files
