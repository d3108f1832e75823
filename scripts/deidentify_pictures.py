"""De-identify the loose pictures of a benchmark: rewrite them without metadata, search for burned-in text, and clean the texts of own cases."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.load import load_benchmark
from neuralmedbench.deid.cleaning import CleaningPolicy, TextRules
from neuralmedbench.deid.notes.languages import load_name_model
from neuralmedbench.deid.pictures import deidentify_picture_cases, deidentify_pictures
from neuralmedbench.deid.review.accepted import read_accepted_leaks
from neuralmedbench.files.cases import read_pictures, write_pictures
from neuralmedbench.files.digests import sha256_of
from neuralmedbench.files.pseudonyms import read_key
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", help="own cases: the benchmark; its YAML file names the key file, so that no log does")
    parser.add_argument("--profile", choices=("pseudonymised", "safe_harbor"), default="pseudonymised", help="de-identification profile")
    parser.add_argument("--options", nargs="+", default=[], help="options of PS3.15 Annex E, by code (see docs/configuration.md)")
    parser.add_argument("--cut-sections", nargs="*", default=[], help="headings of the sections to cut from notes")
    parser.add_argument("--ner-model", type=Path, help="folder of a local model that recognises names")
    parser.add_argument("--ner-language", default="en", help="language of that model")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--pictures", type=Path, required=True, help="pictures.json of the ingested pictures")
    parser.add_argument("--burned-in", choices=("hide", "drop", "keep"), default="hide", help="how text burned into pixels is handled")
    parser.add_argument("--subjects", choices=("phantom", "public", "patient"), default="patient", help="kind of subject")
    parser.add_argument("--out", type=Path, required=True, help="pictures.json to write; pictures/ and sub-<case>/ are written next to it")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    source, out = args.pictures.parent, args.out.parent
    shutil.rmtree(out / "pictures", ignore_errors=True)
    (out / "pictures").mkdir(parents=True)
    ingested = read_pictures(args.pictures)
    how = {"burned_in": args.burned_in, "subjects": args.subjects}
    if ingested.cases:
        model = load_name_model(args.ner_model, args.ner_language) if args.ner_model else None
        texts = TextRules(tuple(args.cut_sections), model)
        key = read_key(load_benchmark(args.config, args.benchmark).key_file)
        accepted = read_accepted_leaks(args.config, args.benchmark).accepted
        policy = CleaningPolicy(key=key, profile=args.profile, options=tuple(args.options), texts=texts, accepted=accepted, **how)
        manifest = deidentify_picture_cases(ingested, source, out, policy)
    else:
        manifest = deidentify_pictures(ingested, source, sha256_of(args.pictures), out, **how)
    write_pictures(args.out, manifest)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
