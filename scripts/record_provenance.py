"""Record where the numbers come from: code, environment, models, prompts and inputs."""

from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.pipeline import StatisticsConfig
from neuralmedbench.config.section import Section
from neuralmedbench.files.json_files import write_json
from neuralmedbench.report.provenance import gather_provenance
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


class Settings(Section):
    """The run lists, the seed of the draws, the configuration files given on the command line, and whether the run is limited."""

    benchmarks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    statistics: StatisticsConfig = StatisticsConfig()
    configfiles: tuple[str, ...] = ()
    limited: bool = False


def record(
    *,
    vocabulary: Path,
    inputs: Sequence[Path],
    settings: Settings,
    out: Path,
    results: Path = Path("results"),
    root: Path = Path(),
) -> None:
    provenance = gather_provenance(
        root,
        benchmarks=settings.benchmarks,
        models=settings.models,
        vocabulary=vocabulary,
        inputs=inputs,
        seeds={"bootstrap": settings.statistics.seed},
        configfiles=settings.configfiles,
        results=results,
        limited=settings.limited,
    )
    write_json(out, provenance)


main = Command(record)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
