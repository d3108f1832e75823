from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from jinja2 import FileSystemLoader
from pydantic import ValidationError

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, pictures, slice_row, source
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.errors import ConfigError, DeidentificationError
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.arms import donors_of
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.prompts.coverage import check_asked, check_pictures
from neuralmedbench.records.case import Audit
from neuralmedbench.records.items import Level
from neuralmedbench.records.requests import Fact, Inquiry, RequestImage, RequestTurn

ARMS = ("full", "no_image", "no_text", "shuffled_image", "findings_disclosed")


@pytest.fixture
def templates(root):
    return Templates(root / "config/prompts")


@pytest.fixture
def built():
    """Two cases, the second one a dialogue."""
    answers = {"a1": answer("a1"), "a2": answer("a2", level=Level.DIALOGUE)}
    return build_cases("b", benchmark_config(), [source("a1"), source("a2")], answers, VOCABULARY)


@pytest.fixture
def requests(built, templates):
    """All requests of the two cases by item and arm."""
    rows = assemble(built.items, CaseMaterial(built.disclosures), benchmark_config(arms=ARMS), templates)
    return {(row.item_id, row.arm): row for row in rows}


def said(request):
    return " ".join([request.system, *(turn.text for turn in request.turns)])


def shown(request):
    return [image for turn in request.turns for image in turn.images]


def test_the_full_arm_shows_notes_record_question_form_and_labelled_pictures(requests):
    request = requests["b/a1/differential_diagnosis", "full"]
    text = said(request)
    assert "Sudden weakness" in text
    assert "Sodium: 138" in text
    assert "DIFFERENTIAL:" in text
    assert "patient's left is on the viewer's right" in text
    assert [image.label for image in shown(request)][:2] == ["Picture 1: FLAIR, axial, z = -10 mm", "Picture 2: FLAIR, axial, z = +20 mm"]


def test_without_pictures_nothing_is_left_that_tells_of_them(requests):
    for (_, arm), request in requests.items():
        if arm == "no_image":
            assert shown(request) == []
            assert "icture" not in said(request)
            assert "FLAIR" not in said(request)


def test_without_text_the_question_and_the_pictures_stay(requests):
    request = requests["b/a1/differential_diagnosis", "no_text"]
    assert "weakness" not in said(request)
    assert "Sodium" not in said(request)
    assert "What is the most likely diagnosis?" in said(request)
    assert len(shown(request)) == 4
    dialogue = requests["b/a2/differential_diagnosis", "no_text"]
    assert len(dialogue.turns) == 2
    assert "weakness" not in said(dialogue)


def test_shuffled_pictures_are_another_patients_under_their_own_labels(requests):
    request = requests["b/a1/differential_diagnosis", "shuffled_image"]
    assert {image.sha256.partition("-")[0] for image in shown(request)} == {"a2"}
    assert "Sudden weakness" in said(request)


def test_findings_are_shown_only_where_they_are_disclosed(requests):
    for (item, arm), request in requests.items():
        assert ("Bright area in the left insula" in said(request)) == (arm == "findings_disclosed"), (item, arm)
    assert ("b/a1/lesion_recognition", "findings_disclosed") not in requests


def test_a_dialogue_shows_pictures_and_disclosed_findings_in_its_last_turn_only(requests):
    first, last = requests["b/a2/differential_diagnosis", "findings_disclosed"].turns
    assert (len(first.images), len(last.images)) == (0, 4)
    assert "Bright area" not in first.text
    assert "Bright area" in last.text


def test_a_structured_item_asks_for_json_without_labels(tmp_path, templates):
    built = pictures(tmp_path, "d,a.png,normal,x,,CT,,axial")
    (request,) = assemble(built.items, CaseMaterial(), benchmark_config(arms=["full"]), templates)
    assert '"class": "tumor" | "stroke" | "multiple sclerosis" | "other abnormalities" | "normal" | null' in said(request)
    assert [image.label for image in shown(request)] == ["Picture 1"]
    assert json.loads(request.answer_schema)["properties"]["plane"]["enum"][-1] is None


def test_equal_requests_have_equal_ids_and_a_changed_picture_changes_it(built, templates):
    config = benchmark_config(arms=["full"])
    (one, *_), (two, *_) = (assemble(built.items, CaseMaterial(), config, templates) for _ in range(2))
    assert one.request_id == two.request_id
    item = built.items[0]
    other = replace(item, images=(replace(item.images[0], sha256="other"), *item.images[1:]))
    assert assemble([other], CaseMaterial(), config, templates)[0].request_id != one.request_id


def test_an_unknown_strategy_and_a_template_that_uses_an_unknown_name_are_refused(built, templates, tmp_path):
    with pytest.raises(ValidationError, match="'direct', 'cot', 'few_shot', 'self_consistency', 'ask', 'workup' or 'viewer'"):
        benchmark_config(strategies=["guess"])
    (tmp_path / "system.j2").write_text("{{ answer }}")
    with pytest.raises(ConfigError, match=r"system\.j2: UndefinedError; it may use oriented"):
        assemble(built.items, CaseMaterial(), benchmark_config(arms=["full"]), Templates(tmp_path))


@pytest.mark.parametrize(
    ("text", "problem"), [("für", r"t\.j2: UnicodeDecodeError; save it as UTF-8"), ("{{ 1 / 0 }}", r"t\.j2: ZeroDivisionError")]
)
def test_a_template_in_another_encoding_or_with_a_wrong_computation_is_one_line(tmp_path, text, problem):
    (tmp_path / "t.j2").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=problem):
        Templates(tmp_path).render("t")


def test_text_of_a_patient_is_never_rendered_as_a_template(templates):
    built = build_cases("b", benchmark_config(), [source("a1", notes=("{{ 7 * 7 }} {% raw %}",))], {}, VOCABULARY)
    assert "{{ 7 * 7 }} {% raw %}" in said(assemble(built.items, CaseMaterial(), benchmark_config(arms=["full"]), templates)[0])


def test_a_template_is_read_once_however_many_requests_it_renders(built, monkeypatch):
    read, whole = Counter(), FileSystemLoader.get_source

    def counted(self, environment, name):
        read[name] += 1
        return whole(self, environment, name)

    monkeypatch.setattr(FileSystemLoader, "get_source", counted)
    many = [replace(item, item_id=f"{item.item_id}/{number}") for number in range(5) for item in built.items]
    assemble(many, CaseMaterial(built.disclosures), benchmark_config(arms=["full"]), Templates(ROOT / "config/prompts"))
    assert set(read.values()) == {1}


def test_shuffling_needs_two_patients(built):
    with pytest.raises(ConfigError, match="at least two patients"):
        donors_of([item for item in built.items if item.case_id == "a1"])


def audit(*covered, state="passed"):
    return Audit(benchmark="b", profile="pseudonymised", kind="phantom", state=state, covered=dict.fromkeys(covered, "a1"))


def test_a_picture_of_a_scan_that_the_audit_does_not_cover_is_refused(built):
    rows = [row for case in ("a1", "a2") for row in source(case).images]
    volumes = {row.volume_sha256 for row in rows}
    check_pictures(built.items, rows, audit(*volumes))
    with pytest.raises(DeidentificationError):
        check_pictures(built.items, rows, audit(*sorted(volumes)[1:]))
    with pytest.raises(DeidentificationError):
        check_pictures(built.items, rows, audit(*volumes, state="pending"))


def test_a_picture_that_claims_another_scan_than_it_was_cut_from_is_refused(built):
    rows = [replace(row, volume_sha256="real") if row.case_id == "a1" else row for row in [*source("a1").images, *source("a2").images]]
    claimed = {image.volume_sha256 for item in built.items for image in item.images}
    with pytest.raises(DeidentificationError, match="does not belong to the scan"):
        check_pictures(built.items, rows, audit("real", *claimed))
    with pytest.raises(DeidentificationError, match="does not belong to the scan"):
        check_pictures(built.items, [slice_row("a9", 0)], audit(*claimed))


def test_inference_needs_an_audit_that_passed_and_covers_every_picture_as_it_is_now(requests):
    asked = list(requests.values())
    shown = {image.volume_sha256 for row in asked for turn in row.turns for image in turn.images}
    assert len(shown) > 1
    check_asked(asked, audit(*shown))
    with pytest.raises(DeidentificationError, match="not covered"):
        check_asked(asked, audit(*sorted(shown)[1:]))
    with pytest.raises(DeidentificationError, match="waits for a person"):
        check_asked(asked, audit(*shown, state="pending"))
    unknown = replace(asked[0], turns=(RequestTurn(text="t", images=(RequestImage(path="p.png", sha256="ab", label="P"),)),))
    with pytest.raises(DeidentificationError, match="not covered"):
        check_asked([unknown], audit(*shown))


def test_pictures_that_are_told_when_they_are_asked_for_need_the_audit_too(requests):
    image = RequestImage(path="p.png", sha256="ab", label="P", volume_sha256="scan")
    inquiry = Inquiry(facts=(Fact(text="f", images=(image,)),), max_questions=1, unknown="", left="", closing="")
    told = replace(next(iter(requests.values())), turns=(RequestTurn(text="t"),), inquiry=inquiry)
    check_asked([told], audit("scan"))
    with pytest.raises(DeidentificationError, match="not covered"):
        check_asked([told], audit("other"))


def test_a_grader_is_not_asked_without_a_passed_audit():
    check_asked((), audit())
    with pytest.raises(DeidentificationError):
        check_asked((), audit(state="pending"))
