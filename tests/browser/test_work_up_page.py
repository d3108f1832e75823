"""A work-up by a person in a real browser, with the keyboard alone: what comes back has the measures that were worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fixtures.chromium import CHROMIUM, Browser, browser
from fixtures.reader import ROUND, make_round, responses_of_reader, write_asked, write_results
from neuralmedbench.models.conversation import next_messages
from neuralmedbench.recording.reader_answers import import_readers
from neuralmedbench.records.items import Item, Strategy
from neuralmedbench.tables.contrasts import model_pairs
from neuralmedbench.tables.leaderboard import leaderboard_rows
from neuralmedbench.tables.workup import work_up_rows

READER = f"reader-{ROUND}-1"
SEEN = """({
  asked: [...document.querySelectorAll("pre.asked")].map((one) => one.textContent),
  pictures: document.querySelectorAll(".viewer img").length,
  left: document.querySelector("[data-section=REQUEST] legend")?.textContent ?? "",
  said: document.getElementById("said").textContent,
  focus: document.activeElement.className,
  count: document.getElementById("count").textContent,
  names: [...document.querySelectorAll(".form input[name^=stated]")].map((one) => one.value),
})"""

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


def to(chromium: Browser, wanted: str) -> None:
    """Go to an element with the tabulator."""
    for _ in range(80):
        if chromium.run(f"document.activeElement.matches({json.dumps(wanted)})"):
            return
        chromium.key("Tab", 9)
    pytest.fail(f"the tabulator does not reach {wanted}")


def write(chromium: Browser, name: str, text: str) -> None:
    """Write over what a field holds."""
    to(chromium, f"[name='{name}']")
    chromium.run("document.activeElement.select()")
    chromium.press(text)


def enter(chromium: Browser) -> None:
    chromium.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    chromium.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)


def ask(chromium: Browser, wish: str) -> dict[str, object]:
    write(chromium, "request", wish)
    enter(chromium)
    return dict(chromium.run(SEEN))


def work_up(chromium: Browser) -> None:
    """Ask for what the case does not have, for a scan, and for the scan again; then answer."""
    write(chromium, "stated-1", "Glioma")
    refused = ask(chromium, "PET")
    assert "has a probability" in str(refused["said"])
    write(chromium, "probability-1", "0.6")
    write(chromium, "stated-2", "Acute ischaemic stroke")
    write(chromium, "probability-2", "0.2")
    unlisted = ask(chromium, "everything you have")
    assert "Nothing was used up" in str(unlisted["said"])
    assert unlisted["left"] == "Ask for an examination (6 left)"
    absent = ask(chromium, "pet")
    assert (absent["left"], absent["pictures"], absent["focus"]) == ("Ask for an examination (5 left)", 0, "asked")
    assert absent["names"] == ["Glioma", "Acute ischaemic stroke", "", ""]
    shown = ask(chromium, "FLAIR")
    assert shown["pictures"] == 1
    write(chromium, "probability-1", "0.1")
    write(chromium, "probability-2", "0.7")
    again = ask(chromium, "FLAIR, axial")
    assert again["left"] == "Ask for an examination (3 left)"
    write(chromium, "DIFFERENTIAL-1-name", "Acute ischaemic stroke")
    write(chromium, "FINDINGS", "A bright area.")
    write(chromium, "CONFIDENCE", "0.7")


def test_a_person_works_up_a_case_by_keyboard_and_stands_beside_the_models(tmp_path: Path) -> None:
    items = {row.item_id: row for row in write_asked(tmp_path, "workup")}
    folder, frozen = make_round(tmp_path, Strategy.WORKUP)
    packet = frozen.key.packets[0]
    order = [packet.items[name].item_id for name in packet.order]
    with browser(tmp_path) as chromium:
        chromium.open(folder / "packets" / f"{ROUND}-1.html")
        if order[0] != "b/alpha":
            chromium.press("n")
        work_up(chromium)
        to(chromium, "#save")
        enter(chromium)
        progress = chromium.landed()
        asked = chromium.run(SEEN)["asked"]
        # what was asked for survives a reload and comes back from the file
        chromium.open(folder / "packets" / f"{ROUND}-1.html")
        assert chromium.run(SEEN)["asked"] == asked
        chromium.run("document.getElementById('clear').click()")
        chromium.give("#resume", progress)
        chromium.until("document.getElementById('count').textContent.includes('1 finished')")
        chromium.run("document.activeElement.blur()")
        chromium.press("pn" if order[0] == "b/alpha" else "p")
        to(chromium, "#cannot")
        chromium.press(" ")
        assert "2 finished" in chromium.run(SEEN)["count"]
        to(chromium, "#export-json")
        enter(chromium)
        file = chromium.landed()
        assert chromium.complaints == []
    (folder / file.name).write_bytes(file.read_bytes())
    check_messages(asked, items["b/alpha"], tmp_path, folder)


def check_messages(asked: list[str], item: Item, root: Path, folder: Path) -> None:
    """Import the file; the page showed what a model with the same requests is sent."""
    (found,) = import_readers(folder, config=root / "config", data=root / "data")
    assert (found.model, found.shown, found.coverage.given, found.coverage.missing) == (READER, 2, 2, 0)
    responses = {row.item_id: row for row in responses_of_reader(root, READER)}
    turns = responses[item.item_id].turns
    assert turns[:3] == (
        "CANDIDATES:\n1. Glioma | 0.6000\n2. Acute ischaemic stroke | 0.2000\nREQUEST: PET",
        "CANDIDATES:\n1. Glioma | 0.6000\n2. Acute ischaemic stroke | 0.2000\nREQUEST: FLAIR",
        "CANDIDATES:\n1. Glioma | 0.1000\n2. Acute ischaemic stroke | 0.7000\nREQUEST: FLAIR, axial",
    )
    study = write_results(root, {READER: list(responses.values())})
    (benchmark,) = study.benchmarks.values()
    (request,) = [row for row in benchmark.requests if (row.item_id, row.arm, row.strategy) == (item.item_id, "full", "workup")]
    messages = next_messages(request, turns[:3], None)
    assert messages is not None
    assert asked == [message.text.strip() for message in messages if message.role == "user"]
    rows = {(row.measure, row.value_of_slice): row for row in work_up_rows(study)}
    of_one = {name: rows[name, ""].value for name in ("essential_recall", "not_needed", "invalid_requests", "brier", "log_loss")}
    # the second case was ended without a request or a diagnosis: it asked for no essential examination, and states nothing
    assert of_one == {
        "essential_recall": pytest.approx((1 / 2 + 0) / 2),
        "not_needed": pytest.approx(0),
        "invalid_requests": pytest.approx(2 / 3),
        "brier": pytest.approx(0.3**2 + 0.1**2),
        "log_loss": pytest.approx(-math.log(0.7)),
    }
    assert [rows["mass", str(turn)].value for turn in (1, 2, 3, 4)] == [pytest.approx(value) for value in (0.2, 0.2, 0.7, 0.7)]
    assert (rows["turns_to_diagnosis", ""].value, rows["turns_to_diagnosis", ""].left_out) == (pytest.approx(3), 1)
    assert rows["mass_moved_right", ""].value == pytest.approx(1)
    assert rows["leader_changed_without_evidence", ""].value == pytest.approx(0)
    row = leaderboard_rows(study, model_pairs(study))[0]
    assert row["note"].startswith(
        "answers imported; a program in the place of a reader: no rank; 2 of 2 items worked up, see topic workup of measures.csv"
    )
    assert row["pass1"] is None
