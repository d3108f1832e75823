"""The case browser: one block of JSON a case, turned into elements by the page when the case is opened."""

from __future__ import annotations

import base64
import io
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.io.files import bytes_with_digest
from neuralmedbench.records.bundle import BundleImage, BundleResponse, CaseBundle

PREVIEW_PX = 256
PREVIEW_QUALITY = 62
FULL, DIRECT = "full", "direct"
RESPONSE = ("model", "arm", "strategy", "repeat", "state", "text", "differential", "passed", "counted", "relation", "seen", "missing")
"""What the page is told of a response, in this order; behind them stand its evidence, its grades and its turns."""

Json = dict[str, Any]


@dataclass(frozen=True)
class CaseBlock:
    """One case of the browser.

    Attributes
    ----------
    anchor : str
        Id of its place on the page.
    benchmark, case_id, answer : str
        Whose, and the reference diagnosis.
    index : list of dict
        For the filters: level, family, arms, strategies, and by model how many of how many answers under `full` and `direct` pass.
    data : dict
        Pictures and items, as the page's script reads them. Every response is a list in the order of `columns`, whose values are places
        in `leaves`: a hundred answers say much the same, and what is equal stands on the page once.
    """

    anchor: str
    benchmark: str
    case_id: str
    answer: str
    index: list[Json]
    data: Json

    @property
    def results(self) -> dict[str, list[int]]:
        """Passing and scored answers under `full` and `direct` by model, over all items; none are scored without reference or grade."""
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for entry in self.index:
            for model, (passes, answers) in entry["results"].items():
                sums[model][0] += passes
                sums[model][1] += answers
        return dict(sorted(sums.items()))


def case_blocks(bundles: list[CaseBundle], root: Path) -> list[CaseBlock]:
    """Make the blocks of one benchmark, sorted by case.

    Parameters
    ----------
    bundles : list of CaseBundle
        Items of the benchmark.
    root : Path
        Repository root: the pictures' paths are relative to it.

    Raises
    ------
    DataError
        If a picture is not the one that was sent.
    """
    cases: dict[str, list[CaseBundle]] = defaultdict(list)
    for bundle in bundles:
        cases[bundle.case_id].append(bundle)
    return [_block(case_id, cases[case_id], root) for case_id in sorted(cases)]


def _block(case_id: str, bundles: list[CaseBundle], root: Path) -> CaseBlock:
    pictures = {image.sha256: image for bundle in bundles for image in bundle.images}
    pool = _Pool()
    items = [_item(bundle, pool) for bundle in bundles]
    return CaseBlock(
        anchor=f"case-{bundles[0].benchmark}-{case_id}",
        benchmark=bundles[0].benchmark,
        case_id=case_id,
        answer=next((bundle.answer for bundle in bundles if bundle.answer), ""),
        index=[_index(bundle) for bundle in bundles],
        data={
            "pictures": {digest: preview(image, root) for digest, image in sorted(pictures.items())},
            "columns": [*RESPONSE, "evidence", "grades", "turns"],
            "leaves": pool.leaves,
            "items": items,
        },
    )


class _Pool:
    """Values that stand on the page once, whoever says them."""

    def __init__(self) -> None:
        self._places: dict[tuple[type, Any], int] = {}

    @property
    def leaves(self) -> list[Any]:
        return [value for _, value in self._places]

    def places(self, value: Any) -> Any:
        """Give a value with the place of each of its leaves in their stead; 1, 1.0 and true are three."""
        if isinstance(value, list | tuple):
            return [self.places(part) for part in value]
        return self._places.setdefault((type(value), value), len(self._places))


def _index(bundle: CaseBundle) -> Json:
    results: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for response in bundle.responses:
        if (response.arm, response.strategy) == (FULL, DIRECT):
            results[response.model][0] += bool(response.passed)
            ungraded = response.state == "ok" and response.passed is None
            results[response.model][1] += bool(bundle.answer) and not ungraded
    arms = sorted({response.arm for response in bundle.responses})
    strategies = sorted({DIRECT} | {response.strategy for response in bundle.responses}, key=lambda name: (name != DIRECT, name))
    return {"level": bundle.level, "family": bundle.family, "arms": arms, "strategies": strategies, "results": dict(results)}


def _item(bundle: CaseBundle, pool: _Pool) -> Json:
    names = ("item_id", "family", "level", "question", "context", "answer", "findings", "established", "options", "facts")
    return {name: getattr(bundle, name) for name in names} | {
        "images": [[image.sha256, image.label] for image in bundle.images],
        "responses": [pool.places(_response(response)) for response in bundle.responses],
    }


def _response(response: BundleResponse) -> list[Any]:
    evidence = [[one.speaks_for, one.against] for one in response.evidence]
    grades = [[grade.grader, grade.criterion, grade.value, grade.explanation] for grade in response.grades]
    turns = [[turn.answer, turn.told] for turn in response.turns]
    return [*(getattr(response, name) for name in RESPONSE), evidence, grades, turns]


def preview(image: BundleImage, root: Path) -> str:
    """Give a small WebP copy of a picture as a data URI; empty when the picture is not on this machine.

    Raises
    ------
    DataError
        If the file is not the picture that was sent.
    """
    from PIL import Image

    path = root / image.path
    if not path.is_file():
        return ""
    content = bytes_with_digest(path, image.sha256)
    if content is None:
        message = f"picture {image.sha256[:12]} of the case browser is not the one that was sent; run `cut_slices` and what follows again"
        raise DataError(message)
    small = Image.open(io.BytesIO(content)).convert("RGB")
    small.thumbnail((PREVIEW_PX, PREVIEW_PX), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=PREVIEW_QUALITY, method=4)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
