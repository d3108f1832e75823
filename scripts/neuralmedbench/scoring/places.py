"""Where an answer sees the main abnormality (a picture, a box or a point on it), and the sides and sites that a text states."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from neuralmedbench.records.case import Plane
from neuralmedbench.records.items import Item, ItemImage, Lesion, Runner
from neuralmedbench.records.scores import StatedPlace
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.scoring.sections import clean

NOTHING = frozenset(
    {
        "",
        "none",
        "no",
        "null",
        "nothing",
        "n a",
        "na",
        "not stated",
        "not visible",
        "not applicable",
        "unknown",
        "no lesion",
        "no abnormality",
    }
)
"""Normal forms of a section that states no place."""
NUMBER = r"(?<![\w.])[-−+]?(?:\d+(?:\.\d*)?|\.\d+)(?!(?!px\b)\w|%)"
BETWEEN = r"(?:\s*(?:px|pixels)\b)?[\s,;()\[\]{}]+"
"""Between two coordinates that belong together: brackets and commas."""
RUN = re.compile(rf"{NUMBER}(?:{BETWEEN}{NUMBER})+")
NAMED = re.compile(
    rf"[\"']?\b(x_?1|y_?1|x_?2|y_?2|x_?min|y_?min|x_?max|y_?max|left|top|right|bottom|width|height|[xywh])\b[\"']?\s*[:=]\s*({NUMBER})",
    re.IGNORECASE,
)
"""A coordinate with its name: `x1 = 120`, `"xmin": 120`."""
CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"), ("left", "top", "right", "bottom"))
WITH_SIZE = (("x", "y", "w", "h"), ("x", "y", "width", "height"), ("left", "top", "width", "height"))
Y_FIRST = re.compile(r"(?<!b)box_?2d|ymin[^\d:=]*xmin|y_?1[^\d:=]*x_?1", re.IGNORECASE)
"""Words that announce a box with y before x."""
POSITION = re.compile(r"(?:\b([xyz])\s*[=:]?\s*)?(?<![\w.])([-−+]?\s?\d+(?:\.\d+)?)\s*mm\b", re.IGNORECASE)
OUT_OF = re.compile(r"\s*(?:/|\bof\b|\bout of\b)\s*\d+", re.IGNORECASE)
WHOLE = re.compile(r"(?<![\w.+−-])\d{1,4}(?!\w|\.\d|%)")
NEITHER = "its coordinates are neither those of a box nor of a point"
NEAR_MM = 0.5
"""A label states a position in whole mm; an answer that repeats it is this near."""
SIDE_WORDS = {
    "left": "left links linksseitig linker linke linken izquierdo izquierda izquierdos izquierdas gauche gauches",
    "right": "right rechts rechtsseitig rechter rechte rechten derecho derecha derechos derechas droit droite droits droites",
    "bilateral": "bilateral bilaterally both beidseits beidseitig bilaterale bilaterales bilateraux",
    "midline": "midline",
}
SIDES = {word: side for side, words in SIDE_WORDS.items() for word in words.split()}
"""Words that state a side, and the side."""
SIDE_SIGNS = {"左": "left", "右": "right", "双侧": "bilateral"}
MAX_PLACES = 3
"""A location that names more regions than this is a guess."""
SUPPLIED = {
    "middle cerebral artery territory": frozenset({"insula", "frontal lobe", "parietal lobe", "temporal lobe", "basal ganglia"}),
    "anterior cerebral artery territory": frozenset({"frontal lobe", "cingulate gyrus", "corpus callosum"}),
    "posterior cerebral artery territory": frozenset({"occipital lobe", "medial temporal lobe", "thalamus"}),
}
"""Regions that an artery supplies: any of them is a right location for an infarct of its territory."""
SPARED = re.compile(r"\b(?:sparing|spares|no|not|without|excluding|except)\b")


def read_place(picture: str, box: str, images: Sequence[ItemImage], *, y_first: bool = False) -> StatedPlace:
    """Read the sections PICTURE and BOX of an answer.

    Parameters
    ----------
    picture, box : str
        The two sections, each in one line.
    images : sequence of ItemImage
        The pictures of the question in the order of their numbers (`numbered_images`).
    y_first : bool
        True if y was asked for before x.

    Returns
    -------
    StatedPlace
        What contradicts itself, is incomplete or names something that is not there is not read, and `unread` says why. Whether a box lies
        on the picture is known only with the unit of its coordinates (`scoring.evidence`).
    """
    number, position, no_picture = read_picture(clean(picture), images)
    numbers, no_box = read_numbers(box if clean(box) else "", y_first=y_first)
    return StatedPlace(number, position, numbers, "; ".join(filter(None, (no_picture, no_box))))


def numbered_images(item: Item) -> tuple[ItemImage, ...]:
    """Return the pictures of an item in the order of their numbers: through the turns of a dialogue."""
    if item.runner is not Runner.DIALOGUE:
        return item.images
    return tuple(image for turn in item.turns for image in item.images if image.image_id in turn.image_ids)


def read_picture(text: str, images: Sequence[ItemImage]) -> tuple[int | None, float | None, str]:
    """Read the number of a picture, or the position of a slice in mm; the reason if neither can be read."""
    if normal_form(text) in NOTHING:
        return None, None, ""
    numbers, positions = _named(text, images)
    number = next(iter(numbers)) if len(numbers) == 1 else None
    position = next(iter(positions)) if len(positions) == 1 else None
    at = [place for place, image in enumerate(images, start=1) if position is None or _is_at(image, *position)]
    reasons = (
        (len(numbers) > 1 or len(positions) > 1, "names more than one picture"),
        (not numbers and not positions, "names no picture by its number"),
        (number is not None and not 0 < number <= len(images), "there is no picture of that number"),
        (not at or (number is not None and number not in at), "no such picture is at that position"),
    )
    if reason := next((words for holds, words in reasons if holds), ""):
        return None, None, reason
    return at[0] if number is None and len(at) == 1 else number, position[1] if position else None, ""


def _named(text: str, images: Sequence[ItemImage]) -> tuple[set[int], set[tuple[str, float]]]:
    """Return the pictures that a text names by number, or by the name that the question uses in its place, and positions by axis."""
    plain = f" {normal_form(text)} "
    numbers = {place for place, image in enumerate(images, start=1) if image.label and f" {normal_form(image.label)} " in plain}
    if not numbers:
        last = {place: normal_form(image.label).rpartition(" ")[2] for place, image in enumerate(images, start=1) if image.label}
        words = {normal_form(text), *WHOLE.findall(OUT_OF.sub("", POSITION.sub(" ", text)))}
        # `2` or `B` for Figure 2 or Figure B; a picture with a name of its own is not shown by its number
        numbers = {place for place, word in last.items() if word in words}
        # nine digits are beyond all pictures, and Python reads no number of thousands
        whole = {int(word.lstrip("0")[:9] or "0"): word for word in words if word.isascii() and word.isdigit()}
        numbers |= {number for number, word in whole.items() if number not in last and (number <= len(images) or word not in last.values())}
    stated = [(axis.lower(), value.replace(" ", "").replace("−", "-")) for axis, value in POSITION.findall(text)]
    # beside a number, mm without axis and sign may be a size
    return numbers, {(axis, float(value)) for axis, value in stated if axis or value[0] in "+-" or not numbers}


def _is_at(image: ItemImage, axis: str, position_mm: float) -> bool:
    shown = image.tiles_mm or (() if image.position_mm is None else (image.position_mm,))
    if axis and (image.plane not in tuple(Plane) or Plane(image.plane).axis != axis):
        return False
    return any(abs(round(mm) - position_mm) <= NEAR_MM for mm in shown)


def read_numbers(text: str, *, y_first: bool = False) -> tuple[tuple[float, ...], str]:
    """Read the four numbers of a box, or the two of a point; the reason if they cannot be read.

    Read are `[x1, y1, x2, y2]`, `(x1, y1), (x2, y2)`, `{"bbox_2d": [...]}`, `<box>...</box>` and named coordinates, with width and height
    too. Only numbers that stand together count, so that words about them may follow. With `y_first` numbers without names are y before x.

    Examples
    --------
    >>> read_numbers("<box>(120, 200), (180, 260)</box>"), read_numbers("x=10, y=20, w=5, h=6")
    (((120.0, 200.0, 180.0, 260.0), ''), ((10.0, 20.0, 15.0, 26.0), ''))
    """
    plain = re.sub(r"</?\|?(?:box|point|ref|quad)\w*\|?>", " ", text)
    if normal_form(plain) in NOTHING:
        return (), ""
    if "%" in plain or (Y_FIRST.search(plain) and not y_first):
        return (), "its box has y before x" if Y_FIRST.search(plain) else "its coordinates are in per cent, which was not asked for"
    named = [(name.lower().replace("_", ""), _float(value)) for name, value in NAMED.findall(plain)]
    if named:
        return _of_names(named)
    numbers, unread = _of_runs(plain)
    return tuple(numbers[place ^ 1] for place in range(len(numbers))) if y_first else numbers, unread


def _of_runs(text: str) -> tuple[tuple[float, ...], str]:
    runs = {tuple(map(_float, re.findall(NUMBER, run[0]))) for run in RUN.finditer(text)}
    runs = {run for run in runs if len(run) >= 4} or runs  # a point beside a box is its middle
    if len(runs) > 1 or any(len(run) > 4 for run in runs):
        return (), "names more than one box"
    numbers = runs.pop() if runs else ()
    return (numbers, "") if len(numbers) in (2, 4) else ((), NEITHER if numbers else "has no coordinates")


def _of_names(named: Sequence[tuple[str, float]]) -> tuple[tuple[float, ...], str]:
    values = dict(named)
    if len(values) < len(set(named)):
        return (), "names more than one box"
    for names in CORNERS:
        if values.keys() == set(names):
            return tuple(values[name] for name in names), ""
    for x, y, width, height in WITH_SIZE:
        if values.keys() == {x, y, width, height}:
            return (values[x], values[y], values[x] + values[width], values[y] + values[height]), ""
    if values.keys() == {"x", "y"}:
        return (values["x"], values["y"]), ""
    return (), NEITHER


def describe_place(place: StatedPlace) -> str:
    """Say what was read of a place, as further parts of a sentence.

    Examples
    --------
    >>> describe_place(StatedPlace(3, None, (120.0, 200.0, 180.0, 260.0)))
    '; picture 3; box [120, 200, 180, 260]'
    """
    numbers = ", ".join(f"{value:g}" for value in place.box)
    parts = (
        (place.picture is not None, f"picture {place.picture}"),
        (place.position_mm is not None, f"slice at {place.position_mm or 0:+g} mm"),
        (bool(place.box), f"{'box' if len(place.box) == 4 else 'point'} [{numbers}]"),
        (bool(place.unread), f"place not read: {place.unread}"),
    )
    return "".join(f"; {words}" for holds, words in parts if holds)


def _float(text: str) -> float:
    return float(text.replace("−", "-"))


def sides(text: str) -> set[str]:
    """Return the sides that a text states: any of `left`, `right`, `bilateral`, `midline`."""
    words = {SIDES[word] for word in normal_form(text).split() if word in SIDES}
    return words | {side for sign, side in SIDE_SIGNS.items() if sign in text}


def longest_terms(words: list[str], known: Container[str]) -> Iterator[tuple[int, int]]:
    """Yield where terms begin and end in words; at each word the longest one."""
    start = 0
    while start < len(words):
        end = next((end for end in range(len(words), start, -1) if " ".join(words[start:end]) in known), None)
        if end is not None:
            yield start, end
        start = start + 1 if end is None else end


def mentioned_places(text: str, vocabulary: Vocabulary) -> set[str]:
    """Return the anatomical terms of the vocabulary in a text, up to `sparing` or a negation."""
    words = SPARED.split(normal_form(text))[0].split()
    return {vocabulary.places[" ".join(words[start:end])] for start, end in longest_terms(words, vocabulary.places)}


def location_right(text: str, lesion: Lesion, vocabulary: Vocabulary) -> bool:
    """Return True if a stated location is that of the lesion; more than `MAX_PLACES` regions are never right.

    A part of a region counts as the region. For an artery's territory its supplied regions count, if no other region is named.
    """
    places = mentioned_places(text, vocabulary)
    expected = vocabulary.places.get(normal_form(lesion.location))
    if expected is None:
        return f" {normal_form(lesion.location)} " in f" {normal_form(text)} "
    if len(places) > MAX_PLACES:
        return False
    return expected in places or (bool(places) and places <= SUPPLIED.get(expected, frozenset()))


def side_right(text: str, lesion: Lesion) -> bool:
    """Return True if a stated side is that of the lesion, or the reference has no side; `left` with `right` counts as `bilateral`."""
    stated = sides(text)
    if {"left", "right"} <= stated:
        stated = {"bilateral"}
    return not lesion.side or stated == {lesion.side}


def mentioned_regions(text: str, vocabulary: Vocabulary) -> set[str]:
    """Return the regions that a text names, up to `sparing` or a negation."""
    words, known = SPARED.split(normal_form(text))[0].split(), vocabulary.regions.names
    return {region for start, end in longest_terms(words, known) for region in known[" ".join(words[start:end])]}


def elsewhere(stated: set[str], expected: set[str], vocabulary: Vocabulary) -> bool:
    """Return True if both texts name regions and none of the stated ones overlaps an expected one."""
    if not stated or not expected:
        return False
    return not any(_overlap(one, other, vocabulary) for one in _finest(stated, vocabulary) for other in _finest(expected, vocabulary))


def _finest(regions: set[str], vocabulary: Vocabulary) -> set[str]:
    """Leave out regions around others of the same text: a pontine lacune lies in the pons."""
    return {region for region in regions if not any(region in vocabulary.regions.around[other] for other in regions - {region})}


def _overlap(one: str, other: str, vocabulary: Vocabulary) -> bool:
    """Return True if one region lies within the other, or a third within both; of two arteries only the first."""
    around = vocabulary.regions.around
    if one in around[other] or other in around[one]:
        return True
    arteries = all(region.endswith(("territory", "artery")) for region in (one, other))
    return not arteries and any({one, other} <= wider for wider in around.values())
