"""Render the requests to models, one per item, arm and strategy; refuse a picture that no passed audit covers."""

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
from neuralmedbench.runtime.options import Command


def assemble_prompts(
    *,
    benchmark: str,
    items: Path,
    disclosures: Path,
    exemplars: Path,
    audit: Path,
    out: Path,
    slices: Path | None = None,
    altered: Path | None = None,
    views: Path | None = None,
    config: Path = Path("config"),
) -> None:
    own = load_benchmark(config, benchmark)
    asked = read_records(items, Item)
    rows = read_records(slices, SliceRow) if slices else []
    material = CaseMaterial(
        read_records(disclosures, Disclosure),
        read_records(exemplars, Exemplar),
        load_arms(config, own.arms, benchmark),
        read_records(altered, AlteredPicture) if altered else [],
        read_records(views, ViewScan) if views else [],
        oracle=[row for row in rows if row.oracle],
    )
    passed = read_audit(audit)
    check_pictures([*asked, *(exemplar.item for exemplar in material.exemplars)], rows, passed)
    check_scans(material.views, passed)
    check_altered(material.altered, asked)
    requests = assemble(asked, material, own, Templates(config / "prompts"))
    write_records(out, Request, requests, key=lambda request: (request.item_id, request.arm, request.strategy))


main = Command(assemble_prompts)

if __name__ == "__main__":
    raise SystemExit(run_command(main))
