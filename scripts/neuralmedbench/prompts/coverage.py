"""Refuse to send a picture unless a passed audit covers the scan that it shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from neuralmedbench.errors import DeidentificationError
from neuralmedbench.records.arm_changes import AlteredPicture
from neuralmedbench.records.case import Audit, SliceRow
from neuralmedbench.records.items import Item
from neuralmedbench.records.requests import Request
from neuralmedbench.records.views import SliceView, ViewScan


def check_asked(requests: Sequence[Request], audit: Audit) -> None:
    """Refuse to call a model unless the current audit passed and covers every picture of the requests.

    A withdrawn signature or an excluded case stops calls even for prompts that are already rendered.

    Parameters
    ----------
    requests : sequence of Request
        All requests of a benchmark; none for a grader, which gets no pictures.
    audit : Audit
        Audit of the same benchmark.

    Raises
    ------
    DeidentificationError
        If the audit did not pass, or does not cover a picture.
    """
    images = (image for request in requests for turn in request.turns for image in turn.images)
    of_facts = (image for request in requests if request.inquiry for fact in request.inquiry.facts for image in fact.images)
    require_covered(audit, {image.volume_sha256 for image in chain(images, of_facts)})
    check_scans((scan for request in requests if request.viewer for scan in request.viewer.scans), audit)


def check_scans(scans: Iterable[ViewScan], audit: Audit) -> None:
    """Refuse to list slices that the audit does not allow; DeidentificationError as in `check_view`."""
    listed = {(scan.benchmark, scan.case_id, scan.series_id): scan for scan in scans}.values()
    require_covered(audit, {scan.volume_sha256 for scan in listed})
    for plane, window in {(plane.plane, window) for scan in listed for plane in scan.planes for window in scan.windows}:
        _check_rules(audit, plane, window)


def check_view(audit: Audit, view: SliceView) -> None:
    """Refuse a slice that a model asks for, unless the audit passed, covers its scan, and allows its plane, window and zoom.

    Raises
    ------
    DeidentificationError
        As in `require_covered`; or if the audit does not allow the view.
    """
    require_covered(audit, [view.scan.volume_sha256])
    _check_rules(audit, view.plane, view.window, view.zoom)


def _check_rules(audit: Audit, plane: str, window: str, zoom: int = 1) -> None:
    rules = audit.views
    if rules is None or (plane not in rules.planes or window not in rules.windows or zoom not in rules.zooms):
        shown = "no slices on request" if rules is None else f"no {plane} slices with window {window} and zoom {zoom}"
        message = (
            f"{audit.benchmark}: its audit allows {shown}; correct `viewer` in its yaml, run again, and sign the review if it asks for that"
        )
        raise DeidentificationError(message)


def check_pictures(items: Iterable[Item], slices: Sequence[SliceRow], audit: Audit) -> None:
    """Trace every picture to its scan and every scan to the audit, by digest.

    Parameters
    ----------
    items : iterable of Item
        All items of a benchmark.
    slices : sequence of SliceRow
        Pictures cut from scans; none for a benchmark of pictures, where the audit covers the pictures themselves. Oracle slices, which an
        arm shows beside the items, are traced to the audit too.
    audit : Audit
        Audit of the same benchmark.

    Raises
    ------
    DeidentificationError
        If a picture was not cut by this pipeline from the scan it claims to show, or the audit did not pass or does not
        cover the scan.
    """
    cut = {(row.sha256, row.volume_sha256) for row in slices}
    digests = {row.volume_sha256 for row in slices if row.oracle}
    for item in items:
        for image in item.images:
            # a loose picture is its own volume: both digests are equal
            if (image.sha256, image.volume_sha256) not in cut and image.sha256 != image.volume_sha256:
                message = f"{item.item_id}: picture {image.image_id} does not belong to the scan that it names; run slices and items again"
                raise DeidentificationError(message)
            digests.add(image.volume_sha256)
    require_covered(audit, sorted(digests))


def check_altered(altered: Iterable[AlteredPicture], items: Iterable[Item]) -> None:
    """Trace every altered picture to pictures of the items and their scan, by digest; `check_pictures` traces those on.

    Parameters
    ----------
    altered : iterable of AlteredPicture
        All altered pictures of a benchmark.
    items : iterable of Item
        All items of the benchmark.

    Raises
    ------
    DeidentificationError
        If a picture was not made from pictures of the items.
    """
    shown = {(image.sha256, image.volume_sha256) for item in items for image in item.images}
    for row in altered:
        if not row.sources or any((source, row.volume_sha256) not in shown for source in row.sources):
            message = f"{row.path}: this altered picture was not made from pictures of the items; run alter_pictures again"
            raise DeidentificationError(message)


def require_covered(audit: Audit, digests: Iterable[str]) -> None:
    """Refuse unless the audit passed and covers every volume or picture.

    Parameters
    ----------
    audit : Audit
        Of the benchmark.
    digests : iterable of str
        SHA-256 of the de-identified volumes (or, of `kind: pictures`, of the pictures) that requests show.

    Raises
    ------
    DeidentificationError
        If the audit is pending or failed, or something is not covered.

    Examples
    --------
    >>> require_covered(Audit(benchmark="demo", profile="pseudonymised", kind="phantom", state="passed", covered={"ab": "c1"}), ["ab"])
    """
    name = audit.benchmark
    if audit.state == "pending":
        message = (
            f"{name}: de-identification waits for a person: open data/reviews/{name}/review.html, look at the sheet of every case,"
            " sign with the command given there, and run again"
        )
        raise DeidentificationError(message)
    if audit.state != "passed":
        message = f"{name}: de-identification did not pass ({audit.reason or audit.state}); none of its data may be shown to a model"
        raise DeidentificationError(message)
    missing = sorted(set(digests) - set(audit.covered))
    if missing:
        message = (
            f"{name}: {len(missing)} scans or pictures are not covered by the audit (first: {missing[0][:12]}...);"
            " run de-identification and what follows it again, or exclude in the case table what a reviewer took out"
        )
        raise DeidentificationError(message)
