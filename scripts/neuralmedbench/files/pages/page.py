"""One writer for all offline pages: one set of templates, one content policy, one stylesheet."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.files.texts import visible

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
STYLE = HERE / "shared.css"


def page_templates(*folders: Path) -> Environment:
    """Return the templates of folders, which may extend and import the shared ones.

    Values are made visible and escaped, and an undefined name is an error.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([*folders, HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible_value,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "sort_keys": True}
    return environment


def render_page(
    template: Path,
    values: Mapping[str, object],
    *,
    styles: Sequence[Path] = (),
    scripts: Sequence[Path] = (),
    environment: Environment | None = None,
) -> str:
    """Render a page.

    Parameters
    ----------
    template : Path
        Its template, which extends `frame.html.j2`.
    values : mapping of str to object
        Values by name; texts are escaped.
    styles, scripts : sequence of Path
        Further CSS and JavaScript of this project, never made from data.
    environment : Environment, optional
        Made by :func:`page_templates`, with further filters or folders.

    Returns
    -------
    str
        One offline HTML file. Its content policy forbids a browser to load anything: only pictures
        inside the file, and its style and script (by digest) are allowed.
    """
    environment = environment or _cached_templates(template.parent)
    style, script = _inlined([STYLE, *styles]), _inlined(scripts)
    page = environment.get_template(template.name)
    return page.render(values, style=style, script=script, policy=_policy(style, script))


_cached_templates = cache(page_templates)


def _inlined(files: Sequence[Path]) -> str:
    return "\n".join(path.read_text(encoding="utf-8").strip() for path in files)


def _policy(style: str, script: str) -> str:
    def digest(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"

    scripts = f" script-src {digest(script)};" if script else ""
    allowed = f"img-src data:;{scripts} style-src {digest(style)}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _visible_value(value: object) -> object:
    """Make invisible characters of a value visible; markup made by a template stays as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return value
