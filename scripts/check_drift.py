"""Ask a model 20 fixed items again and test for a silent change (a command for people: no rule calls it).

The answers are held against those in the model's ledger, of the same revision. Exit code 0: no sign of a change; 3: there is one.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.json_files import write_json
from neuralmedbench.files.tables import read_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.models.run_limits import RunLimits
from neuralmedbench.prompts.coverage import check_asked
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.requests import Request
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.tables.drift import DriftTarget, check_drift

CHANGED = 3


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="name of the model; it need not be in the run list")
    parser.add_argument("--benchmark", default="demo", help="name of the benchmark")
    parser.add_argument("--configfiles", type=Path, nargs="*", default=[], help="configuration files of the run's command line")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    from neuralmedbench.config.workflow import read_run

    args = parse_args(argv)
    config, name = read_run(args.configfiles).config, args.benchmark
    if config.replay:
        message = "the configuration says `replay`: nothing may be asked; give one that does not"
        raise ConfigError(message)
    requests = read_records(Path(f"data/prompts/{name}.parquet"), Request)
    check_asked(requests, read_audit(Path(f"data/deidentified/{name}/audit.json")))
    drift = check_drift(
        requests,
        {row.item_id: row for row in read_records(Path(f"data/items/{name}.parquet"), Item)},
        {row.item_id: row for row in read_records(Path(f"data/gold/{name}.parquet"), Gold)},
        DriftTarget.of(name, args.model),
        vocabulary=read_vocabulary(Path(config.vocabulary)),
        control=RunLimits.of(config),
        settings=IntervalSettings(config.statistics.resamples, config.statistics.seed, config.statistics.confidence),
    )
    write_json(Path(f"results/drift/{name}/{args.model}.json"), drift.found)
    print("\n".join(drift.lines))
    return CHANGED if drift.changed else 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
