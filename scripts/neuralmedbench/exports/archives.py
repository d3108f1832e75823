"""What archives and hubs ask for.

A Workflow Run RO-Crate of the exports and of the workflow that made them; the metadata of a Zenodo deposit; for the Hugging Face hub,
`eval.yaml` for the data set's repository and a result file for each model's.
"""

from __future__ import annotations

import html
import mimetypes
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.cards.card import CroissantConfig
from neuralmedbench.exports.released import LIBRARY, ReleasedRun, ReleasedScore, may_travel
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.json_files import write_json
from neuralmedbench.records.words import percent
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.tables.pass_rules import pass_definition
from neuralmedbench.tables.study import BenchmarkStudy

Json = dict[str, Any]
METADATA = "ro-crate-metadata.json"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}]
WORKFLOW, LANGUAGE, AGENT, LICENCE = "workflow/Snakefile", "#snakemake", "#authors", "#licence"
NO_LICENCE = (
    "No licence has been stated for these numbers: whoever publishes them chooses one. The workflow's code is under the licence {code}."
)
KINDS = {
    ".jsonl": "application/jsonl",
    ".parquet": "application/vnd.apache.parquet",
    ".eval": "application/zip",
    ".yaml": "application/yaml",
}
SNAKEMAKE = "https://snakemake.github.io"
ON_HUB = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)")
OWNER = "OWNER"
"""In place of the owner of a data set whose card names no page of the hub."""


def copy_workflow(root: Path, folder: Path, run: ReleasedRun) -> None:
    """Put the workflow, and where the numbers come from, beside the exports, so that the crate is complete by itself.

    Of private benchmarks neither the digests of their files nor the calls are told.
    """
    for path in [root / "Snakefile", *sorted((root / "rules").glob("*.smk"))]:
        write_text(folder / "workflow" / path.relative_to(root), path.read_text(encoding="utf-8"))
    closed = {name for name, benchmark in run.study.benchmarks.items() if not may_travel(benchmark)}
    told = run.provenance | {
        "inputs": {path: digest for path, digest in run.provenance["inputs"].items() if closed.isdisjoint(_names_in(path))},
        "models": [one for one in run.provenance["models"] if one["benchmark"] not in closed],
    }
    write_json(folder / "provenance.json", told)


def _names_in(path: str) -> set[str]:
    """Return the parts of a path, with and without suffix: one of them may be the name of a benchmark."""
    return {name for part in Path(path).parts for name in (part, Path(part).stem)}


def write_crate(folder: Path, run: ReleasedRun) -> None:
    """Describe every file of the exports as a Workflow Run Crate: `ro-crate-metadata.json`.

    Parameters
    ----------
    folder : Path
        The exports, complete but for this file.
    run : ReleasedRun
        The run.
    """
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and path.name != METADATA)
    files = [_file(folder, path) for path in paths if path != WORKFLOW]
    made = [path for path in paths if not path.startswith("workflow/") and path not in {"provenance.json", "README.md"}]
    authors = [str(author["name"]) for author in run.citation["authors"]]
    graph = [
        {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"}}
        | {"conformsTo": [{"@id": "https://w3id.org/ro/crate/1.1"}, {"@id": "https://w3id.org/workflowhub/workflow-ro-crate/1.0"}]},
        {
            "@id": "./",
            "@type": "Dataset",
            "name": run.title,
            "description": description_of(run),
            "datePublished": run.date.isoformat(),
            "license": {"@id": LICENCE},
            "conformsTo": _refs(PROFILES),
            "hasPart": _refs(paths),
            "mainEntity": {"@id": WORKFLOW},
            "mentions": {"@id": "#run"},
            "author": {"@id": AGENT},
            "publisher": {"@id": AGENT},
        },
        *({"@id": name, "@type": "CreativeWork", "name": title, "version": version} for name, (title, version) in PROFILES.items()),
        {
            "@id": LICENCE,
            "@type": "CreativeWork",
            "name": "Licence of the numbers",
            "description": NO_LICENCE.format(code=run.citation["license"]),
        },
        {"@id": AGENT, "@type": "Organization", "name": "; ".join(authors)},
        {
            "@id": LANGUAGE,
            "@type": "ComputerLanguage",
            "name": "Snakemake",
            "identifier": {"@id": SNAKEMAKE},
            "url": {"@id": SNAKEMAKE},
            "version": str(run.provenance["packages"].get("snakemake", "")),
        },
        {"@id": SNAKEMAKE, "@type": "WebSite", "name": "Snakemake"},
        {
            **_file(folder, WORKFLOW),
            "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
            "name": run.citation["title"],
            "programmingLanguage": {"@id": LANGUAGE},
            "version": run.commit,
            "creator": {"@id": AGENT},
            "license": str(run.citation["license"]),
            "conformsTo": {"@id": "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"},
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": f"The run {run.name}",
            "description": f"{run.provenance['command']}. provenance.json has the inputs with their digests, models, prompts and packages.",
            "endTime": run.date.isoformat(),
            "actionStatus": "http://schema.org/CompletedActionStatus",
            "instrument": {"@id": WORKFLOW},
            "agent": {"@id": AGENT},
            "object": {"@id": "provenance.json"},
            "result": _refs(made),
        },
        *files,
    ]
    write_json(folder / METADATA, {"@context": CONTEXT, "@graph": graph})


def _refs(names: Iterable[str]) -> list[Json]:
    return [{"@id": name} for name in names]


def _file(folder: Path, name: str) -> Json:
    kind = KINDS.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    entity: Json = {
        "@id": name,
        "@type": "File",
        "name": Path(name).name,
        "encodingFormat": kind,
        "contentSize": str((folder / name).stat().st_size),
        "sha256": sha256_of(folder / name),
    }
    return entity | ({"about": {"@id": "./"}, "encodingFormat": "text/markdown"} if name == "README.md" else {})


def description_of(run: ReleasedRun) -> str:
    """Say in a few sentences what is in the exports of a run."""
    titles = [benchmark.config.title for benchmark in run.study.benchmarks.values()]
    models = [model.title for model in run.study.models.values() if not model.reader]
    parts = (
        f"Benchmarks: {'; '.join(titles)}. Models: {'; '.join(models)}.",
        "Every number with its number of items and patients, its interval, its graders and the tier of the model (scores.parquet, codebook.json).",
        "Numbers about few patients who are not public are held back, and answers of private benchmarks.",
        run.warning,
    )
    return " ".join(filter(None, parts))


def write_zenodo(path: Path, run: ReleasedRun) -> None:
    """Write the metadata of a Zenodo deposit as its REST interface takes them; the licence is left to whoever deposits."""
    titles = [benchmark.config.title for benchmark in run.study.benchmarks.values()]
    cited = [{"relation": "cites", "identifier": one["url"], "scheme": "url"} for one in run.citation["references"]]
    metadata = {
        "title": run.title,
        "upload_type": "dataset",
        "description": f"<p>{html.escape(description_of(run))}</p>",
        "creators": [{"name": str(author["name"])} for author in run.citation["authors"]],
        "access_right": "open",
        "keywords": ["vision-language models", "neurology", "evaluation", *titles],
        "related_identifiers": cited,
        "notes": f"Made by {run.citation['title']} {run.citation['version']}, commit {run.commit}: {run.provenance['command']}",
    }
    write_json(path, {"metadata": metadata})


def write_hub_files(folder: Path, run: ReleasedRun) -> None:
    """Write `<benchmark>/eval.yaml`, and `<benchmark>/<model>.yaml` for every model whose pass@1 is known.

    Parameters
    ----------
    folder : Path
        Where the folders of the benchmarks go.
    run : ReleasedRun
        The run. Private benchmarks are left out: their data set is on no hub.
    """
    for benchmark in run.study.benchmarks.values():
        if may_travel(benchmark):
            write_text(folder / benchmark.name / "eval.yaml", _yaml(_registration(run, benchmark)))
    for benchmark, model in run.models:
        first = next((number for number in run.numbers(benchmark.name, model.name) if number.tier is not None), None)
        if first is not None and may_travel(benchmark):
            write_text(folder / benchmark.name / f"{model.name}.yaml", _yaml([_result(run, run.cards[benchmark.name], first)]))


def dataset_of(benchmark: str, card: CroissantConfig) -> str:
    """Return the data set's name on the hub, from the address in its card; else a name in which the owner is left open."""
    found = ON_HUB.match(card.url or "")
    return found[1] if found else f"{OWNER}/{benchmark}"


def notes_of(number: ReleasedScore) -> str:
    """Say n, interval, grader and tier of a number in the one free text that a result file has."""
    parts = [
        f"{number.metric} over {number.n_items} items of {number.n_patients} {number.cluster}s",
        f"{percent(number.confidence)} interval {number.low:.6f} to {number.high:.6f} ({number.interval})"
        if number.confidence is not None
        else "no interval",
        f"grader {number.grader or 'none'}",
        f"tier {number.tier}, rank {number.rank} ({number.rank_low} to {number.rank_high})",
        f"arm {number.arm}, strategy {number.strategy}",
    ]
    return "; ".join(parts)


def _registration(run: ReleasedRun, benchmark: BenchmarkStudy) -> dict[str, Any]:
    description = " ".join(filter(None, (pass_definition(benchmark.items), run.warning)))
    return {
        "name": benchmark.config.title,
        "description": description,
        "evaluation_framework": LIBRARY,
        "tasks": [{"id": benchmark.name}],
    }


def _result(run: ReleasedRun, card: CroissantConfig, number: ReleasedScore) -> dict[str, Any]:
    return {
        "dataset": {"id": dataset_of(number.benchmark or "", card), "task_id": number.benchmark},
        "value": number.value,
        "date": run.date.isoformat(),
        "notes": notes_of(number),
    }


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=1000)
