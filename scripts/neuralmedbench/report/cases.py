"""The case browser: one compressed block per case, previews of its pictures, and the selection of cases that fit on the page."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import bytes_with_digest
from neuralmedbench.records.bundle import BundleCandidate, BundleImage, BundleResponse, BundleTurn, CaseBundle
from neuralmedbench.records.items import is_headline
from neuralmedbench.tables.outcomes import DIRECT

ITEM = ("item_id", "family", "level", "question", "context", "answer", "findings", "established", "options", "facts", "place")
RESPONSE = (
    "model",
    "arm",
    "strategy",
    "repeat",
    "state",
    "text",
    "differential",
    "passed",
    "counted",
    "relation",
    "seen",
    "missing",
    "place",
)
"""Fields of a response on the page, in addition to its evidence, grades and turns."""

Json = dict[str, Any]


@dataclass(frozen=True)
class CaseBlock:
    """One case of the browser.

    Attributes
    ----------
    anchor : str
        HTML id of the case on the page.
    benchmark, case_id, answer : str
        Benchmark, case and reference diagnosis.
    index : list of dict
        One entry per item for the filters: level, family, arms, strategies, and by model the numbers of passing and of all answers under
        `full` and `direct`.
    pictures : frozenset of str
        Digests of the pictures of the items.
    packed : str
        Items with all responses, from `pack`; empty if the page has no room for them.
    title : str
        Its name in the list.
    question : str
        The beginning of its question, if it has a single item; empty otherwise.
    """

    anchor: str
    benchmark: str
    case_id: str
    answer: str
    index: list[Json]
    pictures: frozenset[str]
    packed: str
    title: str = ""
    question: str = ""

    @property
    def flagged(self) -> bool:
        """True if a graded answer does not pass."""
        return any(passes < answers for entry in self.index for passes, answers in entry["results"].values())


def case_blocks(bundles: list[CaseBundle]) -> list[CaseBlock]:
    """Return the blocks of one benchmark, sorted by case."""
    cases: dict[str, list[CaseBundle]] = defaultdict(list)
    for bundle in bundles:
        cases[bundle.case_id].append(bundle)
    return [_block(case_id, number, cases[case_id]) for number, case_id in enumerate(sorted(cases), start=1)]


def case_index(blocks: Sequence[CaseBlock]) -> Json:
    """Return the data of filters and summaries: `models`, and `cases` by anchor, with results in the order of `models` (null for none)."""
    models = sorted({model for block in blocks for entry in block.index for model in entry["results"]})
    return {
        "models": models,
        "cases": {
            block.anchor: {
                "benchmark": block.benchmark,
                "items": [entry | {"results": [entry["results"].get(model) for model in models]} for entry in block.index],
            }
            for block in blocks
        },
    }


def pack_bytes(content: bytes) -> str:
    """Compress to gzip in base64: its characters have no meaning in HTML, whatever the content."""
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def pack(value: Json) -> str:
    """Compress a JSON value."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return pack_bytes(text.encode())


UNKNOWN = "unknown"
"""The sequence of a picture that has no label."""

KEYED = re.compile(r"[0-9a-f]{12,}")
"""A case id that `nmb cases list` or the demo made of a key: nothing to read."""


def _title(case_id: str, number: int, bundles: list[CaseBundle]) -> str:
    """Return the name of a case in the list: its number in the run instead of a keyed id, and what its pictures are if their labels say so."""
    sequences = dict.fromkeys(image.label.partition(", ")[0] for bundle in bundles for image in bundle.images if ", " in image.label)
    known = [name for name in sequences if name != UNKNOWN]
    return ", ".join([f"Case {number}" if KEYED.fullmatch(case_id) else case_id, *known])


LONGEST_QUESTION = 140


def _question(bundles: list[CaseBundle]) -> str:
    """Return the beginning of a question: of a case with several the reference says more."""
    if len(bundles) > 1:
        return ""
    words = " ".join(bundles[0].question.split())
    return words if len(words) <= LONGEST_QUESTION else f"{words[:LONGEST_QUESTION].rpartition(' ')[0] or words[:LONGEST_QUESTION]}…"


def _block(case_id: str, number: int, bundles: list[CaseBundle]) -> CaseBlock:
    return CaseBlock(
        anchor=f"case-{bundles[0].benchmark}-{case_id}",
        benchmark=bundles[0].benchmark,
        case_id=case_id,
        title=_title(case_id, number, bundles),
        question=_question(bundles),
        answer=next((bundle.answer for bundle in bundles if bundle.answer), ""),
        index=[_index(bundle) for bundle in bundles],
        pictures=frozenset(image.sha256 for bundle in bundles for image in bundle.images),
        packed=pack({"items": [_item(bundle) for bundle in bundles]}),
    )


def _index(bundle: CaseBundle) -> Json:
    results: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for response in bundle.responses:
        if is_headline(response):
            results[response.model][0] += bool(response.passed)
            # results count answers to items with a reference; a missing one, and one without a grade, is left out
            results[response.model][1] += bool(bundle.answer) and response.passed is not None
    arms = sorted({response.arm for response in bundle.responses})
    # `direct` comes first, also in runs without it
    strategies = sorted({DIRECT} | {response.strategy for response in bundle.responses}, key=lambda name: (name != DIRECT, name))
    return {"level": bundle.level, "family": bundle.family, "arms": arms, "strategies": strategies, "results": dict(results)}


def _item(bundle: CaseBundle) -> Json:
    return {name: getattr(bundle, name) for name in ITEM} | {
        "images": [[image.sha256, image.label] for image in bundle.images],
        "responses": _columns(bundle.responses),
    }


def _columns(responses: tuple[BundleResponse, ...]) -> Json:
    """Return responses by column: equal values of many responses are adjacent, and compress well."""
    return {name: [getattr(response, name) for response in responses] for name in RESPONSE} | {
        "evidence": [[[one.speaks_for, one.against] for one in response.evidence] for response in responses],
        "grades": [
            [[grade.grader, grade.criterion, _number(grade.value), grade.explanation] for grade in response.grades]
            for response in responses
        ],
        "turns": [[[turn.answer, turn.told, _step(turn)] for turn in response.turns] for response in responses],
        "candidates": [_candidates(response.candidates) for response in responses],
    }


def _step(turn: BundleTurn) -> Json | None:
    """Return what a work-up adds to a turn of a dialogue."""
    if not turn.outcome and not turn.candidates:
        return None
    step = {name: getattr(turn, name) for name in ("request", "outcome", "given", "images")}
    return step | {"candidates": _candidates(turn.candidates)}


def _candidates(candidates: Sequence[BundleCandidate]) -> list[list[object]]:
    return [[one.name, one.probability, one.right] for one in candidates]


def _number(value: float | None) -> float | None:
    """Replace NaN, which JSON does not have: the page could not parse it."""
    return None if value is None or math.isnan(value) else value


PREVIEW_PX = {250: 768, 1_000: 512}
SMALLEST_PREVIEW_PX = 256
"""Longer side of a preview in pixels, at most: of a page with so many pictures or fewer, and of every other page."""

PREVIEW_QUALITY = 40
"""Quality of the WebP encoder, 0 to 100."""


def previews(images: Mapping[str, BundleImage], root: Path, blocks: Sequence[CaseBlock], most: float = math.inf) -> dict[str, str]:
    """Return previews of the pictures of some cases by their digest; pictures missing on this machine get none.

    If answers and pictures exceed `most` characters, those that the page has no room for in any case are not made (`leave_out_cases`).
    DataError if a picture is not the one that was sent.
    """
    longest = next((size for fewest, size in PREVIEW_PX.items() if len(images) <= fewest), SMALLEST_PREVIEW_PX)
    made = dict[str, str]()
    for block in reversed(_in_order_of_leaving(blocks)):
        if most < 0:
            break
        new = {digest: preview(images[digest], root, longest) for digest in block.pictures - made.keys()}
        made |= new
        most -= len(block.packed) + sum(map(len, new.values()))
    return {digest: made[digest] for digest in images if made.get(digest)}


def preview(image: BundleImage, root: Path, longest: int) -> str:
    """Return a small WebP copy of a picture in base64; empty if the picture is missing on this machine."""
    from PIL import Image

    path = root / image.path
    if not path.is_file():
        return ""
    content = bytes_with_digest(path, image.sha256)
    if content is None:
        message = (
            f"picture {image.sha256[:12]} of the case browser is not the one that was sent; run `cut_slices` and the later rules again"
        )
        raise DataError(message)
    # WebP keeps a page of many cases small; the models were sent the original
    small = Image.open(io.BytesIO(content)).convert("RGB")
    small.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=PREVIEW_QUALITY, method=6)
    return base64.b64encode(buffer.getvalue()).decode()


def _in_order_of_leaving(blocks: Sequence[CaseBlock]) -> list[CaseBlock]:
    """Return cases in the order in which a page without room loses their answers; those with a wrong answer are last: readers look for them."""
    return sorted(blocks, key=lambda block: (block.flagged, hashlib.sha256(block.anchor.encode()).hexdigest()))


def leave_out_cases(blocks: Sequence[CaseBlock], pictures: Mapping[str, str], excess: int) -> tuple[list[CaseBlock], dict[str, str]]:
    """Leave out answers and pictures of cases, one by one, until `excess` characters are saved.

    Cases in which every graded answer passes go first; ties are broken by a digest of the anchor, which is independent of the answers.
    """
    # a picture is dropped with the last case that shows it
    used = Counter(digest for block in blocks for digest in block.pictures)
    emptied = set[str]()
    for block in _in_order_of_leaving(blocks):
        if excess <= 0:
            break
        emptied.add(block.anchor)
        used.subtract(block.pictures)
        # saved: the packed answers, and the pictures that no other case shows
        excess -= len(block.packed) + sum(len(pictures.get(digest, "")) for digest in block.pictures if not used[digest])
    kept = [replace(block, packed="") if block.anchor in emptied else block for block in blocks]
    return kept, {digest: text for digest, text in pictures.items() if used[digest]}
