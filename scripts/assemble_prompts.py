"""Render the requests to models, one per item, arm and strategy; refuse a picture that no passed audit covers."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.load import load_benchmark
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.prompts.coverage import check_altered, check_pictures, check_scans
from neuralmedbench.records.arm_changes import AlteredPicture
from neuralmedbench.records.case import SliceRow
from neuralmedbench.records.items import Disclosure, Exemplar, Item
from neuralmedbench.records.requests import Request
from neuralmedbench.records.views import ViewScan
from neuralmedbench.runtime.commands import run_command


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", required=True, help="name of the benchmark")
    parser.add_argument("--config", type=Path, default=Path("config"), help="folder of the configuration")
    parser.add_argument("--items", type=Path, required=True, help="table of items")
    parser.add_argument("--disclosures", type=Path, required=True, help="table of disclosures")
    parser.add_argument("--exemplars", type=Path, required=True, help="table of examples for few-shot prompts")
    parser.add_argument("--audit", type=Path, required=True, help="audit.json of the de-identification")
    parser.add_argument("--slices", type=Path, help="slices.parquet (scans)")
    parser.add_argument("--altered", type=Path, help="table of the altered pictures, if an arm has some")
    parser.add_argument("--views", type=Path, help="table of the slices that may be asked for (strategy viewer)")
    parser.add_argument("--out", type=Path, required=True, help="table of requests to write")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    config = load_benchmark(args.config, args.benchmark)
    items = read_records(args.items, Item)
    slices = read_records(args.slices, SliceRow) if args.slices else []
    altered = read_records(args.altered, AlteredPicture) if args.altered else []
    arms = load_arms(args.config, config.arms, args.benchmark)
    views = read_records(args.views, ViewScan) if args.views else []
    told = read_records(args.disclosures, Disclosure), read_records(args.exemplars, Exemplar)
    material = CaseMaterial(*told, arms, altered, views, oracle=[row for row in slices if row.oracle])
    audit = read_audit(args.audit)
    check_pictures([*items, *(exemplar.item for exemplar in material.exemplars)], slices, audit)
    check_scans(views, audit)
    check_altered(altered, items)
    requests = assemble(items, material, config, Templates(args.config / "prompts"))
    write_records(args.out, Request, requests, key=lambda request: (request.item_id, request.arm, request.strategy))
    return 0


if __name__ == "__main__":
    raise SystemExit(run_command(main))
