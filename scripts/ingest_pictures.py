"""Copy the pictures of a benchmark under neutral names, pixels only; cases of users keep notes and record too."""

import shutil
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.cases import case_table, read_case_table, write_pictures
from neuralmedbench.ingest.pictures import ingest_picture_cases, ingest_pictures
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def ingest(*, benchmark: str, out: Path, data: Path = Path("data"), config: Path = Path("config")) -> None:
    own = load_benchmark(config, benchmark)
    folder = out.parent
    shutil.rmtree(folder / "pictures", ignore_errors=True)
    (folder / "pictures").mkdir(parents=True)
    if own.has_cases:
        rows = read_case_table(case_table(config, benchmark))
        manifest = ingest_picture_cases(benchmark, rows, data / "raw" / benchmark, folder)
    else:
        table = Path(own.picture_table)
        root = Path(own.source) if own.questions else table.parent
        manifest = ingest_pictures(benchmark, table, root, folder)
    write_pictures(out, manifest)


main = Command(ingest)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
