"""De-identify the loose pictures of a benchmark: rewrite them without metadata, search for burned-in text, and clean the texts of own cases."""

import shutil
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.deid.cleaning import cleaning_policy
from neuralmedbench.deid.pictures import deidentify_picture_cases, deidentify_pictures
from neuralmedbench.files.cases import read_pictures, write_pictures
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


def deidentify(*, benchmark: str, pictures: Path, out: Path, config: Path = Path("config")) -> None:
    source, folder = pictures.parent, out.parent
    shutil.rmtree(folder / "pictures", ignore_errors=True)
    (folder / "pictures").mkdir(parents=True)
    ingested = read_pictures(pictures)
    if ingested.cases:
        manifest = deidentify_picture_cases(ingested, source, folder, cleaning_policy(config, benchmark))
    else:
        own = load_benchmark(config, benchmark)
        burned_in, subjects = own.deidentification.burned_in, own.subjects
        manifest = deidentify_pictures(ingested, source, sha256_of(pictures), folder, burned_in=burned_in, subjects=subjects)
    write_pictures(out, manifest)


main = Command(deidentify)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
