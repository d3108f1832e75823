"""Write everything that may be handed on of a run into one folder, after a search for private ids in every byte of it."""

from __future__ import annotations

from pathlib import Path

from neuralmedbench.exports.archives import copy_workflow, write_crate, write_zenodo
from neuralmedbench.exports.every_eval_ever import write_every_eval_ever
from neuralmedbench.exports.hub import write_hub_files
from neuralmedbench.exports.inspect_log import write_inspect_logs
from neuralmedbench.exports.private_ids import private_ids, require_no_ids
from neuralmedbench.exports.released import ReleasedRun, write_scores
from neuralmedbench.files.json_files import write_json
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
    from neuralmedbench.exports.archives import description_of
    from neuralmedbench.exports.every_eval_ever import VERSION

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
