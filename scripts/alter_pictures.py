"""Make the altered pictures that some arms of a benchmark show."""

from pathlib import Path

from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.imaging.alter import alter_pictures
from neuralmedbench.records.arm_changes import AlteredPicture, altered_key
from neuralmedbench.records.items import Item
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def alter(*, benchmark: str, items: Path, out_pictures: Path, out: Path, config: Path = Path("config")) -> None:
    arms = load_arms(config, load_benchmark(config, benchmark).arms, benchmark)
    altering = [arm for arm in arms.values() if arm.alters]
    rows = alter_pictures(read_records(items, Item), altering, out_pictures)
    write_records(out, AlteredPicture, rows, key=altered_key)


main = Command(alter)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
