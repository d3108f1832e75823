"""Measure the import of a round of 10 raters x 1,000 answers on all axes of the form, and of the tables of agreement and raters from it.

Run on purpose (`python perf/rating_speed.py`), never a test. The round is invented: every rater sees every answer once and 15 % of them
again, there are two answers per patient, errors are marked, and occasionally an axis cannot be judged. The import is the command in a separate
process, from the exports to the table, including Python imports; the tables use the default number of resamples.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from fixtures.scoring import ITEM, answered  # noqa: E402
from neuralmedbench.config.pipeline import StatisticsConfig  # noqa: E402
from neuralmedbench.estimates.intervals import IntervalSettings  # noqa: E402
from neuralmedbench.files.tables import read_records, write_records  # noqa: E402
from neuralmedbench.ratings.form import RatingForm, read_form  # noqa: E402
from neuralmedbench.records.responses import Response  # noqa: E402
from neuralmedbench.records.scores import Rating, RatingPart, response_key, text_digest  # noqa: E402  # noqa: E402
from neuralmedbench.tables.clinicians.agreement import agreement_rows  # noqa: E402

FORM_FILE = ROOT / "config" / "rating.yaml"
AGAIN = 0.15


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raters", type=int, default=10)
    parser.add_argument("--answers", type=int, default=1_000, help="answers seen by every rater")
    return parser.parse_args(argv)


def invent_answers(number: int) -> list[Response]:
    """Invent answers of one model."""
    items = [replace(ITEM, item_id=f"demo/c{place}", case_id=f"c{place}", patient_id=f"p{place // 2}") for place in range(number)]
    return [replace(answered(f"answer {place}", item), patient_id=item.patient_id) for place, item in enumerate(items)]


def judgement(draw: random.Random, form: RatingForm, worth: float) -> dict[str, Any]:
    """Invent the rating of an answer."""
    scores = {
        name: axis.lowest + round(min(1.0, max(0.0, worth + draw.gauss(0, 0.15))) * (axis.highest - axis.lowest))
        for name, axis in form.axes.items()
        if draw.random() > 0.01
    }
    errors = [{"code": code, "significant": draw.random() < 0.5} for code in form.errors if draw.random() < 0.05]
    unjudged = [name for name in form.axes if name not in scores]
    return {"status": "rated", "scores": scores, "cannot_judge": unjudged, "errors": errors, "seconds_active": 40.0}


def write_round(folder: Path, form: RatingForm, answers: Sequence[Response], raters: int) -> None:
    """Write the key and one complete export per rater."""
    draw, packets = random.Random(1), []
    worth = [draw.random() for _ in answers]
    for number in range(raters):
        rater, digest = f"rater-{number + 1}", f"{number:064d}"
        again = draw.sample(range(len(answers)), round(AGAIN * len(answers)))
        shown = [*((place, "sample") for place in range(len(answers))), *((place, "again") for place in again)]
        items, rated = {}, []
        for position, (place, part) in enumerate(shown, start=1):
            row = answers[place]
            key = {name: getattr(row, name) for name in ("item_id", "arm", "strategy", "model", "revision", "repeat")}
            items[f"{part}{place}"] = {**key, "text_sha256": text_digest(row.text), "part": part, "stratum": "s", "probability": 0.5}
            rated.append({"item_id": f"{part}{place}", "position": position, **judgement(draw, form, worth[place])})
        packets.append({"packet_id": rater, "packet_sha256": digest, "rater": rater, "items": items, "order": list(items)})
        export = {"schema": "neuralmedbench.rating/1", "packet_id": rater, "packet_sha256": digest, "rubric": form.rubric}
        export |= {"rater": {"id": rater, "role": "", "years": None, "simulated": True}, "started": "", "exported": "", "complete": True}
        (folder / f"{rater}.json").write_text(json.dumps({**export, "items": rated}))
    key = {"schema": "neuralmedbench.rating_key/2", "round_id": folder.name, "rubric": form.rubric, "seed": 1, "secret": "ab"}
    (folder / "key.json").write_text(json.dumps({**key, "first_judgement": [], "strata": {}, "packets": packets}))


def run_import(scratch: Path, responses: Path) -> tuple[float, float, float]:
    """Run the command; return wall seconds, CPU seconds and peak memory in MiB."""
    command = [sys.executable, str(ROOT / "scripts" / "import_ratings.py"), "--rounds", str(scratch / "r01"), "--form", str(FORM_FILE)]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--responses", str(responses), "--out", str(scratch / "ratings.parquet")])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("import_ratings failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def make_tables(ratings: list[Rating], answers: Sequence[Response], form: RatingForm, resamples: int) -> tuple[float, float, int]:
    """Make both tables; return wall seconds, CPU seconds and number of rows."""
    items = [SimpleNamespace(item_id=row.item_id, patient_id=row.patient_id) for row in answers]
    study: Any = SimpleNamespace(
        ratings=ratings,
        sampled_ratings=[row for row in ratings if row.part is RatingPart.SAMPLE],
        benchmarks={"demo": SimpleNamespace(items=items, config=SimpleNamespace(reference_pool=()))},
        form=form,
        settings=IntervalSettings(resamples=resamples),
    )
    wall, cpu = time.perf_counter(), time.process_time()
    rows = agreement_rows(study)
    return time.perf_counter() - wall, time.process_time() - cpu, len(rows)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    form, answers, resamples = read_form(FORM_FILE), invent_answers(args.answers), StatisticsConfig().resamples
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "r01").mkdir()
        write_round(scratch / "r01", form, answers, args.raters)
        write_records(scratch / "responses.parquet", Response, answers, key=response_key)
        wall, cpu, memory = run_import(scratch, scratch / "responses.parquet")
        ratings = read_records(scratch / "ratings.parquet", Rating)
    table_wall, table_cpu, rows = make_tables(ratings, answers, form, resamples)
    figures = {
        "raters": args.raters,
        "answers": args.answers,
        "ratings": len(ratings),
        "import_wall_s": round(wall, 1),
        "import_cpu_s": round(cpu, 1),
        "import_mib": round(memory),
        "resamples": resamples,
        "table_rows": rows,
        "tables_wall_s": round(table_wall, 1),
        "tables_cpu_s": round(table_cpu, 1),
        "wall_s": round(wall + table_wall, 1),
    }
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
