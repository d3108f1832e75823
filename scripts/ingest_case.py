"""Copy the usable raw files of one case under neutral names, and label every scan by its headers before they are cleaned."""

import shutil
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.config.section import Section
from neuralmedbench.files.cases import quarantine_on_error, read_overrides, write_case
from neuralmedbench.files.identity import Identity, write_identity
from neuralmedbench.files.raw_folder import read_raw_index
from neuralmedbench.ingest.cases import ingest_case, new_case
from neuralmedbench.ingest.persons_labels import NamedKinds
from neuralmedbench.records.case import State, VoxelSizes
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


class Settings(Section):
    """How the scans of a case are read.

    Attributes
    ----------
    overrides : str
        Sequence labels set by a person: `series-02=FLAIR;series-03=T1w`.
    map_digest : str
        Digest of `sequence_map`, which is read from the benchmark's YAML file; empty: it has none.
    voxel_sizes : str or None
        What counts in NIfTI headers whose voxel sizes differ.
    """

    overrides: str = ""
    map_digest: str = ""
    voxel_sizes: VoxelSizes | None = None


def ingest(*, benchmark: str, case: str, files: Path, settings: Settings, out: Path, config: Path = Path("config")) -> None:
    folder, index = out.parent, read_raw_index(files)
    make_empty(folder)
    base = new_case(benchmark, case, index)
    mapping = load_benchmark(config, benchmark).sequence_map if settings.map_digest else ()
    named = NamedKinds(read_overrides(settings.overrides), mapping)
    record = quarantine_on_error(base, lambda: ingest_case(base, index, files.parent, folder, named, sizes=settings.voxel_sizes))
    if record.state is State.QUARANTINED:
        make_empty(folder)
    write_case(out, record)


def make_empty(folder: Path) -> None:
    """Create the outputs that even a case without scans has."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("series", "text"):
        (folder / name).mkdir(parents=True)
    write_identity(folder / "identity.json", Identity())


main = Command(ingest)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
