"""Items whose requests are equal: they were answered by one call a sample, so that one draw stands for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from neuralmedbench.estimates.intervals import Ints, codes_of
from neuralmedbench.records.items import Item
from neuralmedbench.records.responses import Response
from neuralmedbench.records.words import counted


def request_codes(items: Sequence[Item], responses: Iterable[Response]) -> dict[tuple[str, str], Ints]:
    """Return a code of the request of every item, by arm and strategy, where items share one.

    Parameters
    ----------
    items : sequence of Item
        The items, in the order of the arrays.
    responses : iterable of Response
        The responses of one model.

    Returns
    -------
    dict of (str, str) to ndarray of int, shape (items,)
        Equal for items whose samples came from the same calls; only arms in which there are such items. An item without a call has a code
        of its own.
    """
    place = {item.item_id: index for index, item in enumerate(items)}
    calls: dict[tuple[str, str], dict[int, tuple[int, tuple[str, ...]]]] = {}
    for row in responses:
        if row.call_keys and row.item_id in place:
            # the first sample decides: the calls of equal requests are equal in all of them
            first = calls.setdefault((row.arm, row.strategy), {})
            index, sample = place[row.item_id], (row.repeat, row.call_keys)
            first[index] = min(first.get(index, sample), sample)
    found = {}
    for arm, first in calls.items():
        if len(set(first.values())) < len(first):
            found[arm] = codes_of([repr(first[index]) if index in first else f"item {index}" for index in range(len(items))])
    return found


def joined_clusters(patients: Ints, requests: Iterable[Ints]) -> Ints:
    """Join patients who share a request: they are one cluster.

    Parameters
    ----------
    patients : ndarray of int, shape (items,)
        Patients, from 0 without gaps.
    requests : iterable of ndarray of int, shape (items,)
        Codes of the requests under one or several arms.

    Returns
    -------
    ndarray of int, shape (items,)
        Clusters: connected components of patients and requests.

    Examples
    --------
    Patients 0 and 1 share a request; patient 2 stands alone.

    >>> joined_clusters(np.array([0, 0, 1, 2]), [np.array([0, 1, 1, 2])]).tolist()
    [0, 0, 0, 1]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    clusters = patients
    for codes in requests:
        size = int(clusters.max()) + 1
        nodes = size + int(codes.max()) + 1
        graph = coo_array((np.ones(len(codes)), (clusters, size + codes)), shape=(nodes, nodes))
        clusters = connected_components(graph, directed=False)[1][clusters].astype(np.int64)
    return codes_of(clusters)


def shared_note(items: int, requests: int) -> str:
    """State that items share requests; empty if they do not.

    Examples
    --------
    >>> shared_note(145, 1), shared_note(145, 12), shared_note(145, 145)
    ('one request shared by 145 items', '12 requests shared by 145 items', '')
    """
    if requests >= items:
        return ""
    return f"one request shared by {items} items" if requests == 1 else f"{counted(requests, 'request')} shared by {items} items"


def paired_members(items: Sequence[Item]) -> Mapping[str, list[int]]:
    """Return the places of the items of every pair; an item without a partner is no pair."""
    members: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        if item.pair_id:
            members.setdefault(item.pair_id, []).append(place)
    return {pair: places for pair, places in members.items() if len(places) > 1}
