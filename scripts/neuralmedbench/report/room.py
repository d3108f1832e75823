"""What a page has room for: answers of some cases are left out of one that a browser could not open."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from neuralmedbench.report.cases import CaseBlock


def with_room(blocks: Sequence[CaseBlock], pictures: Mapping[str, str], excess: int) -> tuple[list[CaseBlock], dict[str, str]]:
    """Leave out the answers and pictures of as few cases as it takes to save some characters.

    Parameters
    ----------
    blocks : sequence of CaseBlock
        All cases of the page.
    pictures : mapping of str to str
        Previews by digest.
    excess : int
        Characters to save, at least.

    Returns
    -------
    blocks : list of CaseBlock
        In the same order, some with nothing packed. Those in which every graded answer passes come first; among equals a digest of the
        anchor decides, which knows nothing of the answers.
    pictures : dict of str to str
        Those that a case with answers still shows.
    """
    used = Counter(digest for block in blocks for digest in block.pictures)
    emptied = set[str]()
    for block in sorted(blocks, key=lambda block: (block.flagged, hashlib.sha256(block.anchor.encode()).hexdigest())):
        if excess <= 0:
            break
        emptied.add(block.anchor)
        used.subtract(block.pictures)
        excess -= len(block.packed) + sum(len(pictures.get(digest, "")) for digest in block.pictures if not used[digest])
    kept = [replace(block, packed="") if block.anchor in emptied else block for block in blocks]
    return kept, {digest: text for digest, text in pictures.items() if used[digest]}
