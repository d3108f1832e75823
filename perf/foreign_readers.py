"""Open the exports of a run with the readers of others, and let their validators judge them: inspect_ai, Every Eval Ever, RO-Crate.

These programs are no part of the project; they lie in an environment of their own, with Python 3.12 or later:

    python3.12 -m venv DIR && DIR/bin/pip install inspect_ai roc-validator rocrate rich
    git clone https://github.com/evaleval/every_eval_ever CHECKOUT
    NMB_FOREIGN_PYTHON=DIR/bin/python NMB_EVERY_EVAL_EVER=CHECKOUT python perf/foreign_readers.py

Two made-up runs are exported and read: one that may be shown whole, one about patients of a site. What each reader gives back of pass@1 (number,
n, interval, grader, tier) is compared with the tables, and what inspect_ai recomputes from single answers. Every validator must also refuse a
file that was spoiled. `--exports` reads those of a finished run instead. The RO-Crate validator loads a vocabulary from the web;
`NMB_CRATE_CONTEXT` names a copy of https://w3id.org/ro/crate/1.1/context for machines without.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROFILE = "workflow-run-crate-0.5"
ROUNDED = 1e-6


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("NMB_FOREIGN_PYTHON"), help="Python of that environment")
    parser.add_argument("--every-eval-ever", default=os.environ.get("NMB_EVERY_EVAL_EVER"), help="a checkout of Every Eval Ever")
    parser.add_argument("--crate-context", default=os.environ.get("NMB_CRATE_CONTEXT"), help="copy of the vocabulary, without the web")
    parser.add_argument("--exports", type=Path, help="exports of a finished run (results/exports), in place of made-up ones")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.read:
        print(json.dumps(read_all(args.read, args.crate_context)))
        return 0
    if not args.python or not args.every_eval_ever:
        print("the readers of others are not here: set NMB_FOREIGN_PYTHON and NMB_EVERY_EVAL_EVER (--help says how)")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        runs = {"the run": args.exports} if args.exports else made_up(Path(folder))
        found = {name: judge(args, name, exports, Path(folder) / "spoiled") for name, exports in runs.items()}
    return int(any(faults for faults in found.values()))


def made_up(folder: Path) -> dict[str, Path]:
    sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]
    from fixtures.exports import closed_exports, shared_exports

    return {"simulated patients": shared_exports(folder / "shared"), "patients of a site": closed_exports(folder / "closed")}


def judge(args: argparse.Namespace, name: str, exports: Path, spoiled: Path) -> list[str]:
    """Read exports and a spoiled copy of them; print what was found, and return the faults."""
    told = run_inside(args, exports)
    faults = [*told["faults"], *differences(exports, told)]
    shutil.rmtree(spoiled, ignore_errors=True)
    shutil.copytree(exports, spoiled)
    kinds = spoil(spoiled)
    unseen = sorted(kinds - {fault.partition(":")[0] for fault in run_inside(args, spoiled)["faults"]})
    faults += [f"{kind}: a spoiled file was not refused" for kind in unseen]
    print(f"{name}, with {', '.join(f'{program} {version}' for program, version in told['versions'].items())}")
    print(
        f"  inspect_ai: {told['logs']} logs with {told['samples']} samples; Every Eval Ever: {told['records']} files; RO-Crate: {told['entities']} files"
    )
    print(
        f"  pass@1 with n, interval, grader and tier read back: {len(told['inspect'])} from inspect_ai, {len(told['every_eval_ever'])} from Every Eval Ever"
    )
    print(f"  spoiled files refused: {len(kinds) - len(unseen)} of {len(kinds)}; faults: {len(faults)}")
    for fault in faults[:20]:
        print(f"  {fault}")
    return faults


def run_inside(args: argparse.Namespace, exports: Path) -> dict[str, Any]:
    """Read exports with the programs of the other environment."""
    command = [args.python, __file__, "--read", str(exports.absolute())]
    command += ["--crate-context", args.crate_context] if args.crate_context else []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONPATH": args.every_eval_ever}
    done = subprocess.run(command, env=environment, cwd=exports, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def differences(exports: Path, told: dict[str, Any]) -> Iterator[str]:
    """Compare what was read with the tidy table, and that with nothing: the tests compare it with the tables."""
    import pyarrow.parquet as pq

    rows = pq.read_table(exports / "scores.parquet").to_pylist()
    wanted = {
        f"{row['benchmark']}/{row['model']}": {
            "number": [row["value"], row["low"], row["high"]],
            "n": [str(row["n_items"]), str(row["n_patients"])],
            "method": row["interval"],
            "grader": row["grader"] or "",
            "tier": str(row["tier"]),
        }
        for row in rows
        if row["tier"] is not None
    }
    for reader in ("inspect", "every_eval_ever"):
        if wanted.keys() != told[reader].keys():
            yield f"{reader}: reads {sorted(told[reader])}, written were {sorted(wanted)}"
        yield from (
            f"{reader}: {key} reads {told[reader][key]}, written was {one}" for key, one in wanted.items() if told[reader].get(key) != one
        )
    for key, rate in told["recomputed"].items():
        if key in wanted and abs(rate - wanted[key]["number"][0]) > ROUNDED:
            yield f"inspect: {key} recomputes {rate}, written was {wanted[key]['number'][0]}"


def spoil(exports: Path) -> set[str]:
    """Spoil one file of each kind; return the kinds."""
    record = next((exports / "every_eval_ever").rglob("*.json"))
    value = json.loads(record.read_text(encoding="utf-8"))
    value["evaluation_results"][0]["score_details"]["score"] = 73.4
    record.write_text(json.dumps(value), encoding="utf-8")
    crate = exports / "ro-crate-metadata.json"
    value = json.loads(crate.read_text(encoding="utf-8"))
    value["@graph"] = [{key: entry for key, entry in entity.items() if key != "programmingLanguage"} for entity in value["@graph"]]
    crate.write_text(json.dumps(value), encoding="utf-8")
    next((exports / "inspect").rglob("*.eval")).write_bytes(b"PK\x03\x04 no log")
    return {"every_eval_ever", "crate", "inspect"}


# from here on: in the other environment


def foreign(name: str) -> Any:
    """Import a module of the other environment."""
    return import_module(name)


def read_all(exports: Path, context: str | None) -> dict[str, Any]:
    faults: list[str] = []
    programs = {"inspect_ai": "inspect_ai", "roc-validator": "roc-validator", "rocrate": "rocrate"}
    found: dict[str, Any] = {"versions": {name: metadata.version(package) for name, package in programs.items()}, "faults": faults}
    readers: dict[str, Callable[[], dict[str, Any]]] = {
        "inspect": lambda: read_logs(exports),
        "every_eval_ever": lambda: read_records(exports, faults),
        "crate": lambda: read_crate(exports, context, faults),
    }
    for name, read in readers.items():
        try:
            found |= read()
        except Exception as error:  # the program refused the file
            faults.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    return found


def read_logs(exports: Path) -> dict[str, Any]:
    logs = foreign("inspect_ai.log")
    passed, recomputed, samples = {}, {}, 0
    paths = sorted((exports / "inspect").rglob("*.eval"))
    for path in paths:
        log, key = logs.read_eval_log(str(path)), f"{path.parent.name}/{path.stem}"
        samples += len(log.samples or [])
        values = defaultdict(list)
        for sample in log.samples or []:
            values[sample.id].append(sample.scores["pass1"].as_float())
        if len(logs.read_eval_log_sample_summaries(str(path))) != len(log.samples or []):
            message = f"{key}: summaries do not fit the samples"
            raise ValueError(message)
        if values:
            recomputed[key] = sum(sum(own) / len(own) for own in values.values()) / len(values)
        for score in log.results.scores if log.results else []:
            if score.name == "pass1" and "tier" in (about := score.metadata or {}):
                passed[key] = {
                    "number": [score.metrics[name].value for name in ("mean", "ci_lower", "ci_upper")],
                    "n": [about["n_items"], about["n_patients"]],
                    "method": about["interval"],
                    "grader": about.get("grader", ""),
                    "tier": about["tier"],
                }
    known = {key: rate for key, rate in recomputed.items() if not math.isnan(rate)}  # without an answer
    return {"logs": len(paths), "samples": samples, "inspect": passed, "recomputed": known}


def read_records(exports: Path, faults: list[str]) -> dict[str, Any]:
    """Validate as their command does (schema and the checks of their data store), and read with their types."""
    types = foreign("every_eval_ever.eval_types")
    folder = exports / "every_eval_ever"
    command = [sys.executable, "-m", "every_eval_ever", "validate", "--format", "json", "data/*/*/*/*.json*"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    reports = json.loads(done.stdout)
    faults += [f"every_eval_ever: {report['file']}: {fault}" for report in reports for fault in report["errors"] + report["warnings"]]
    found = {}
    for path in folder.rglob("*.json"):
        record = types.EvaluationLog.model_validate_json(path.read_text(encoding="utf-8"))
        for result in record.evaluation_results:
            details = result.score_details.details or {}
            if "tier" in details:
                limits = result.score_details.uncertainty.confidence_interval
                benchmark = (result.evaluation_result_id or "").split(".full")[0]
                found[f"{benchmark}/{record.evaluation_id.rpartition('/')[2].partition('@')[0]}"] = {
                    "number": [result.score_details.score, limits.lower, limits.upper],
                    "n": [details["n_items"], details["n_patients"]],
                    "method": limits.method,
                    "grader": details.get("grader", ""),
                    "tier": details["tier"],
                }
    return {"records": len(reports), "every_eval_ever": found}


def read_crate(exports: Path, context: str | None, faults: list[str]) -> dict[str, Any]:
    requests, models, services = map(foreign, ("requests", "rocrate_validator.models", "rocrate_validator.services"))
    if context:  # the one address that the validator reads, from a file

        def answer(_: Any, request: Any, **_settings: Any) -> Any:
            reply = requests.models.Response()
            reply.request, reply.url, reply.status_code, reply.encoding = request, request.url, 200, "utf-8"
            reply.headers["Content-Type"] = "application/ld+json"
            reply._content = Path(context).read_bytes() if "ro/crate/1.1/context" in request.url else b"{}"
            return reply

        requests.Session.send = answer
    settings = services.ValidationSettings(
        rocrate_uri=str(exports), profile_identifier=PROFILE, requirement_severity=models.Severity.REQUIRED, no_cache=True
    )
    faults += [f"crate: {issue.check.identifier} {issue.message}" for issue in services.validate(settings).get_issues()]
    return {"entities": len(foreign("rocrate.rocrate").ROCrate(str(exports)).data_entities)}


if __name__ == "__main__":
    raise SystemExit(main())
