"""Cut the pictures that a model sees out of one normalised case."""

from pathlib import Path

from neuralmedbench.config.imaging import SlicesConfig
from neuralmedbench.config.section import Section
from neuralmedbench.files.cases import run_case_stage
from neuralmedbench.files.known_lesions import read_known_lesion
from neuralmedbench.imaging.review_pieces import REVIEW, write_chosen_pieces
from neuralmedbench.imaging.slices import cut_slices, with_slices
from neuralmedbench.records.case import CaseRecord
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.runtime.options import Command


class Settings(Section):
    """Slices, and whether oracle slices are cut too, for the arm that shows them."""

    slices: SlicesConfig = SlicesConfig()
    at_lesion: bool = False


def cut_case(*, case: Path, settings: Settings, out_pictures: Path, out: Path, config: Path = Path("config")) -> None:
    policy, at_lesion = settings.slices, settings.at_lesion

    def cut(record: CaseRecord, source: Path) -> CaseRecord:
        sought = policy.policy == "lesion" or at_lesion
        lesion = read_known_lesion(config, record.benchmark, record.case_id) if sought else None
        pictures = cut_slices(record, source, out_pictures, policy, lesion, at_lesion=at_lesion)
        chosen = with_slices(record, pictures)
        write_chosen_pieces(chosen, out.parent)
        return chosen

    run_case_stage("slices", case, out, cut, folders=(out_pictures, out.parent / REVIEW))


main = Command(cut_case)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
