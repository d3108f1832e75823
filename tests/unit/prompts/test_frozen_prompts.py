"""Prompts are frozen word by word: a changed word is another question, and every answer is paid for again."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY, answer, benchmark_config, pictures, source
from fixtures.prompt import OPTIONS, asked, exemplar, open_question, question, staged, written
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.benchmarks.sources import TEMPLATE, PromptRecordRow
from neuralmedbench.files.templates import Templates, version_of
from neuralmedbench.records.items import Disclosure, Level
from neuralmedbench.records.requests import Request

GOLDEN = ROOT / "tests" / "golden"
VERSIONS = GOLDEN / "prompt_versions.json"
FOLDER = ROOT / "config" / "prompts"
ACCEPT = "to accept: pytest tests/unit/prompts/test_frozen_prompts.py --accept-prompts"
FINDINGS, EVIDENCE = (
    "Findings of an expert who saw the pictures:\n- Dark area on the ADC map",
    "An area that is dark on the ADC map is acute.",
)


def of_scans(form: str = "short") -> dict[str, Request]:
    """Return the prompts of the families of one's own cases, with the short answer form or the checklist."""
    answers = {"a1": answer("a1"), "a2": answer("a2", level=Level.DIALOGUE)}
    built = build_cases("b", benchmark_config(), [source("a1"), source("a2")], answers, VOCABULARY)
    made = asked(
        built.items,
        disclosures=built.disclosures,
        arms=["full", "findings_disclosed"],
        strategies=["direct", "cot", "ask"],
        answer_form=form,
    )
    return {
        "differential_diagnosis": made["a1/differential_diagnosis", "findings_disclosed", "direct"],
        "lesion_recognition": made["a1/lesion_recognition", "full", "direct"],
        "rationale_generation": made["a1/rationale_generation", "findings_disclosed", "direct"],
        "dialogue": made["a2/differential_diagnosis", "findings_disclosed", "direct"],
        "ask": made["a2/differential_diagnosis", "full", "ask"],
        "lesion_recognition_cot": made["a1/lesion_recognition", "full", "cot"],
    }


def with_checklists() -> dict[str, Request]:
    """Return the same prompts with the default answer form, the checklist."""
    return {f"checklist_{name}": request for name, request in of_scans("checklist").items()}


def with_places() -> dict[str, Request]:
    """Return the same prompts with the answer form that asks for picture and box."""
    return {f"evidence_{name}": request for name, request in of_scans("evidence").items()}


def of_questions(folder: Path) -> dict[str, Request]:
    """Return the prompts of imported questions and of the strategies."""
    told = Disclosure(item_id="b/q1", arm="findings_disclosed", text=FINDINGS)
    known = Disclosure(item_id="b/q1", arm="evidence_supplied", text=EVIDENCE)
    structured = pictures(folder, "d,a.png,normal,x,,CT,,axial").items
    example = exemplar(question("e1", "p2", question="Which of these is it?", notes="Slow for a year.", record=""))
    return {
        "structured": asked(structured)["img-000001", "full", "direct"],
        "structured_cot": asked(structured, strategies=["direct", "cot"])["img-000001", "full", "cot"],
        "choice": asked([question(given="a stroke")], disclosures=[told], arms=["full", "findings_disclosed"])[
            "q1", "findings_disclosed", "direct"
        ],
        "open_answer": asked([open_question(given="a stroke")], disclosures=[known], arms=["full", "evidence_supplied"])[
            "q1", "evidence_supplied", "direct"
        ],
        "cot": asked([open_question()], strategies=["direct", "cot"])["q1", "full", "cot"],
        "stages": asked([staged()])["stages", "full", "direct"],
        "few_shot": asked([question()], exemplars=[example], strategies=["direct", "few_shot"])["q1", "full", "few_shot"],
    }


def among_rivals() -> dict[str, Request]:
    """Return the prompts of an open question and of a dialogue that are asked as a choice."""
    answers = {"a1": answer("a1", rivals=("glioblastoma",)), "a2": answer("a2", level=Level.DIALOGUE, rivals=("glioblastoma",))}
    built = build_cases("b", benchmark_config(), [source("a1"), source("a2")], answers, VOCABULARY)
    made = asked(built.items, arms=["full", "choice-2", "choice_no_image-2"], answer_form="checklist")
    return {
        "rivals": made["a1/differential_diagnosis", "choice-2", "direct"],
        "rivals_dialogue": made["a2/differential_diagnosis", "choice_no_image-2", "direct"],
    }


def under_pressure() -> dict[str, Request]:
    """Return the prompts of the arms that add an answer."""
    arms = ["suggestion-wrong", "own_answer-suggested", "own_answer-doubted"]
    told = Disclosure(item_id="b/q1", arm="suggestion-wrong", text="A. cerebral infarction")
    made = asked([question()], disclosures=[told], arms=["full", *arms])
    return {f"arm_{arm}": made["q1", arm, "direct"] for arm in arms}


def paraphrased(number: int, folder: Path) -> str:
    """Return the prompts of every form in the words of a paraphrase."""
    arm = f"paraphrase-{number}"
    answers = {"a1": answer("a1"), "a2": answer("a2", level=Level.DIALOGUE)}
    built = build_cases("b", benchmark_config(), [source("a1"), source("a2")], answers, VOCABULARY)
    structured = pictures(folder, "d,a.png,normal,x,,CT,,axial").items
    items = [*built.items, *structured, question(), open_question("q2"), staged()]
    made = asked(items, arms=["full", arm], answer_form="short")
    return "\n".join(f"=== {item}\n{written(request)}" for (item, name, _), request in made.items() if name == arm)


NAMES = (
    *("differential_diagnosis", "lesion_recognition", "rationale_generation", "dialogue", "ask", "structured"),
    *("structured_cot", "choice", "open_answer", "cot", "few_shot"),
    *("checklist_differential_diagnosis", "checklist_lesion_recognition", "checklist_rationale_generation"),
    "stages",
    *("checklist_dialogue", "checklist_ask", "checklist_lesion_recognition_cot"),
    *("rivals", "rivals_dialogue"),
    *("arm_suggestion-wrong", "arm_own_answer-suggested", "arm_own_answer-doubted"),
    *("evidence_differential_diagnosis", "evidence_lesion_recognition", "evidence_dialogue", "evidence_ask"),
)


RECORD = (
    PromptRecordRow("Sodium", "138", "mmol/L", -2),
    PromptRecordRow("Glasgow coma scale", "14", "", -1),
    PromptRecordRow("Systolic blood pressure", "221", "mmHg", 0),
    PromptRecordRow("Smoker", "yes", "", None),
    PromptRecordRow("Family history {{ of }} stroke", "", "", None),
)


def test_the_words_of_the_health_record_are_frozen(request: pytest.FixtureRequest) -> None:
    rendered = Templates(FOLDER).render(TEMPLATE, rows=RECORD) + "\n"
    golden = GOLDEN / "prompt_record.txt"
    if request.config.getoption("accept_prompts") and versions_fit():
        golden.write_text(rendered, encoding="utf-8")
    assert rendered == (golden.read_text(encoding="utf-8") if golden.exists() else ""), ACCEPT


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_of_each_form_is_frozen(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rendered = written(
        {**of_scans(), **with_checklists(), **with_places(), **of_questions(tmp_path), **among_rivals(), **under_pressure()}[name]
    )
    golden = GOLDEN / f"prompt_{name}.txt"
    if request.config.getoption("accept_prompts") and versions_fit():
        golden.write_text(rendered, encoding="utf-8")
    assert rendered == (golden.read_text(encoding="utf-8") if golden.exists() else ""), ACCEPT


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_words_of_each_paraphrase_are_frozen(number: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rendered = paraphrased(number, tmp_path)
    golden = GOLDEN / f"prompt_paraphrase_{number}.txt"
    if request.config.getoption("accept_prompts") and versions_fit():
        golden.write_text(rendered, encoding="utf-8")
    assert rendered == (golden.read_text(encoding="utf-8") if golden.exists() else ""), ACCEPT


def templates() -> dict[str, str]:
    """Return the prompt templates by path; a grader's has its version in its name."""
    paths = [path for path in sorted(FOLDER.rglob("*.j2")) if not path.name.startswith("grader")]
    return {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def words_of(text: str) -> str:
    """Return the digest of a template without its version line."""
    return hashlib.sha256(text.partition("\n")[2].encode()).hexdigest()


def versions_fit() -> bool:
    """Return True if every changed template has a higher version than the accepted one."""
    accepted = json.loads(VERSIONS.read_text(encoding="utf-8"))
    return not [name for name, text in templates().items() if stale(name, text, accepted)]


def stale(name: str, text: str, accepted: dict[str, dict[str, object]]) -> bool:
    """Return True if the text of a template changed but its version did not rise."""
    before = accepted.get(name, {"version": 0, "sha256": ""})
    return words_of(text) != before["sha256"] and not (version_of(text) or 0) > int(str(before["version"]))


def test_a_template_with_other_words_has_a_higher_version(request: pytest.FixtureRequest) -> None:
    now = {name: {"version": version_of(text), "sha256": words_of(text)} for name, text in templates().items()}
    if request.config.getoption("accept_prompts") and versions_fit():
        VERSIONS.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    accepted = json.loads(VERSIONS.read_text(encoding="utf-8"))
    for name, text in templates().items():
        assert version_of(text), f"{name}: its first line has to be {{# version: 1 #}}"
        assert not stale(name, text, accepted), f"{name}: its words changed: raise the version in its first line"
    assert now == accepted, ACCEPT


def test_a_changed_word_asks_for_a_higher_version_and_a_changed_version_alone_for_nothing() -> None:
    accepted = {"a.j2": {"version": 3, "sha256": words_of("{# version: 3 #}\nOld words\n")}}
    assert stale("a.j2", "{# version: 3 #}\nNew words\n", accepted)
    assert not stale("a.j2", "{# version: 4 #}\nNew words\n", accepted)
    assert not stale("a.j2", "{# version: 3 #}\nOld words\n", accepted)
    assert stale("b.j2", "No version\n", accepted)
    assert version_of("{# version: 12 #}\nWords") == 12
    assert version_of("Words\n{# version: 12 #}") is None


def test_nothing_of_a_paraphrase_but_its_words_is_sent(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        text = paraphrased(number, tmp_path)
        assert not [word for word in ("version", "language model", "clinician", "reworded") if word in text]


def test_the_version_of_a_template_is_never_sent(tmp_path: Path) -> None:
    for request in (*of_scans().values(), *with_checklists().values(), *with_places().values(), *of_questions(tmp_path).values()):
        assert "version" not in written(request)


def test_frozen_prompts_offer_every_option_once_under_its_letter(tmp_path: Path) -> None:
    text = written(of_questions(tmp_path)["choice"])
    assert re.findall(r"^([A-Z])\. (.*)$", text, re.MULTILINE) == list(zip("ABC", OPTIONS, strict=True))
