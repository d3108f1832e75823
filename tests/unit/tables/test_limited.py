"""Tables of a limited run: only what was asked is expected, and there is no rank and no sentence of results."""

from __future__ import annotations

from pathlib import Path

from fixtures.tables import DEPTH, GRADERS, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.json_files import read_json
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Score, response_key
from neuralmedbench.tables.study import Study, read_study
from neuralmedbench.tables.write import write_tables

LIMIT = 4


def study_of(root: Path, limit: int) -> Study:
    settings = IntervalSettings(resamples=50)
    return read_study(root, [DEPTH], ["alpha"], GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=settings, limit=limit)


def test_a_limited_run_expects_what_it_asked_and_ranks_nobody(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), patients=6)
    everything = study_of(tmp_path, 0).benchmarks[DEPTH].outcomes
    asked = {item.item_id for item in everything.items[:LIMIT]}
    for record, kind in ((Response, "responses"), (Score, "scores")):
        path = tmp_path / "results" / kind / DEPTH / "alpha.parquet"
        rows = [row for row in read_records(path, record) if row.item_id in asked and row.arm == "full" and not row.repeat]
        write_records(path, record, rows, key=response_key)
    whole, limited = (study_of(tmp_path, limit) for limit in (0, LIMIT))
    for study, expected in ((whole, len(everything.items)), (limited, LIMIT)):
        write_tables(study, tmp_path / "tables", tmp_path / "metrics.json")
        row = read_json(tmp_path / "metrics.json")[DEPTH]["alpha"]
        assert "rank" not in row, "the whole run lacks answers, the limited one is no result"
        assert len(study.benchmarks[DEPTH].outcomes.items) == expected
    assert row["missing_fraction"] == 0
    board = (tmp_path / "tables" / "leaderboard.csv").read_text(encoding="utf-8")
    assert "no rank: limited to 4 answers per model, which shows that everything works but is no result" in board
    verdict = read_json(tmp_path / "tables" / "verdict.json")
    assert verdict["badges"][0] == {"name": "Limited run", "state": "warn", "text": "4 answers per model: no result"}
    assert verdict["sentences"][0].startswith("This run is limited to 4 answers per model")
    assert not [line for line in verdict["sentences"] if "rank" in line or "passes" in line]
