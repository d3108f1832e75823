"""The image baseline: measurements on the pictures of the prompt, weighted by a table of textbook knowledge.

It ignores the text of the prompt except for the labels of the pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from neuralmedbench.demo.baselines.findings import Findings, Spot, area_by_side, read_pictures
from neuralmedbench.demo.baselines.forms import SEQUENCE_NAMES, ChoiceQuestion, LesionMark, MessageInput, PictureInput
from neuralmedbench.demo.baselines.measure import Frame, measure
from neuralmedbench.demo.baselines.opinion import NO_PICTURES, NO_WORDS, NOTHING, WORDS, Opinion, contributions, log_scores, nameable
from neuralmedbench.demo.baselines.pictures import GRID
from neuralmedbench.records.case import CT_SEQUENCES
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.vocabulary import Vocabulary

SHOWN = 0.4
"""Feature value above which an answer names the feature."""

SPEAKS, MOST_NAMED = 0.3, 2
"""Log-odds above which a feature counts for or against a diagnosis, and how many are named as evidence."""

USUAL = (Kind.T1W, Kind.CE_T1W, Kind.T2W, Kind.FLAIR, Kind.DWI, Kind.ADC, Kind.SWI)
"""Sequences of a usual examination of the head."""


class ImageReader:
    """Measures pictures, each once.

    Parameters
    ----------
    vocabulary : Vocabulary
        Diagnoses that may be named.
    """

    name = "image"
    wishes: tuple[str, ...] = ("MRI: FLAIR", "MRI: DWI", "MRI: ADC map", "MRI: T1 with contrast", "MRI: SWI", "CT: without contrast")
    questions: tuple[str, ...] = ("What does the imaging of the brain show?",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.keys = nameable(vocabulary)
        self._frames: dict[tuple[str, str], Frame | None] = {}
        self._seen: dict[tuple[tuple[str, str], ...], Opinion] = {}

    def read(self, messages: Sequence[MessageInput]) -> Opinion:
        """Form an opinion from the pictures of all user messages so far, in any order."""
        images = {_key(image): image for message in messages if message.role == "user" for image in message.images}
        known = tuple(sorted(images))
        if known not in self._seen:
            self._seen[known] = self._opinion({key: self._frame(images[key]) for key in known})
        return self._seen[known]

    def weigh(self, choice: ChoiceQuestion) -> npt.NDArray[np.float64]:
        """Weigh options that are no diagnoses equally: this model reads no words, so its choice is **chance**, drawn by the seed."""
        return np.zeros(len(choice.options))

    def _frame(self, image: PictureInput) -> Frame | None:
        key = _key(image)
        if key not in self._frames:
            self._frames[key] = measure(image)
        return self._frames[key]

    def _opinion(self, frames: Mapping[tuple[str, str], Frame | None]) -> Opinion:
        usable = [frame for frame in frames.values() if frame is not None]
        if not usable:
            return Opinion(
                None,
                "No picture was shown that could be measured.",
                lambda _: "There is nothing to go by.",
                missing=(NO_PICTURES, NO_WORDS),
            )
        found = read_pictures(usable)
        # modality, sequence and plane are reported for single-picture questions only
        one = usable[0] if len(usable) == 1 else None

        def reason(key: str) -> str:
            return self._reason(found, key)

        return Opinion(
            scores=log_scores(found.features, self.keys),
            findings=_sentence(found),
            reason=reason,
            location=place(found.lesion),
            side=side(found.lesion),
            modality=_modality(one) if one else None,
            sequence=one.sequence if one else None,
            plane=one.plane if one else None,
            seen=_seen(usable),
            evidence=lambda key: _evidence(found, key),
            missing=(NO_WORDS, *_not_shown(usable)),
            mark=_mark(found, frames),
        )

    def _reason(self, found: Findings, key: str) -> str:
        name = self.vocabulary.diagnoses[key].name
        added = contributions(found.features, key)
        best = sorted((feature for feature in added if added[feature] > SPEAKS), key=lambda feature: -added[feature])[:3]
        shown = [WORDS[feature] for feature in best if found.features[feature] > SHOWN]
        missing = [WORDS[feature] for feature in best if found.features[feature] <= SHOWN]
        if not best:
            return f"Nothing that was measured speaks for {name}; it is common."
        parts = ([f"{'; '.join(shown)} speaks for {name}"] if shown else []) + (
            [f"so does the lack of {'; '.join(missing)}"] if missing else []
        )
        text = ", ".join(parts) if shown else f"The lack of {'; '.join(missing)} speaks for {name}"
        return text[0].upper() + text[1:] + "."


def _key(image: PictureInput) -> tuple[str, str]:
    """Return digest and label of a picture, without its number."""
    return image.sha256, image.label.partition(":")[2]


def _mark(found: Findings, frames: Mapping[tuple[str, str], Frame | None]) -> LesionMark | None:
    """Return the box around the largest patch of the main lesion, on its picture; a picture that is not square is measured in a square frame."""
    if not found.lesion:
        return None
    spot = found.lesion[0]
    key = next(key for key, frame in frames.items() if frame is spot.frame)
    rows, columns = (np.flatnonzero(spot.patch.mask.any(axis=axis)) / GRID for axis in (1, 0))
    pixel = 1 / GRID
    return LesionMark(*key, (float(columns[0]), float(rows[0]), float(columns[-1] + pixel), float(rows[-1] + pixel)))


def _modality(frame: Frame) -> str:
    return "CT" if frame.sequence in CT_SEQUENCES else "MRI"


def _seen(frames: Sequence[Frame]) -> str:
    """Write modality; sequences; planes, from the labels or guessed from the pictures."""
    kinds = {frame.sequence for frame in frames if frame.sequence and frame.sequence not in CT_SEQUENCES}
    sequences = sorted(SEQUENCE_NAMES.get(kind, str(kind)) for kind in kinds)
    planes = sorted({str(frame.plane) for frame in frames if frame.plane})
    parts = (sorted({_modality(frame) for frame in frames}), sequences, planes)
    return "; ".join(", ".join(part) or "unknown" for part in parts)


def _not_shown(frames: Sequence[Frame]) -> list[str]:
    """List the usual sequences, and CT, that were not shown."""
    shown = {frame.sequence for frame in frames}
    kinds = [SEQUENCE_NAMES[kind] for kind in USUAL if kind not in shown]
    return kinds if shown & set(CT_SEQUENCES) else [*kinds, "CT"]


def _evidence(found: Findings, key: str) -> tuple[str, str]:
    """Name the strongest measurements for and against a diagnosis."""
    added = contributions(found.features, key)
    speak_for = sorted((name for name in added if added[name] > SPEAKS), key=lambda name: -added[name])[:MOST_NAMED]
    against = sorted((name for name in added if added[name] < -SPEAKS), key=lambda name: added[name])[:MOST_NAMED]
    return _named(found, speak_for), _named(found, against)


def _named(found: Findings, features: Sequence[str]) -> str:
    return "; ".join(WORDS[name] if found.features[name] > SHOWN else f"lack of {WORDS[name]}" for name in features) or NOTHING


def _sentence(found: Findings) -> str:
    shown = sorted(
        (name for name, value in found.features.items() if value > SHOWN and name in WORDS), key=lambda name: -found.features[name]
    )
    where = (
        f" The main lesion lies in the {place(found.lesion)} ({side(found.lesion)})." if found.lesion and shown != ["unremarkable"] else ""
    )
    words = "; ".join(WORDS[name] for name in shown[:5]) or "no feature stands out"
    return f"Measured on {len(found.frames)} pictures: {words}.{where}"


def side(spots: Sequence[Spot]) -> str:
    """Return the side of a lesion: `left`, `right`, `bilateral`, `midline`, or empty without patches."""
    if not spots:
        return ""
    left, right = area_by_side(spots)
    if max(abs(spot.patch.x) for spot in spots) < 0.12:
        return "midline"
    if min(left, right) > 0.3 * max(left, right):
        return "bilateral"
    return "left" if left > right else "right"


def place(spots: Sequence[Spot]) -> str:
    """Return the anatomical term for the largest patch, or for many small ones around the ventricles; empty without patches."""
    if not spots:
        return ""
    near = [spot for spot in spots if spot.patch.gap < 0.25]
    if len(spots) >= 5 and sum(spot.patch.area for spot in near) > 0.6 * sum(spot.patch.area for spot in spots):
        return "periventricular white matter"
    main = max(spots, key=lambda spot: spot.patch.area)
    return _region(abs(main.patch.x), main.patch.y, 0.5 if main.z is None else main.z)


def _region(x: float, y: float, z: float) -> str:
    """Return the region of a point: `x` from midline (0) to lateral (1), `y` from anterior (-1) to posterior (1), `z` from lowest (0) to highest (1)."""
    if z < 0.22 and y > 0.2:
        return "brainstem" if x < 0.2 and y < 0.45 else "cerebellum"
    if z < 0.38 and -0.45 < y < 0.4:
        return "medial temporal lobe" if x < 0.55 else "temporal lobe"
    if y > 0.62:
        return "occipital lobe" if z < 0.75 else "parietal lobe"
    if z < 0.65 and -0.35 < y < 0.3 and x < 0.5:
        return "thalamus" if x < 0.22 and y > 0 else "basal ganglia"
    if z < 0.6 and -0.4 < y < 0.25:
        return "insula"
    return "frontal lobe" if y < 0.1 else "parietal lobe"
