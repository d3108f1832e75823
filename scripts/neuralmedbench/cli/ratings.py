"""`nmb ratings`: rounds in which clinicians rate answers or answer the questions themselves."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from neuralmedbench.cli.verbs import CONFIG, CONFIGFILES, DATA, VerbGroup, argument, run_of

RATINGS = VerbGroup("ratings", "rounds in which clinicians rate answers or answer the questions themselves")
ROUND = argument("--round", required=True, help="name of the round, for example r01")
FORM = argument(
    "--form", type=Path, default=Path("config/rating.yaml"), help="axes, errors, and how rounds are drawn (default: config/rating.yaml)"
)
FOLDER = argument("--folder", type=Path, default=Path("data/ratings"), help="folder of the rounds")


@RATINGS.verb(
    "round",
    ROUND,
    argument(
        "--mode",
        choices=("rate", "answer", "workup"),
        default="rate",
        help="rate the answers of models, answer the questions, or work up cases",
    ),
    CONFIGFILES,
    FORM,
    FOLDER,
    example="--round r01",
)
def make_rating_round(args: Namespace) -> Iterator[str]:
    """Freeze a round for clinicians: sample, packets and key.

    Give each rater one page; the key stays here. An existing round is never replaced. With --mode answer, the sample is one of questions,
    which the clinicians answer themselves; with --mode workup, they ask for the evidence as well.
    """
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.ratings.answering.answer_rounds import freeze_reader_round
    from neuralmedbench.ratings.folders import reader_round_lines, require_new, round_lines, write_round
    from neuralmedbench.ratings.form import read_form
    from neuralmedbench.ratings.rounds import freeze_round
    from neuralmedbench.recording.reader_answers import round_material, round_questions
    from neuralmedbench.records.items import Strategy

    folder = args.folder / wildcard(args.round)
    require_new(folder)
    run, form = run_of(args), read_form(args.form)
    if args.mode != "rate":
        strategy = Strategy.WORKUP if args.mode == "workup" else Strategy.DIRECT
        questions = round_questions(run, form.answers.families, strategy=strategy)
        asked = freeze_reader_round(args.round, form.answers, questions)
        write_round(folder, asked)
        yield from reader_round_lines(folder, asked)
        return
    frozen = freeze_round(args.round, round_material(run, form))
    write_round(folder, frozen)
    yield from round_lines(folder, frozen)


@RATINGS.verb(
    "adjudicate",
    argument("--round", required=True, help="name of the round, for example r01; its folder holds the ratings"),
    argument(
        "--name",
        default="adjudication",
        help="name of the packet (default: adjudication); name a later one for example adjudication-2: it leaves out answers of earlier packets",
    ),
    argument("--unfinished", action="store_true", help="do not wait for raters without a complete export"),
    CONFIGFILES,
    FORM,
    FOLDER,
    example="--round r01",
)
def make_adjudication(args: Namespace) -> Iterator[str]:
    """Make a packet for an adjudicator: the answers on which the raters of a round disagree.

    An existing packet is never replaced.
    """
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.ratings.adjudication import adjudication_lines, freeze_stored_adjudication, require_complete, require_new_name
    from neuralmedbench.ratings.folders import write_round
    from neuralmedbench.ratings.form import read_form
    from neuralmedbench.recording.reader_answers import round_material

    folder = args.folder / wildcard(args.round)
    require_new_name(folder, args.name)
    run, form = run_of(args), read_form(args.form)
    if not args.unfinished:
        require_complete(folder, form)
    frozen = freeze_stored_adjudication(folder, args.name, round_material(run, form))
    write_round(folder / args.name, frozen)
    yield from adjudication_lines(folder, args.name, frozen)


@RATINGS.verb(
    "export-redcap",
    ROUND,
    FORM,
    FOLDER,
    example="--round r01",
)
def export_redcap(args: Namespace) -> Iterator[str]:
    """Write the form of a round for REDCap: a data dictionary, and one import file per rater."""
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.files.tables import write_table
    from neuralmedbench.ratings.exports import RoundKey, read_file
    from neuralmedbench.ratings.form import read_form
    from neuralmedbench.ratings.imports import KEY_FILE
    from neuralmedbench.ratings.redcap import DICTIONARY, RECORD, data_dictionary, records_of

    folder = args.folder / wildcard(args.round)
    key, form = read_file(folder / KEY_FILE, RoundKey), read_form(args.form)
    write_table(folder / "redcap" / "dictionary.csv", data_dictionary(form, key), DICTIONARY, guarded=False)
    for packet in key.packets:
        write_table(folder / "redcap" / f"{packet.rater}.csv", records_of(packet, key.rubric), RECORD, guarded=False)
    yield (
        f"{folder.as_posix()}/redcap: dictionary.csv and {len(key.packets)} import files; give each rater a project of their own, and the page"
    )


@RATINGS.verb(
    "import-redcap",
    ROUND,
    argument("--export", type=Path, required=True, help="CSV export of REDCap: raw data, no labels"),
    FORM,
    FOLDER,
    example="--round r01 --export FILE.csv",
)
def import_redcap(args: Namespace) -> Iterator[str]:
    """Convert a raw REDCap export into tables of a round, which the workflow then imports."""
    from datetime import UTC, datetime

    from neuralmedbench.config.load import wildcard
    from neuralmedbench.files.tables import write_table
    from neuralmedbench.ratings.exports import COLUMNS, RoundKey, read_file
    from neuralmedbench.ratings.form import read_form
    from neuralmedbench.ratings.imports import KEY_FILE
    from neuralmedbench.ratings.redcap import read_export

    folder = args.folder / wildcard(args.round)
    key = read_file(folder / KEY_FILE, RoundKey)
    now = datetime.now(UTC)
    for rater, lines in read_export(args.export, read_form(args.form), key, f"{now:%Y-%m-%dT%H:%M:%SZ}").items():
        path = folder / f"rating_redcap_{rater}_{now:%Y%m%dT%H%M%SZ}.csv"
        # one file per rater and export, so that no earlier one is overwritten
        write_table(path, lines, COLUMNS, guarded=False)
        yield f"{path.as_posix()}: {'complete' if lines[0]['complete'] == 'true' else 'not complete'}"


@RATINGS.verb(
    "import-readers",
    argument("--round", required=True, help="name of the round, for example h01"),
    FOLDER,
    CONFIG,
    DATA,
    example="--round h01",
)
def import_reader(args: Namespace) -> Iterator[str]:
    """Import the answers of clinicians in a round of questions; each clinician becomes a model.

    The folder of the round holds its key and the JSON files that the readers returned. Nothing is written unless all files are valid.
    """
    from neuralmedbench.config.load import wildcard
    from neuralmedbench.recording.reader_answers import import_readers, reader_lines

    readers = import_readers(args.folder / wildcard(args.round), config=args.config, data=args.data)
    yield from reader_lines(readers)
