"""Let two SIMULATED raters fill in a round of the demo: values are made up by a program, so that the demo shows the tables of ratings."""

from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_model
from neuralmedbench.config.section import Section
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import read_records
from neuralmedbench.ratings.form import read_form
from neuralmedbench.ratings.simulated_raters import simulate_round
from neuralmedbench.recording.reader_answers import answers_of, model_names
from neuralmedbench.records.scores import Grade
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


class Settings(Section):
    """Benchmarks of simulated patients, and models whose answers may be drawn."""

    benchmarks: tuple[str, ...]
    models: tuple[str, ...]


def simulate(
    *,
    form: Path,
    grades: Sequence[Path],
    settings: Settings,
    out_key: Path,
    out: Sequence[Path],
    results: Path = Path("results"),
    config: Path = Path("config"),
) -> None:
    axes = read_form(form)
    models = {name: load_model(config / "models" / f"{name}.yaml") for name in settings.models}
    candidates = []
    for name in settings.benchmarks:
        candidates += answers_of(name, models, axes.rounds.families, folder=config, results=results.as_posix())
    rows = [row for path in grades for row in read_records(path, Grade)]
    key, exports = simulate_round(axes, candidates, rows, model_names(models))
    write_json(out_key, key.model_dump(mode="json", by_alias=True))
    for path in out:
        write_json(path, exports[path.stem].model_dump(mode="json", by_alias=True))


main = Command(simulate)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
