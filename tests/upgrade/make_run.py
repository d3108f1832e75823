"""Make the runs of version 1 that `test_upgrade.py` upgrades: simulated patients, raters, reader and reviewer, and a made-up model.

They were made once, with the code of commit d8e717d and nothing else; what is needed of them is committed beside this file as `v1.tar.xz`:

    git worktree add --detach /tmp/v1 d8e717d
    cd /tmp/v1 && python <this file> --work /tmp/work --out <this folder>/v1.tar.xz

Everything is done by the commands that people had then, in the order in which they used them: cases are listed, looked at and signed, a model and
its graders are asked over a server on this machine, a reader answers a round of questions, raters rate a round of answers, an adjudicator decides,
the report is built. The pictures are drawn by a formula or simulated, the people in the notes are invented, who rated, read and signed is a program,
and every export says so. No answer of a real model and no word of a person is in it. The archive has two projects:

- `pictures/`: a benchmark of own pictures with notes, records and a signed review (`ward`), and an imported one (`mixed`) with choice, dialogue and
  open questions; with the private zone, ledgers, books, rounds, results and Snakemake's records.
- `scans/`: the benchmarks `demo-tiny`, as if its phantoms were patients, signed, and `demo-tiny-slices` with structured questions; without the
  private zone and without scans and pictures.

Do not make it again with later code: it stands for what people have on their disks. A later version of the files gets an archive of its own.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image

OLD = Path.cwd()
RUN, MIXED, SCANS = "config/upgrade.yaml", "config/upgrade-mixed.yaml", "config/upgrade-scans.yaml"
HERE = "@PROJECT@"
"""What stands in the archive for the folder of the project, which the index of own files names."""
LEFT_OUT = re.compile(
    r"(scripts|rules|profiles|envs|logs|data/README|results/README|results/report|results/figures|results/croissant|results/tables/paper)(/|\.|$)"
    r"|Snakefile|requirements|dvc|\.snakemake/(?!metadata)|.*/packets/rater-2|.*\.nii|.*/rates/"
)
"""What the code brings, what is made anew in every run, and what is large and of no interest here."""
OF_SCANS = re.compile(r"data/raw/|data/ingested/|\.snakemake/|.*/(png|review|sheets)/|.*\.(html|png)$|data/answers/")
"""What is left out of the project of scans beside that."""
NOTES = {
    "one": {
        "1": "Mrs Berenike Zumsteg (MRN 4471-2093), seen by Dr Odalys Quispe on 12 March 2031. A woman of 71 with sudden weakness of the left arm.",
        "2": "The weakness came within minutes. No fever.\n\nImpression: infarct.",
    },
    "two": {"1": "Mr Ignatius Vandermolen, born 3 April 1969. Headache for six weeks and one seizure on 2 May 2031."},
    "three": {"1": "A man of 34. Blurred vision of the right eye and numb legs, twice within a year."},
}
"""Of invented patients, by the name of their case."""
PICTURES = {"one/a.png": 1, "one/b.png": 2, "two/a.png": 3, "three/a.png": 4}
FILES = """path,case,patient,sequence,plane,date
one,one,Zumsteg-4471,,,2031-03-12
one/a.png,one,Zumsteg-4471,FLAIR,axial,2031-03-12
one/b.png,one,Zumsteg-4471,dwi,axial,2031-03-12
two,two,Vandermolen-88,,,2031-05-02
two/a.png,two,Vandermolen-88,ceT1w,axial,2031-05-02
three,three,Oyelaran-5,T2w,sagittal,2031-06-01
"""
RECORD = "variable,value,unit,date\nage,71,years,2031-03-12\nINR,1.0,,2031-03-11\nsmoker,no,,\n"
ANSWERS = """case_id,diagnosis,differentials,findings,findings_complete,lesion_location,lesion_side,rationale,level,turn_leaders
{one},Acute ischemic stroke,Glioblastoma | Brain abscess,a bright area in the right insula,true,insula,right,sudden onset | bright on DWI,dialogue,\
Acute ischemic stroke | Acute ischemic stroke | Acute ischemic stroke
{two},Glioblastoma,Brain abscess | Meningioma,an enhancing ring in the left temporal lobe,,temporal lobe,left,ring enhancement | slow onset,direct,
{three},Multiple sclerosis,Acute ischemic stroke,bright areas beside the ventricles,,,,relapses | bright areas,complex,
"""
LIMIT = {
    "prices": {"usd_per_million_prompt_tokens": 1.0, "usd_per_million_completion_tokens": 2.0, "dated": "2026-01-01"},
    "max_cost_usd": 5,
}

COMMON = {"rating_rounds": [], "rate_limits": {"loop": {"requests_per_minute": 100_000}}, "statistics": {"resamples": 100}}


def command(project: Path, *arguments: str) -> str:
    """Run a Python command of the project."""
    done = subprocess.run([sys.executable, *arguments], cwd=project, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{arguments}: {done.stdout[-3000:]}{done.stderr[-6000:]}"
        raise SystemExit(message)
    return done.stdout


def snakemake(project: Path, configfile: str, *targets: str) -> None:
    """Run the workflow; its targets are made."""
    command(project, "-m", "snakemake", "--cores", "2", "--configfile", configfile, "--", *targets)


def picture(number: int) -> bytes:
    """Draw a disc with a slope and a bright spot: small, smooth, and another one for every number."""
    rows, columns = np.mgrid[:96, :96]
    head = (rows - 48) ** 2 + (columns - 48) ** 2 < 40**2
    spot = (rows - 30 - 5 * number) ** 2 + (columns - 60 + 6 * number) ** 2 < 6**2
    pixels = np.where(head, 80 + (rows + number * columns) // 4, 0) + np.where(spot, 60, 0)
    stream = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(stream, format="PNG")
    return stream.getvalue()


def models(address: str) -> dict[str, Any]:
    """Give the yaml files of a model and two graders that are asked at an address."""
    asked = {"backend": "litellm", "revision": "1", "api_base": address, "temperature": 1.0, "seed": 1, **LIMIT}
    grader = {"title": "Loop", "id": "openai/grader", **asked, "temperature": 0}
    main = {"title": "Loop as grader", "kind": "llm", "prompt": "config/prompts/grader-v2.j2", "model": grader}
    steps = {
        "title": "Loop, steps", "kind": "llm", "task": "reasoning", "prompt": "config/prompts/grader-reasoning-v1.j2", "arms": ["full"],
        "model": {**grader, "structured_output": "json_schema"},
    }  # fmt: skip
    loop = {"title": "Loop (made-up)", "id": "openai/loop", "rate_limit_group": "loop", **asked}
    return {"config/models/loop.yaml": loop, "config/graders/main.yaml": main, "config/graders/steps.yaml": steps}


def write_own_cases(project: Path, address: str) -> None:
    """Write what a user writes before the first command: a folder of cases, answers, and yaml files."""
    own = project / "own"
    for name, number in PICTURES.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_bytes(picture(number))
    for case, notes in NOTES.items():
        for day, text in notes.items():
            (own / case / f"note{day}.txt").write_text(f"{text}\n", encoding="utf-8")
    (own / "one" / "record.csv").write_text(RECORD, encoding="utf-8")
    (own / "files.csv").write_text(FILES, encoding="utf-8")
    ward = {"title": "Ward (simulated patients)", "kind": "pictures", "axis": "depth", "source": "own", "key_file": "own/key"}
    mixed = {
        "title": "Mixed (made-up questions)", "kind": "pictures", "axis": "depth", "source": "data/raw/mixed", "questions": "data/questions/mixed",
        "subjects": "public", "deidentification": {"burned_in": "keep"}, "max_questions": 2, "few_shot": 2,
    }  # fmt: skip
    written: dict[str, Any] = {
        RUN: {
            "benchmarks": ["ward"], "models": ["loop"], "graders": ["rubric", "main"], **COMMON,
        },
        MIXED: {"benchmarks": ["mixed"], "models": ["loop"], "graders": ["steps"], **COMMON},
        "config/benchmarks/ward.yaml": {**ward, "arms": ["full", "no_image", "shuffled_image"], "samples": 2},
        "config/benchmarks/mixed.yaml": {**mixed, "arms": ["full", "no_image"], "strategies": ["direct", "cot", "few_shot", "ask"], "samples": 1},
        **models(address),
    }  # fmt: skip
    for name, value in written.items():
        (project / name).write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")


def list_and_sign(project: Path) -> None:
    """List the cases, write the answers under their ids, and sign the review."""
    command(project, "scripts/list_cases.py", "--new-key", "own/key")
    command(project, "scripts/list_cases.py", "--benchmark", "ward")
    lines = (project / "data/raw/ward/listing.tsv").read_text(encoding="utf-8").splitlines()
    ids = {name: next(line.split("\t")[0] for line in lines if f"\t{name}: " in line) for name in NOTES}
    (project / "own/answers.csv").write_text(ANSWERS.format(**ids), encoding="utf-8")
    change(project, "config/benchmarks/ward.yaml", answers="own/answers.csv")
    sign(project, RUN, "ward")


def sign(project: Path, configfile: str, benchmark: str) -> None:
    """Run until a person has to look, and sign what is shown."""
    snakemake(project, configfile, f"data/deidentified/{benchmark}/audit.json")
    digest = read(project / f"data/reviews/{benchmark}/review.json")["digest"]
    decision = ["--benchmark", benchmark, "--reviewer", "SIMULATED", "--digest", digest[:12], "--accept-rest"]
    command(project, "scripts/sign_review.py", *decision)


def rated(packet: dict[str, Any], rubric: str, first: int, *, asked: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """Fill in a packet of a rating round as the page exports it: a program rates, and says so; an adjudicator is asked for some axes alone."""
    axes = {"dx_correct": 4, "ddx_quality": 4, "finding_fidelity": 4, "reasoning": 4, "harm_extent": 3, "would_sign": 2}
    items = [
        {
            "item_id": opaque, "position": place, "status": "rated", "seconds_active": 40.0 + place, "revisions": 0,
            "scores": {axis: (place * first + len(axis)) % (highest + 1) for axis, highest in axes.items() if asked is None or axis in asked[opaque]},
            "cannot_judge": [] if asked else ["localisation"],
            "errors": [{"code": "wrong_side", "significant": bool(place % 2)}] if place % 3 == 0 and not asked else [],
            "comment": "typed by a program",
        }
        for place, opaque in enumerate(packet["order"], start=1)
    ]  # fmt: skip
    return {"schema": "neuralmedbench.rating/1", "rubric": rubric, **head(packet), "items": items}


def head(packet: dict[str, Any]) -> dict[str, Any]:
    """Give what every export says of its packet and of who filled it in."""
    return {
        "packet_id": packet["packet_id"], "packet_sha256": packet["packet_sha256"],
        "rater": {"id": packet["rater"], "role": "a program", "years": 0, "simulated": True},
        "started": "2026-01-01T08:00:00Z", "exported": "2026-01-01T09:00:00Z", "complete": True,
    }  # fmt: skip


def answered(packet: dict[str, Any], turns: dict[str, int]) -> dict[str, Any]:
    """Answer a packet of questions as the page exports it: a program answers, and says so."""
    stroke = {"name": "Acute ischaemic stroke"}
    answer = {"texts": {"FINDINGS": "A bright area."}, "candidates": [stroke], "choice": "", "fields": {}, "confidence": 0.7}
    items = []
    for place, opaque in enumerate(packet["order"], start=1):
        count = turns[packet["items"][opaque]["item_id"]]
        filled = [{"status": "answered", "locked": turn + 1 < count, "answer": answer, "seconds_active": 30.0} for turn in range(count)]
        items.append({"item_id": opaque, "position": place, "turns": filled})
    return {"schema": "neuralmedbench.answers/1", **head(packet), "items": items}


def put(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def change(project: Path, name: str, **changes: object) -> None:
    """Change keys of a yaml file."""
    path = project / name
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text(encoding="utf-8")), **changes}, sort_keys=False), encoding="utf-8")


def ask_readers(project: Path) -> None:
    """Let a simulated clinician answer some questions; it becomes a model whose answers are imported."""
    import pyarrow.parquet as pq

    form = yaml.safe_load((project / "config/rating.yaml").read_text(encoding="utf-8"))
    form["answers"] |= {"items": 3, "readers": 1, "families": ["differential_diagnosis"]}
    form["rounds"] |= {"responses": 10, "controls": 1, "repeats": 0.2}
    (project / "config/small-rounds.yaml").write_text(yaml.safe_dump(form, sort_keys=False), encoding="utf-8")
    small = ("--form", "config/small-rounds.yaml", "--configfiles", RUN)
    command(project, "scripts/make_rating_round.py", "--round", "h01", "--mode", "answer", *small)
    key = read(project / "data/ratings/h01/key.json")
    items = pq.read_table(project / "data/items/ward.parquet", columns=["item_id", "turns"]).to_pylist()
    turns = {row["item_id"]: max(1, len(row["turns"])) for row in items}
    for packet in key["packets"]:
        put(project / f"data/ratings/h01/answers_{packet['rater']}.json", answered(packet, turns))
    command(project, "scripts/import_reader.py", "--round", "h01")


def rate(project: Path) -> None:
    """Draw a round of answers, let two simulated raters and a simulated adjudicator fill it in."""
    command(project, "scripts/make_rating_round.py", "--round", "r01", "--form", "config/small-rounds.yaml", "--configfiles", RUN)
    folder = project / "data/ratings/r01"
    key = read(folder / "key.json")
    for first, packet in enumerate(key["packets"], start=1):
        put(folder / f"rating_{packet['rater']}.json", rated(packet, key["rubric"], first))
    change(project, RUN, rating_rounds=["r01"])
    snakemake(project, RUN, "results/ratings/ratings.parquet")
    command(project, "scripts/make_adjudication.py", "--round", "r01", "--form", "config/small-rounds.yaml", "--configfiles", RUN)
    decided = read(folder / "adjudication/key.json")
    put(folder / "rating_adjudicator.json", rated(decided["packet"], key["rubric"], 1, asked=decided["axes"]))


def make_scans(project: Path, address: str) -> None:
    """Make the run of the small demo as if its phantoms were patients: signed, asked, graded; and of its loose slices."""
    written = models(address)
    strict = {**written["config/models/loop.yaml"], "structured_output": "json_schema"}
    run = {"benchmarks": ["demo-tiny", "demo-tiny-slices"], "models": ["loop", "strict"], "graders": ["main"], **COMMON}
    for name, value in {SCANS: run, "config/models/strict.yaml": strict, **written}.items():
        (project / name).write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
    change(project, "config/benchmarks/demo-tiny.yaml", subjects="patient")
    sign(project, SCANS, "demo-tiny")
    answers = [f"results/responses/{benchmark}/{model}.parquet" for benchmark in run["benchmarks"] for model in run["models"]]
    snakemake(project, SCANS, *answers, "results/grades/demo-tiny/loop/main.parquet")


def machine() -> dict[str, object]:
    """Say on what scans were computed: another processor or package may round the last bit of a picture otherwise."""
    from numpy._core._multiarray_umath import __cpu_features__ as features

    packages = {name: version(name) for name in ("numpy", "scipy", "SimpleITK", "nibabel", "pillow")}
    return {"processor": sorted(name for name, there in features.items() if there), "packages": packages}


def keep(project: Path, archive: tarfile.TarFile, name: str, left_out: re.Pattern[str]) -> None:
    """Put what is needed of a project into the archive, with its times; the folder of the project is named nowhere."""
    for path in sorted(path for path in project.rglob("*") if path.is_file()):
        relative = path.relative_to(project).as_posix()
        shipped = relative.startswith("config/") and (OLD / relative).exists() and (OLD / relative).read_bytes() == path.read_bytes()
        if shipped or LEFT_OUT.match(relative) or left_out.match(relative):
            continue
        content = path.read_bytes().replace(str(project).encode(), HERE.encode())
        entry = tarfile.TarInfo(f"{name}/{relative}")
        entry.size, entry.mtime = len(content), int(path.stat().st_mtime)
        archive.addfile(entry, io.BytesIO(content))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="archive to write")
    parser.add_argument("--work", type=Path, required=True, help="folder in which the runs are made")
    args = parser.parse_args(argv)
    sys.path[:0] = [str(OLD / "tests"), str(OLD / "scripts")]
    # of the old commit, where they stay as they are
    from import_fixtures import put_mixed
    from loopback import Loopback
    from models_fixtures import running_server

    from conftest import copy_project

    project, scans = copy_project(args.work / "pictures"), copy_project(args.work / "scans")
    with running_server(Loopback(longest_s=0.06)) as server:
        put_mixed(args.work / "mixed", project / "data", examples=3)
        write_own_cases(project, server.address)
        list_and_sign(project)
        snakemake(project, RUN, "data/prompts/ward.parquet")
        ask_readers(project)
        change(project, RUN, models=["loop", "reader-h01-1"])
        snakemake(project, RUN, "results/report.html")
        rate(project)
        snakemake(project, RUN, "results/report.html")
        snakemake(project, MIXED, "results/grades/mixed/loop/steps.parquet")
        make_scans(scans, server.address)
        print(f"{sum(map(len, server.delivered.values()))} answers were given")
    put(scans / "machine.json", machine())
    with tarfile.open(args.out, "x:xz") as archive:
        keep(project, archive, "pictures", re.compile(r"$^"))
        keep(scans, archive, "scans", OF_SCANS)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
