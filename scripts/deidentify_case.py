"""De-identify one case: headers, sidecars, file names, face, notes and record; anything that may be left quarantines the case."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.deidentification import read_element_arguments
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.deid.cleaning import CleaningPolicy, TextRules
from neuralmedbench.deid.notes.languages import load_name_model
from neuralmedbench.deid.review.accepted import read_accepted_leaks
from neuralmedbench.deid.stage import deidentify_case, empty_outputs
from neuralmedbench.files.cases import run_case_stage
from neuralmedbench.files.pseudonyms import read_key
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark; its YAML file names the key file, so that no log does")
    parser.add_argument("--profile", choices=("pseudonymised", "safe_harbor"), required=True, help="de-identification profile")
    parser.add_argument("--options", nargs="+", required=True, help="options of PS3.15 Annex E, by code (see docs/configuration.md)")
    parser.add_argument("--elements", nargs="*", default=[], help="own rules for single elements, each in JSON")
    parser.add_argument("--burned-in", choices=("hide", "drop"), default="hide", help="how text burned into pixels is handled")
    parser.add_argument("--subjects", choices=("phantom", "public", "patient"), default="patient", help="kind of subject")
    parser.add_argument("--case", type=Path, required=True, help="case.json of the ingested case")
    parser.add_argument("--planted", type=Path, nargs="*", help="answer_key.json of a phantom, to score its cleaning")
    parser.add_argument("--cut-sections", nargs="*", default=[], help="headings of the sections to cut from notes")
    parser.add_argument("--ner-model", type=Path, help="folder of a local model that recognises names")
    parser.add_argument("--ner-language", default="en", help="language of that model")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--out", type=Path, required=True, help="case.json to write; BIDS folders and text/ are written next to it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    key = read_key(load_benchmark(args.config, args.benchmark).key_file)
    folder: Path = args.out.parent
    model = load_name_model(args.ner_model, args.ner_language) if args.ner_model else None
    policy = CleaningPolicy(
        key=key,
        profile=args.profile,
        options=tuple(args.options),
        texts=TextRules(tuple(args.cut_sections), model),
        burned_in=args.burned_in,
        subjects=args.subjects,
        elements=read_element_arguments(args.elements),
        accepted=read_accepted_leaks(args.config, args.benchmark).accepted,
    )
    planted = args.planted[0] if args.planted else None
    empty_outputs(folder)
    run_case_stage("deidentify", args.case, args.out, lambda case, source: deidentify_case(case, source, folder, policy, planted))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
