"""Write everything that may be handed on of a run into one folder, after a search for private ids in every byte of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from neuralmedbench.exports.archives import copy_workflow, description_of, write_crate, write_zenodo
from neuralmedbench.exports.every_eval_ever import VERSION, write_every_eval_ever
from neuralmedbench.exports.hub import write_hub_files
from neuralmedbench.exports.inspect_log import write_inspect_logs
from neuralmedbench.exports.private_ids import private_ids, require_no_ids
from neuralmedbench.exports.released import ReleasedRun, ReleasedScore
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import write_records
from neuralmedbench.runtime.atomic_write import atomic_folder, write_text

README = """# {title}

{description}

| file | for whom |
| --- | --- |
| `scores.parquet`, `codebook.json` | everybody who computes: every rate as a row, with n, interval, grader and tier; the codebook explains the columns |
| `every_eval_ever/` | the datastore of Every Eval Ever (schema {schema}): put its `data/` beside the `data/` there |
| `inspect/` | users of inspect_ai: `inspect view --log-dir inspect` |
| `hub/` | the Hugging Face hub: `eval.yaml` belongs into the repository of the data set, `<model>.yaml` into `.eval_results/` of the model's |
| `ro-crate-metadata.json` | archives and workflow registries: the whole folder is a Workflow Run RO-Crate |
| `zenodo.json` | Zenodo: the metadata of a deposit, without a licence, which you choose |
| `provenance.json`, `workflow/` | where the numbers come from: digests of inputs, models, prompts, packages; the workflow |
"""


def write_exports(root: Path, folder: Path, run: ReleasedRun) -> None:
    """Write the exports of a run.

    Parameters
    ----------
    root : Path
        The repository root.
    folder : Path
        The exports; an old folder is replaced when the new one is complete.
    run : ReleasedRun
        What may be handed on.

    Raises
    ------
    DeidentificationError
        If a private id is in a file: then nothing is written.
    """
    with atomic_folder(folder) as new:
        write_json(new / "codebook.json", write_scores(new, run.scores))
        write_every_eval_ever(root, new / "every_eval_ever", run)
        write_inspect_logs(new / "inspect", run)
        write_hub_files(new / "hub", run)
        write_zenodo(new / "zenodo.json", run)
        copy_workflow(root, new, run)
        write_text(new / "README.md", README.format(title=run.title, description=description_of(run), schema=VERSION))
        write_crate(new, run)
        require_no_ids(new, private_ids(run.study))


def write_scores(folder: Path, scores: Sequence[ReleasedScore]) -> dict[str, Any]:
    """Write `scores.parquet` into a folder, and return its codebook."""
    names = [entry.name for entry in fields(ReleasedScore)]
    write_records(
        folder / "scores.parquet", ReleasedScore, scores, key=lambda row: [str(getattr(row, name)) for name in (*names[:4], *names[10:15])]
    )
    hints = get_type_hints(ReleasedScore)
    columns = [
        {
            "name": entry.name,
            "description": entry.metadata["about"],
            "type": next(kind.__name__ for kind in get_args(hints[entry.name]) if kind is not type(None)),
            "unit": entry.metadata["unit"],
            "levels": _levels(scores, entry.name),
            "empty": sum(getattr(row, entry.name) is None for row in scores),
        }
        for entry in fields(ReleasedScore)
    ]
    return {"file": "scores.parquet", "row": (ReleasedScore.__doc__ or "").strip(), "rows": len(scores), "columns": columns}


FREE_TEXT = frozenset({"note", "benchmark_title", "model_title", "model_id", "revision"})


def _levels(scores: Sequence[ReleasedScore], name: str) -> list[str]:
    """Return the values that a column of text takes; empty for numbers and free texts."""
    values = {getattr(row, name) for row in scores} - {None}
    return sorted(values) if name not in FREE_TEXT and values and all(isinstance(value, str) for value in values) else []
