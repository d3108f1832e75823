"""Readers beside models: without a rank, and compared on the questions that they answered."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fixtures.reader import ANSWER, MODEL, ROUND, export_of, make_round, put_export, responses_of_reader, write_asked, write_results
from fixtures.report import parts_of
from neuralmedbench.files.result_tables import read_results
from neuralmedbench.recording.reader_answers import import_readers
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import PRIOR, by_measure
from neuralmedbench.report.page import templates
from neuralmedbench.report.source import with_marks
from neuralmedbench.tables.contrasts import model_pairs, reader_rows
from neuralmedbench.tables.first_screen import badges
from neuralmedbench.tables.leaderboard import leaderboard_rows
from neuralmedbench.tables.rates import rate_rows
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.write import write_tables

READERS = tuple(f"reader-{ROUND}-{number}" for number in (1, 2))


def as_model(rows: list[Response]) -> list[Response]:
    """Let the model answer as the reader did, the choice wrongly, and the free question in the words of the reference."""
    other = {"b/choice": "ANSWER: B\nCONFIDENCE: 1", "b/free": f"ANSWER: {ANSWER}\nCONFIDENCE: 1"}
    return [replace(row, model=MODEL, text=other.get(row.item_id, row.text)) for row in rows]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A run with one model, one reader who answered all and one who answered half of it."""
    root: Path = tmp_path_factory.mktemp("run")
    items = write_asked(root)
    folder, frozen = make_round(root, readers=2)
    put_export(folder, export_of(frozen, items), "1.json")
    half = export_of(frozen, items, reader=1) | {"complete": False}
    half["rater"]["simulated"], half["items"] = False, half["items"][:4]
    put_export(folder, half, "2.json")
    import_readers(folder, config=root / "config", data=root / "data")
    responses = {name: responses_of_reader(root, name) for name in READERS}
    return write_results(root, {MODEL: as_model(responses[READERS[0]]), **responses})


def test_readers_are_in_the_leaderboard_as_people_without_a_rank(study: Study) -> None:
    rows = {row["model"]: row for row in leaderboard_rows(study, model_pairs(study))}
    assert list(rows) == [MODEL, *READERS, "prior"]
    assert rows[MODEL]["rank"] == 1
    assert [rows[name].get("rank") for name in READERS] == [None, None]
    assert [rows[name]["reader"] for name in (MODEL, *READERS)] == [None, "simulated", "clinician"]
    assert [rows[name]["title"] for name in READERS] == [f"Simulated reader {ROUND}-1", f"Reader {ROUND}-2 (clinician)"]
    # all items are expected of a reader once; what was not shown is missing, with both bounds
    assert [(rows[name]["expected"], rows[name]["missing"]) for name in READERS] == [(8, 1), (8, 4)]
    assert [rows[READERS[1]][name] for name in ("pass1", "pass1_low", "rubric", "main_condition", "interval")] == [None] * 4 + ["none"]
    assert rows[READERS[1]]["best_case"] - rows[READERS[1]]["worst_case"] == pytest.approx(0.5)
    assert rows[READERS[0]]["unparsable"] == 0
    assert "a person: no rank; 4 of 8 items answered" in rows[READERS[1]]["note"]
    assert "a program in the place of a reader" in rows[READERS[0]]["note"]


def test_reader_and_model_are_compared_on_the_same_questions(study: Study) -> None:
    rows = by_measure([row for row in reader_rows(study) if not row.slice], "other")
    found = {place[1:]: of_reader for place, of_reader in rows.items() if "pass1_difference" in of_reader}
    assert set(found) == {(first, second) for first in READERS for second in (MODEL, *READERS) if first != second}
    whole = found[READERS[0], MODEL]
    rate, difference, seconds = (whole[name] for name in ("pass1_patients", "pass1_difference", "seconds_median"))
    # of a free answer nobody but a grader can tell whether it is right; all the others are, and the model misses the choice
    assert (rate.n_items, rate.value) == (7, 1.0)
    assert (difference.value, difference.n_patients) == (pytest.approx(1 / 6), 6), "the choice is the only item of its patient"
    assert difference.value == pytest.approx(rate.value - rows["b", MODEL, READERS[0]]["pass1_patients"].value)
    assert (difference.other_arm, difference.family, seconds.value) == ("full", "", 30.0)
    assert {row.n_items for key, of_reader in found.items() if READERS[1] in key for row in of_reader.values()} <= {3, 4}
    assert {(row.slice, row.value_of_slice) for row in reader_rows(study)} >= {("level", "dialogue"), ("family", "lesion_recognition")}
    places = [(row.model, row.other, row.slice, row.value_of_slice, row.measure) for row in reader_rows(study)]
    assert len(places) == len(set(places)), "no row is written twice"


def test_the_page_shows_both_rates_beside_their_difference(study: Study, tmp_path: Path) -> None:
    write_tables(study, tmp_path, tmp_path / "metrics.json")
    shown = ("pairs", "revisions", "contamination", "readers")
    tables = {name: with_marks(rows) for name, rows in read_results(tmp_path, ("leaderboard", *shown)).items()}
    titles = {name: model.title for name, model in study.models.items()}
    environment = templates(json.loads((tmp_path / "notes.json").read_text(encoding="utf-8")))
    # the eight questions of this round are of fewer patients than a line of the page is about
    environment.globals["SHOWN_FROM"] = 0
    source = SimpleNamespace(notes={"min_difference": {}}, provenance={})
    page = environment.get_template("blocks/pairs.html.j2").render(tables=tables, titles=titles, looks={}, pictured=True, source=source)
    part = parts_of(page)["readers"]
    rows = re.findall(r"<tr .*?</tr>", part, flags=re.DOTALL)
    lines = {" ".join(re.sub(r"<[^>]+>", " ", row).split()): row for row in rows}
    assert "Simulated reader h01-1 all Zeta VLM 100 % 61–100 +17 −26 to +100 30.00 7 6" in lines
    assert "Zeta VLM all Simulated reader h01-1 83 % 28–100 – – 7 6" in lines
    # a checklist may not name a number of a simulated reader as one of people
    named = {line for line, row in lines.items() if "data-element" in row}
    assert named == {line for line in lines if "Simulated reader" not in line} != set()
    assert "Simulated readers are programs; their numbers are not about people." in part


def test_how_many_readers_there_are_changes_nothing_between_models(study: Study) -> None:
    scores, responses = study.benchmarks["b"].scores, study.benchmarks["b"].responses
    copies = {
        "other": [replace(row, model="other", passed=row.item_id == "b/choice") for row in scores[MODEL]],
        "third": [replace(row, model="third", passed=row.item_id == "b/why") for row in scores[MODEL]],
    }
    benchmark = replace(study.benchmarks["b"], scores={**scores, **copies}, sampled=dict.fromkeys((*scores, *copies), True))
    models = study.models | dict.fromkeys(copies, study.models[MODEL])
    alone = {name: model for name, model in models.items() if name not in READERS}
    without = replace(benchmark, scores={name: benchmark.scores[name] for name in alone}, sampled=dict.fromkeys(alone, True))

    def corrected(one: Study) -> dict[tuple[str, str], float | None]:
        return {(row.model, row.other): row.p_corrected for row, _ in model_pairs(one)["b"] if not {row.model, row.other} & set(READERS)}

    assert responses.keys() == {MODEL, *READERS}
    assert corrected(replace(study, models=models, benchmarks={"b": benchmark})) == corrected(
        replace(study, models=alone, benchmarks={"b": without})
    )


def test_what_a_reader_was_not_shown_is_no_missing_answer_of_the_run(study: Study) -> None:
    rows = leaderboard_rows(study, model_pairs(study))
    answers = next(badge for badge in badges(study, {"leaderboard": rows}) if badge["name"] == "Answers")
    assert (answers["state"], answers["text"]) == ("ok", "complete")


def test_rates_of_a_reader_stand_only_where_all_was_answered(study: Study) -> None:
    rows = [row for row in rate_rows(study) if row["measure"] == "pass1" and row["model"] != PRIOR]
    assert {row["model"] for row in rows if row["slice"] == "all"} == {MODEL}
    assert {row["left_out"] for row in rows if row["model"] in READERS} == {0}
    assert {row["model"] for row in rows if row["slice"] == "level"} >= {MODEL, READERS[0]}
