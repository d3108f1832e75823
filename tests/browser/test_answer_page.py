"""A reader's page in a real browser: open, answer every kind of question, save, resume, export, import, and appear in the leaderboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fixtures.chromium import CHROMIUM, Browser, browser
from fixtures.reader import DIALOGUE, ROUND, filled, make_round, responses_of_reader, write_asked, write_results
from fixtures.tables import HOSTILE
from neuralmedbench.ratings.answering.answer_rounds import FrozenReaderRound
from neuralmedbench.recording.reader_answers import import_readers
from neuralmedbench.records.items import Item
from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.tables.contrasts import model_pairs
from neuralmedbench.tables.leaderboard import leaderboard_rows

READER = f"{ROUND}-1"
STATE = """({
  title: document.title,
  count: document.getElementById("count").textContent,
  asked: [...document.querySelectorAll("pre.asked")].map((one) => one.textContent),
  answered: [...document.querySelectorAll("pre.answer")].map((one) => one.textContent),
  pictures: [...document.querySelectorAll(".viewer img")].map((one) => [one.dataset.sha256, one.naturalWidth]),
  names: [...new Set([...document.querySelectorAll(".form [name]")].map((one) => one.name))],
  first: document.getElementById("first")?.textContent ?? "",
  locked: document.querySelector(".form")?.disabled ?? false,
  said: document.getElementById("said").textContent,
  injected: document.querySelectorAll("main script, main img[onerror]").length,
})"""
SET = """((name, value) => {
  const element = document.querySelector(`.form [name="${name}"]`);
  element.value = value;
  element.dispatchEvent(new Event(element.tagName === "SELECT" ? "change" : "input"));
})"""
REFUSED = """new Promise((done) => {
  document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
  fetch("https://example.org/").catch(() => undefined);
})"""

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


def put(chromium: Browser, name: str, value: object) -> None:
    """Fill in one field as a person would."""
    chromium.run(f"{SET}({json.dumps(name)}, {json.dumps(str(value))})")


def fill(chromium: Browser, item: Item, turn: int = 0) -> None:
    """Fill in the answers of the reader in the fixtures; a letter by its key."""
    value: dict[str, Any] = filled(item, turn)
    section = "LESION" if item.family == "lesion_recognition" else "DIFFERENTIAL"
    for rank, one in enumerate(value["candidates"], start=1):
        for part, words in one.items():
            put(chromium, f"{section}-{rank}-{part}", words)
    for name, words in value["texts"].items():
        put(chromium, name, words)
    for name, label in value["fields"].items():
        labels = json.loads(item.answer_schema)["properties"][name]["enum"]
        put(chromium, f"field-{name}", labels.index(label))
    if value["choice"]:
        chromium.press(value["choice"].lower())
    put(chromium, "CONFIDENCE", value["confidence"])


def to(chromium: Browser, place: int) -> dict[str, Any]:
    """Go to a question by its index."""
    chromium.run("document.activeElement.blur()")
    chromium.press("p" * 10 + "n" * place)
    return dict(chromium.run(STATE))


def test_a_reader_answers_saves_resumes_and_exports_what_becomes_a_row_of_the_leaderboard(tmp_path: Path) -> None:
    items = {row.item_id: row for row in write_asked(tmp_path)}
    folder, frozen = make_round(tmp_path)
    page, packet = folder / "packets" / f"{READER}.html", frozen.key.packets[0]
    order = [items[packet.items[name].item_id] for name in packet.order]
    place = {item.item_id.removeprefix("b/"): number for number, item in enumerate(order)}
    with browser(tmp_path) as chromium:
        chromium.open(page)
        assert chromium.run(STATE)["title"] == "Questions"
        # the second question on a case waits for the first
        assert to(chromium, place["ddx-2"])["first"] == f"Answer question {place['ddx'] + 1} first"
        assert chromium.run(STATE)["asked"] == []
        for name in ("ddx", "lesion", "why", "choice"):
            to(chromium, place[name])
            fill(chromium, order[place[name]])
        seen = to(chromium, place["lesion"])
        assert seen["count"] == f"question {place['lesion'] + 1} of 8, 4 finished"
        assert [width for _, width in seen["pictures"]] == [48]
        assert seen["pictures"][0][0] == order[place["lesion"]].images[0].sha256
        assert {"LESION-1-name", "LESION-1-for", "LOCATION", "SIDE", "FINDINGS", "CONFIDENCE"} <= set(seen["names"])
        # a dialogue shows one round after the other, and locks the answered ones
        talk = order[place[DIALOGUE]]
        first = to(chromium, place[DIALOGUE])
        assert len(first["asked"]) == 1
        assert first["pictures"] == []
        assert "Round 1 of 2" in first["asked"][0]
        assert chromium.run("document.getElementById('lock').disabled") is True
        fill(chromium, talk)
        chromium.run("for (let second = 0; second < 500; second += 1) FORM.tick(recordOf(current()))")
        chromium.run("document.getElementById('lock').click()")
        second = chromium.run(STATE)
        assert len(second["asked"]) == 2
        assert len(second["pictures"]) == 1
        assert second["answered"] == ["1. Glioma\nfindings: Aphasia."]
        fill(chromium, talk, 1)
        chromium.run("for (let second = 0; second < 100; second += 1) FORM.tick(recordOf(current()))")
        progress = chromium.take("#save")
        # survives a reload, is gone when cleared, is restored from the file; the file of another packet is refused
        chromium.open(page)
        assert "5 finished" in chromium.run(STATE)["count"]
        chromium.run("document.getElementById('clear').click()")
        chromium.open(page)
        assert "0 finished" in chromium.run(STATE)["count"]
        (tmp_path / "foreign.json").write_text(progress.read_text().replace(packet.packet_id, "p"))
        chromium.give("#resume", tmp_path / "foreign.json")
        chromium.until("document.getElementById('said').textContent.includes('another packet')")
        chromium.give("#resume", progress)
        chromium.until("document.getElementById('count').textContent.includes('5 finished')")
        assert to(chromium, place[DIALOGUE])["answered"] == second["answered"]
        chromium.run("document.getElementById('export-json').click()")
        assert chromium.run(STATE)["said"].startswith("3 questions are not answered")
        # the rest: a free answer with hostile text, fields, and a reader who cannot tell
        to(chromium, place["free"])
        fill(chromium, order[place["free"]])
        put(chromium, "ANSWER", f"{HOSTILE} a stroke")
        to(chromium, place["fields"])
        fill(chromium, order[place["fields"]])
        assert to(chromium, place["ddx-2"])["first"] == ""
        chromium.run("document.getElementById('cannot').click()")
        assert "8 finished" in chromium.run(STATE)["count"]
        # its case was shown again later: it is locked, and no more time counts
        assert to(chromium, place["ddx"])["locked"] is True
        assert (
            chromium.run(
                "(() => { const before = recordOf(current()).turns[0].seconds; FORM.tick(recordOf(current())); return recordOf(current()).turns[0].seconds - before; })()"
            )
            == 0
        )
        file, table = chromium.take("#export-json"), chromium.take("#export-csv")
        done = chromium.run(STATE)
        assert (done["title"], done["injected"], done["said"]) == ("Questions", 0, "")
        assert chromium.complaints == []
        assert chromium.run(REFUSED) == "connect-src"
    whole = json.loads(file.read_text())
    assert (whole["complete"], whole["rater"]["simulated"]) == (True, True)
    assert [entry["item_id"] for entry in whole["items"]] == packet.order
    seconds = [turn["seconds_active"] for turn in whole["items"][place[DIALOGUE]]["turns"]]
    assert 500 <= seconds[0] < 700
    assert 100 <= seconds[1] < 300
    lines = table.read_text().splitlines()
    assert lines[0].endswith("complete,item_id,position,turn,status,locked,seconds_active,field,value")
    assert sum(line.endswith(",name.1,Acute ischaemic stroke") for line in lines) == 4
    imported_and_scored(tmp_path, folder, frozen, (progress, file), seconds)


def imported_and_scored(root: Path, folder: Path, frozen: FrozenReaderRound, files: tuple[Path, ...], seconds: list[float]) -> None:
    """Import the files and read the tables."""
    for path in files:
        (folder / path.name).write_bytes(path.read_bytes())
    (found,) = import_readers(folder, config=root / "config", data=root / "data")
    assert (found.model, found.shown, found.coverage.given, found.coverage.missing) == (f"reader-{READER}", 8, 8, 0)
    responses = responses_of_reader(root, f"reader-{READER}")
    study = write_results(root, {f"reader-{READER}": responses})
    scores = {row.item_id.removeprefix("b/"): row for row in study.benchmarks["b"].scores[f"reader-{READER}"]}
    assert {row.parse_status for row in scores.values()} == {ParseStatus.STRICT}
    assert {name for name, row in scores.items() if row.passed} == {"ddx", "lesion", "why", DIALOGUE, "choice", "fields"}
    assert scores["ddx-2"].abstained
    assert scores["ddx"].differential == ("Acute ischaemic stroke", "Glioma, high grade, left")
    assert scores[DIALOGUE].turn_passes == (False, True)
    assert {row.latency_s for row in responses if row.item_id == f"b/{DIALOGUE}"} == {float(sum(seconds))}
    row = leaderboard_rows(study, model_pairs(study))[0]
    assert (row["title"], row.get("rank"), row["abstained"]) == (f"Simulated reader {READER}", None, 1)
    # only a grader can judge the free answer, so one of eight is missing: the bounds are known, the rate is not
    assert (row["pass1"], row["worst_case"], row["best_case"]) == (None, pytest.approx(6 / 8), pytest.approx(7 / 8))
    assert len(frozen.key.packets) == 1
