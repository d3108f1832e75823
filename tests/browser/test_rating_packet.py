"""A rater's page in a real browser: open, rate, save, resume, export, import; a hostile answer stays text."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.chromium import CHROMIUM, browser
from fixtures.rating import form, write_rated_study
from fixtures.tables import HOSTILE
from neuralmedbench.config.workflow import read_run
from neuralmedbench.ratings.folders import write_round
from neuralmedbench.ratings.imports import import_round
from neuralmedbench.ratings.rounds import FrozenRound, RoundMaterial, freeze_round
from neuralmedbench.recording.reader_answers import rated_answers
from neuralmedbench.records.scores import Rating, response_key, text_digest

FORM = form(responses=8, raters=1, raters_per_response=1, repeats=0.25, controls=1)
AXES = list(FORM.axes)
STATE = """({
  title: document.title,
  count: document.getElementById("count").textContent,
  answer: document.querySelector("pre.answer").textContent,
  asked: document.querySelector("pre.asked").textContent,
  picture: document.querySelector(".viewer img").dataset.sha256,
  width: document.querySelector(".viewer img").naturalWidth,
  caption: document.querySelector(".viewer figcaption").textContent,
  checked: [...document.querySelectorAll("fieldset[data-axis] input:checked")].map((input) => [input.name, input.value]),
  locked: [...document.querySelectorAll("fieldset[data-axis] input:disabled")].map((input) => input.name),
  reference: document.getElementById("reference").textContent,
  injected: document.querySelectorAll("main script, main img[onerror]").length,
})"""
REFUSED = """new Promise((done) => {
  document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
  fetch("https://example.org/").catch(() => undefined);
})"""

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


def made(root: Path) -> tuple[Path, FrozenRound, dict[Any, str]]:
    """Return the folder of a round with one rater, the round, and the current texts of all answers."""
    write_rated_study(root, patients=2, hostile=True)
    candidates = rated_answers(read_run(folder=root / "config"), FORM.rounds.families, root)
    frozen = freeze_round("r01", RoundMaterial(FORM, candidates, [], root=root, secret="07"))
    write_round(root / "data" / "ratings" / "r01", frozen)
    return root / "data" / "ratings" / "r01", frozen, {response_key(one.response): text_digest(one.response.text) for one in candidates}


def imported(folder: Path, file: Path, texts: dict[Any, str]) -> list[Rating]:
    """Put an export into the folder of its round and import it."""
    (folder / file.name).write_bytes(file.read_bytes())
    return import_round(folder, FORM, texts)


def test_a_rater_opens_rates_saves_resumes_and_exports_what_the_import_reads(tmp_path: Path) -> None:
    folder, frozen, texts = made(tmp_path)
    packet = frozen.key.packets[0]
    page = folder / "packets" / "rater-1.html"
    with browser(tmp_path) as chromium:
        chromium.open(page)
        seen = chromium.run(STATE)
        assert seen["title"] == "Rating of answers"
        assert seen["count"] == f"answer 1 of {len(packet.order)}, 0 finished"
        assert (seen["width"], seen["caption"]) == (160, "1 of 2: FLAIR, axial")
        assert seen["checked"] == []
        assert seen["asked"].endswith("What is the most likely diagnosis?")
        # the reference comes after the first judgement, which it locks
        assert "Reference:" not in seen["reference"]
        assert chromium.run("document.getElementById('reveal').disabled") is True
        chromium.press("3")
        chromium.run("document.getElementById('reveal').click()")
        told = chromium.run(STATE)
        assert told["reference"].startswith("Reference: ")
        assert set(told["locked"]) == {"dx_correct"}
        # a key for every axis: the locked one is skipped, the last but one cannot be judged
        chromium.press("2" * 7 + "c4]")
        rated = chromium.run(STATE)
        assert dict(rated["checked"]) == {**dict.fromkeys(AXES[1:8], "2"), "dx_correct": "3", "would_sign": "none", "rater_confidence": "4"}
        assert rated["caption"] == "2 of 2: T1w, axial"
        chromium.run("document.querySelector('[name=error-missed_lesion]').click()")
        chromium.run("document.querySelector('[name=significant-missed_lesion]').click()")
        chromium.run("(e => { e.value = '=1+1'; e.dispatchEvent(new Event('input')) })(document.getElementById('comment'))")
        progress = chromium.take("#save")
        # survives a reload, is gone when cleared, is restored from the file
        chromium.open(page)
        assert chromium.run(STATE)["checked"] == rated["checked"]
        chromium.run("document.getElementById('clear').click()")
        chromium.open(page)
        assert chromium.run(STATE)["checked"] == []
        foreign = progress.read_text().replace(packet.packet_id, "p")
        for name, text, words in (("torn.json", "[1", "not one that this form saved"), ("foreign.json", foreign, "another packet")):
            (tmp_path / name).write_text(text)
            chromium.give("#resume", tmp_path / name)
            chromium.until(f"document.getElementById('said').textContent.includes('{words}')")
        chromium.give("#resume", progress)
        chromium.until("document.getElementById('count').textContent.includes('1 finished')")
        assert chromium.run(STATE)["count"] == f"answer 2 of {len(packet.order)}, 1 finished"
        chromium.run("document.getElementById('export-json').click()")
        assert f"{len(packet.order) - 1} answers are not finished" in chromium.run("document.getElementById('said').textContent")
        # the others: one that cannot be judged, all the rest with the lowest values
        chromium.run("document.getElementById('cannot').click()")
        texts_seen = []
        for _ in packet.order[2:]:
            chromium.press("n" + "1" * len(AXES))
            texts_seen.append(chromium.run(STATE)["answer"])
        done = chromium.run(STATE)
        assert done["count"].endswith(f"{len(packet.order)} finished")
        assert any(HOSTILE in text for text in texts_seen)
        assert (done["title"], done["injected"]) == ("Rating of answers", 0)
        file, table = chromium.take("#export-json"), chromium.take("#export-csv")
        assert chromium.complaints == []
        assert chromium.run(REFUSED) == "connect-src"
    whole = json.loads(file.read_text())
    assert whole["rater"]["simulated"] is True
    assert [item["item_id"] for item in whole["items"]] == packet.order
    rows = imported(folder, file, texts)
    assert Counter((str(row.part), row.axis) for row in rows) == Counter(
        [(packet.items[name].part, axis) for name in packet.order for axis in AXES]
        + [(packet.items[packet.order[0]].part, "error.missed_lesion")]
    )
    assert {str(row.part) for row in rows} == {"sample", "again", "control_right", "control_wrong"}
    assert {(row.stale, row.simulated) for row in rows} == {(False, True)}
    # the other answers to the first case came after its reference was opened
    case = packet.items[packet.order[0]].item_id.rpartition("/")[0]
    assert {row.informed for row in rows if row.axis == "dx_correct" and row.item_id.startswith(case)} == {False, True}
    assert {row.informed for row in rows if not row.item_id.startswith(case)} == {False}
    judged = {axis: {row.value for row in rows if row.axis == axis} for axis in ("dx_correct", "would_sign", "error.missed_lesion")}
    assert judged == {"dx_correct": {3.0, None, 1.0}, "would_sign": {None, 1.0}, "error.missed_lesion": {2.0}}
    assert "=1+1" in file.read_text()
    assert "=1+1" not in table.read_text()
    # the table gives the same result, with the JSON and alone
    assert imported(folder, table, texts) == rows
    (folder / file.name).unlink()
    assert [replace(row, seconds=None) for row in import_round(folder, FORM, texts)] == [replace(row, seconds=None) for row in rows]
