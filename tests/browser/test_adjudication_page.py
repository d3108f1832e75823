"""An adjudicator's page in a real browser: it asks for the axes to decide, shows the ratings, and its export is imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.agreement import filled
from fixtures.chromium import CHROMIUM, browser
from fixtures.rating import form, write_rated_study
from neuralmedbench.config.workflow import read_run
from neuralmedbench.ratings.adjudication import freeze_stored_adjudication
from neuralmedbench.ratings.folders import write_round
from neuralmedbench.ratings.imports import import_round
from neuralmedbench.ratings.rounds import RoundMaterial, freeze_round
from neuralmedbench.recording.reader_answers import rated_answers
from neuralmedbench.records.scores import response_key, text_digest

FORM = form(responses=4, repeats=0, controls=0)
FIRST = dict.fromkeys(FORM.axes, 2)
SEEN = """({
  axes: [...document.querySelectorAll("fieldset[data-axis]")].map((one) => one.dataset.axis),
  given: [...document.querySelectorAll(".given")].map((one) => one.textContent),
  note: document.getElementById("disagree").textContent,
  count: document.getElementById("count").textContent,
  reveal: document.getElementById("reveal") && document.getElementById("reveal").textContent,
  errors: document.querySelectorAll("fieldset.errors").length,
})"""

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


def test_an_adjudicator_decides_the_lines_in_question_and_nothing_else(tmp_path: Path) -> None:
    write_rated_study(tmp_path, patients=1)
    candidates = rated_answers(read_run(folder=tmp_path / "config"), FORM.rounds.families, tmp_path)
    folder = tmp_path / "data" / "ratings" / "r01"
    round_ = freeze_round("r01", RoundMaterial(FORM, candidates, [], root=tmp_path))
    write_round(folder, round_)
    for packet, values in zip(round_.key.packets, (FIRST, FIRST | {"dx_correct": 0, "reasoning": 4}), strict=True):
        whole = filled(packet, FORM.rubric, values, rater={"id": packet.rater, "simulated": True})
        (folder / f"rating_{packet.rater}.json").write_text(json.dumps(whole))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        write_round(folder / "adjudication", freeze_stored_adjudication(folder, "adjudication", RoundMaterial(FORM, candidates, [])))
    with browser(tmp_path) as chromium:
        chromium.open(folder / "adjudication" / "packets" / "adjudicator.html")
        seen = chromium.run(SEEN)
        assert seen["axes"] == ["dx_correct", "reasoning"]
        assert set(seen["given"]) in (
            {"Rater A: 2 · Rater B: 0", "Rater A: 2 · Rater B: 4"},
            {"Rater A: 0 · Rater B: 2", "Rater A: 4 · Rater B: 2"},
        )
        assert seen["note"].startswith("The raters of this answer disagree here.")
        assert (seen["reveal"], seen["errors"]) == ("Lock dx correct and show the reference", 0)
        chromium.press("3c")
        assert chromium.run(SEEN)["count"] == "answer 1 of 4, 1 finished"
        progress = chromium.take("#save")
        chromium.run("document.getElementById('clear').click()")
        chromium.give("#resume", progress)
        chromium.until("document.getElementById('count').textContent.includes('1 finished')")
        for _ in range(3):
            chromium.press("43n")
        file = chromium.take("#export-json")
        assert chromium.complaints == []
    (folder / file.name).write_bytes(file.read_bytes())
    texts = {response_key(one.response): text_digest(one.response.text) for one in candidates}
    rows = [row for row in import_round(folder, FORM, texts) if row.adjudicated]
    assert sorted((row.axis, row.value or 0) for row in rows) == [("dx_correct", value) for value in (3, 4, 4, 4)] + [
        ("reasoning", value) for value in (0, 3, 3, 3)
    ]
    assert {(row.rater_id, row.simulated, row.stale) for row in rows} == {("adjudicator", True, False)}
