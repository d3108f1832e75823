"""Render a message with its parts (case, pictures, question) in the order of an input layout."""

from __future__ import annotations

from neuralmedbench.config.layouts import CASE, COMMON_ORDER, PICTURES, QUESTION, Layout
from neuralmedbench.files.templates import Templates
from neuralmedbench.records.requests import RequestImage, RequestTurn


def render_message(
    templates: Templates, name: str, case: str, images: tuple[RequestImage, ...], layout: Layout | None, **values: object
) -> RequestTurn:
    """Render a message.

    Parameters
    ----------
    templates : Templates
        The prompt templates.
    name, case : str
        Template of the whole text, and that of the part about the case, which the first one includes unless `apart`.
    images : tuple of RequestImage
        Its pictures.
    layout : Layout or None
        The input layout; None: `common`.
    **values : object
        Values of the templates.

    Returns
    -------
    RequestTurn
        Without pictures, or with pictures last, the whole text; else the text before them and the text after them. The words are the same:
        the sentence that announces the pictures always stands directly before them, what an arm adds to the case (`given`, `disclosed`)
        belongs to the question, so that all questions of a case begin alike.
    """
    order = layout.order if layout else COMMON_ORDER
    labels_after = layout is not None and layout.labels_after and bool(images)
    values |= {"labels_after": labels_after}
    if not images or order[-1] == PICTURES:
        return RequestTurn(text=templates.render(name, **values, apart=False), images=images, labels_after=labels_after)
    parts = {
        CASE: templates.render(case, **values),
        PICTURES: templates.render("pictures_follow", **values),
        QUESTION: templates.render(name, **values, apart=True),
    }
    place = order.index(PICTURES) + 1
    before, after = ("\n\n".join(parts[part] for part in some if parts[part]) for some in (order[:place], order[place:]))
    return RequestTurn(text=before, images=images, after=after, labels_after=labels_after)
