"""Requests to models that look through the scans: what the first message says, and what is shown of a case to whom."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, source
from fixtures.viewing import FLAIR, T1, final
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import ConfigError, DeidentificationError
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.prompts.coverage import check_asked, check_scans
from neuralmedbench.records.case import Audit
from neuralmedbench.records.items import Item, Level
from neuralmedbench.records.requests import Request
from neuralmedbench.records.views import ViewRules, ViewScan
from neuralmedbench.scoring.parse import parse_answer

NOTES = ("Sudden weakness of the right arm.\n\nExamination: facial droop.",)
RECORD = "age: 61 years\nsodium: 138 mmol/L"
RULES = ViewRules(planes=("axial",), windows=("own", "dark", "bright"), zooms=(1, 2))


def config(**changes: object) -> BenchmarkConfig:
    return benchmark_config(
        arms=["full", "no_image"], strategies=["direct", "viewer"], **{"viewer": {"max_views": 7, "zooms": [1, 2]}, **changes}
    )


def items(level: Level = Level.DIRECT) -> tuple[Item, ...]:
    return build_cases("b", config(), [source("c1", notes=NOTES, record=RECORD)], {"c1": answer("c1", level=level)}, VOCABULARY).items


def viewers(level: Level = Level.DIRECT, views: tuple[ViewScan, ...] = (FLAIR, T1)) -> list[Request]:
    rows = assemble(items(level), CaseMaterial(views=views), config(), Templates(ROOT / "config/prompts"))
    return [row for row in rows if row.strategy == "viewer"]


@pytest.mark.parametrize("level", [Level.DIRECT, Level.DIALOGUE])
def test_the_first_message_has_the_text_of_the_case_and_the_list_of_its_scans(level: Level) -> None:
    (one,) = viewers(level)
    assert one.viewer is not None
    assert (one.arm, one.viewer.max_views, one.viewer.zooms, one.most_calls) == ("full", 7, (1, 2), 8)
    (first,) = one.turns
    assert not first.images
    for words in ("weakness of the right arm", "facial droop", "sodium: 138", "You have 7 views", "Zooms: 1, 2."):
        assert words in first.text
    assert "- FLAIR: axial slices 1 to 20 (z from -40 to +55 mm); windows own, bright\n" in first.text
    assert "- T1w: axial slices 1 to 80 (z from -40 to +38 mm); windows own, dark\n" in first.text
    assert "PICTURE:" not in first.text


def test_only_diagnoses_of_cases_with_scans_are_asked_so_and_a_scan_is_part_of_the_question() -> None:
    assert [row.item_id.rpartition("/")[2] for row in viewers()] == ["differential_diagnosis"]
    assert viewers()[0].request_id == viewers()[0].request_id
    assert viewers()[0].request_id != viewers(views=(FLAIR, replace(T1, case_sha256="9" * 64)))[0].request_id
    with pytest.raises(ConfigError, match="strategy viewer"):
        viewers(views=(replace(FLAIR, case_id="another"),))


def test_a_viewer_survives_the_table_of_requests(tmp_path) -> None:
    write_records(tmp_path / "prompts.parquet", Request, viewers(), key=lambda row: row.item_id)
    assert read_records(tmp_path / "prompts.parquet", Request) == viewers()


def test_the_audit_must_cover_every_scan_and_allow_what_is_listed() -> None:
    audit = Audit(
        benchmark="b", profile="p", kind="patient", state="passed", covered=dict.fromkeys(("1" * 64, "3" * 64), "c1"), views=RULES
    )
    asked = viewers()
    check_asked(asked, audit)
    for other in (
        replace(audit, state="pending"),
        replace(audit, covered={"1" * 64: "c1"}),
        replace(audit, views=None),
        replace(audit, views=replace(RULES, windows=("own",))),
    ):
        with pytest.raises(DeidentificationError):
            check_asked(asked, other)
        with pytest.raises(DeidentificationError):
            check_scans([FLAIR, T1], other)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"viewer": None}, "needs the key `viewer`"),
        ({"viewer": {"zooms": [2]}}, "with 1 among them"),
        ({"viewer": {"windows": ["all"]}}, "'own'"),
        ({"kind": "pictures"}, "only scans have slices"),
    ],
)
def test_a_viewer_is_configured_with_scans_and_says_what_may_be_shown(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        config(**changes)


def test_the_action_before_a_final_answer_costs_no_form() -> None:
    item = next(item for item in items() if item.family == "differential_diagnosis")
    assert final("ischemic stroke").startswith('{"action": "ANSWER"}')
    with_action, without = (parse_answer(text, item) for text in (final("ischemic stroke"), final("ischemic stroke").partition("\n")[2]))
    assert with_action == without
