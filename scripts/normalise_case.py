"""Bring the scans of one case into one orientation and one space, with quality numbers."""

from pathlib import Path

from neuralmedbench.config.imaging import ImagingConfig
from neuralmedbench.config.section import Section
from neuralmedbench.files.cases import run_case_stage
from neuralmedbench.imaging.normalise import normalise
from neuralmedbench.imaging.review_pieces import REVIEW, write_case_pieces
from neuralmedbench.imaging.scans import VOLUMES
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


class Settings(Section):
    """Normalisation."""

    imaging: ImagingConfig = ImagingConfig()


def normalise_case(*, case: Path, settings: Settings, out: Path) -> None:
    target = out.parent

    def step(record: CaseRecord, source: Path) -> CaseRecord:
        normalised = normalise(record, source, target, settings.imaging)
        write_case_pieces(normalised, target)
        return normalised

    run_case_stage("normalise", case, out, step, folders=(target / VOLUMES, target / REVIEW))


main = Command(normalise_case)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
