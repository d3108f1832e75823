"""The sheet that a person looks at before patients' data may be used: one offline HTML file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path

from neuralmedbench.records.case import Audit, CaseRecord, PictureManifest, State

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>De-identification review</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1a1a1a}
section{border-top:1px solid #bbb;padding:1rem 0}img{background:#000}figure{display:inline-block;margin:.4rem}
pre{white-space:pre-wrap;background:#f4f4f4;padding:.6rem}td,th{text-align:left;padding:.1rem .8rem .1rem 0}code{background:#f4f4f4}
.contact img{width:96px;height:96px;object-fit:contain}</style></head><body>
"""
NAMELESS = (
    "<p><strong>No header of this case tells the patient's name: names in its texts were found by pattern alone, and some can be left."
    "</strong> If so, take them out of the note in your folder and list the cases again.</p>"
)


def review_page(audit: Audit, digest: str, body: Sequence[str]) -> str:
    """Put the sheet together.

    Parameters
    ----------
    audit : Audit
        Whose state and checks stand at the top.
    digest : str
        `review_digest`; its first 12 digits are what the reviewer types to sign.
    body : sequence of str
        HTML of the cases or pictures, escaped already.
    """
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{number}</td></tr>" for name, number in {**audit.flow, **audit.checks}.items())
    name = escape(audit.benchmark)
    return (
        f"{HEAD}<h1>De-identification review: {name}</h1><p>Profile {escape(audit.profile)}, subjects {escape(audit.kind)}, identifying values"
        f" found: {audit.leaks}.</p><p>Look at every case: is a face, a name, a date, a place or a number left, in a picture or in a text?"
        " If so, take it out of the text in your folder and list the cases again, or exclude the case in the case table. If not, sign with<br>"
        f"<code>python scripts/sign_review.py --benchmark {name} --reviewer INITIALS --digest {escape(digest[:12])}</code></p>"
        f"<details><summary>What was changed</summary><table>{rows}</table></details>{''.join(body)}</body></html>\n"
    )


def case_section(case: CaseRecord, folder: Path) -> str:
    """HTML of one case: middle slices of each series, cleaned texts, checks; all text is escaped.

    Parameters
    ----------
    case : CaseRecord
        A de-identified case.
    folder : Path
        Folder that holds it.
    """
    title = f"<section><h2>{escape(case.case_id)}</h2>"
    if case.state is not State.OK:
        return f"{title}<p>Kept back at {escape(case.quarantined_by)}: {escape(case.reason)}</p></section>"
    figures = "".join(
        f'<figure><img alt="{escape(series.series_id)}" src="{_data_uri(folder / "review" / f"{series.series_id}.png")}">'
        f"<figcaption>{escape(', '.join((series.series_id, series.sequence, *series.flags)))}</figcaption></figure>"
        for series in case.series
    )
    texts = [*case.notes, *([case.record] if case.record else [])]
    shown = "".join(f"<h3>{escape(path)}</h3><pre>{escape((folder / path).read_text(encoding='utf-8'))}</pre>" for path in texts)
    warning = NAMELESS if case.checks.get("notes_without_known_names") else ""
    return f"{title}{figures}{warning}{shown}</section>"


def picture_section(manifest: PictureManifest, folder: Path) -> str:
    """HTML of all pictures as a contact sheet."""
    images = "".join(
        f'<figure><img alt="{escape(picture.image_id)}" src="{_data_uri(folder / picture.path)}"><figcaption>{escape(picture.image_id)}</figcaption></figure>'
        for picture in manifest.pictures
        if picture.state is State.OK
    )
    return f'<section class="contact">{images}</section>'


def _data_uri(path: Path) -> str:
    return f"data:image/png;base64,{b64encode(path.read_bytes()).decode('ascii')}"
