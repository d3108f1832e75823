"""Curate an imported data set in four stages (a command for people: no rule calls it).

Complete cases, experts' decisions, structured ground truth, and no question that a pool of reference models solves. Writes kept.csv,
removed.csv and curation.json into data/questions/<benchmark>/ and, with --to, the kept questions as a benchmark of another name.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.benchmarks.curation_files import curate_folder, read_scores, write_curated, write_curated_yaml
from neuralmedbench.benchmarks.question_items import read_questions
from neuralmedbench.config.curation import load_curation
from neuralmedbench.config.load import wildcard
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", required=True, help="name of the imported set")
    parser.add_argument("--settings", type=Path, help="stages and thresholds; config/curation.yaml when absent")
    parser.add_argument("--decisions", type=Path, metavar="CSV", help="the experts' decisions: case_id, expert, decision (keep or drop)")
    parser.add_argument("--to", metavar="NAME", help="name of the curated benchmark; without it only the lists are written")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data")
    parser.add_argument("--scores", type=Path, default=Path("results/scores"), help="folder of the scores")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    path = args.settings or args.config / "curation.yaml"
    config = load_curation(path)
    folder = args.data / "questions" / wildcard(args.benchmark)
    curated = wildcard(args.to) if args.to else ""
    pool = config.pool if "challenge" in config.stages else ()
    scores = read_scores(args.scores / args.benchmark, args.config, pool)
    record, result = curate_folder(folder, (path, config), args.decisions, scores, curated)
    for stage in record.stages:
        print(f"{stage.stage}: {stage.entered} questions, {stage.removed} removed")
    print(f"{record.kept} kept; {folder.as_posix()}/removed.csv says why the others went")
    if curated:
        target = args.data / "questions" / curated
        written = write_curated_yaml(args.config, args.benchmark, curated, target, pool)
        write_curated(read_questions(folder), result, folder, target)
        print(f"config/benchmarks/{curated}.yaml {'written' if written else 'was there and is left as it is'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
