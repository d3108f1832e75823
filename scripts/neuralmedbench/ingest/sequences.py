"""Which kind of scan a series is: by the words of its header, checked against the physics of its header."""

from __future__ import annotations

import re
from dataclasses import dataclass

from neuralmedbench.records.case import Sequence

DISAGREE = "words_and_physics_disagree"

NOT_A_STRUCTURAL_SCAN = re.compile(
    r"\b(?:tof|mra|mrv|venc|pcmra|pc ?3d|angio(?:graphy)?|perf(?:usion)?|dsc|dce|asl|pcasl|bold|fmri|rest(?:ing)?state|cbf|cbv|mtt|ttp|tmax"
    r"|mrs|press|spectro(?:scopy)?|csi|field ?map(?:ping)?|gre ?field|b0 ?map|b1 ?map|mip|minip|qsm|fa|colou?r|eadc|phase)\b"
)
"""Scans that share the timing of a structural scan and are none."""

WORDS: tuple[tuple[Sequence, re.Pattern[str]], ...] = (
    (Sequence.ADC, re.compile(r"\b(?:adc|apparent diffusion)\b")),
    (Sequence.SWI, re.compile(r"\b(?:swi|swan|venbold|suscept\w*)\b")),
    (Sequence.T2STARW, re.compile(r"t2 ?\*|\bt2 ?(?:star|s)w?\b|\b(?:hemo|haemo)\b")),
    (Sequence.DWI, re.compile(r"\b(?:dwi|dti|trace\w*|diff\w*|dw|isodwi|ep ?b ?\d+t?|b ?0|b ?[1-9]\d{2,3})\b")),
    (Sequence.T1W, re.compile(r"\bt1 ?(?:dark|flair)|\bflair ?t1\b")),
    (Sequence.FLAIR, re.compile(r"flair|dark ?fl(?:uid)?\b|\btirm\b")),
    (Sequence.T1W, re.compile(r"\bt1(?:w|c|gd|ce|post|pre)?\b|mprage|\bmpr\b|\bbravo\b|\bvibe\b|\bf?spgr\b|\btfe\b|\btfl\d?d?\d?\b")),
    (Sequence.T2W, re.compile(r"\bt2(?:w|c)?\b|\bciss\b|\bfiesta\b|\bdrive\b")),
    (Sequence.PDW, re.compile(r"\b(?:pd(?:w)?|proton density|dp)\b")),
)
"""First match wins; the order matters: a FLAIR is often called `t2 flair`, a diffusion scan has a T2 in its name."""

NO_CONTRAST = re.compile(
    r"\b(?:pre ?(?:gd|gad\w*|contrast|con|c|km)?|without|w ?/ ?o|wo|non? ?(?:contrast|enhanced|ce|gd)|unenhanced|nativ\w*|ohne|sans|plain|noncon\w*|nect|ncct)\b|- ?c\b"
)
CONTRAST = re.compile(
    r"\+ ?(?:c|gd|gad\w*|km|contrast)\b|\b(?:post(?:gd|con\w*|c)?|gd|gad\w*|ce|contrast|enhanced|cemr|km|c\+|t1c|t1ce|t1gd|t1post|cta|cect|kontrast\w*)\b|\bc\+"
)
NO_AGENT = frozenset({"", "no", "none", "n", "nil", "without", "no contrast", "non contrast", "0", "-"})

CONTRAST_OF = {Sequence.T1W: Sequence.CE_T1W, Sequence.CT: Sequence.CE_CT}


@dataclass(frozen=True)
class Physics:
    """What the header says about how the image was made; None where it does not say.

    Attributes
    ----------
    repetition_ms, echo_ms, inversion_ms : float or None
        RepetitionTime, EchoTime, InversionTime in ms.
    b_value : float or None
        Diffusion weighting in s/mm2.
    agent : str
        ContrastBolusAgent as it stands.
    """

    repetition_ms: float | None = None
    echo_ms: float | None = None
    inversion_ms: float | None = None
    b_value: float | None = None
    agent: str = ""


@dataclass(frozen=True)
class Label:
    """The kind of a series and what a person should know about the choice."""

    sequence: Sequence
    flags: tuple[str, ...] = ()


def plain_words(*parts: str) -> str:
    """Lower-case words separated by single spaces; `+`, `*`, `/` and `-` before a letter are kept because they carry meaning."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", " ".join(parts))
    return re.sub(r" +", " ", re.sub(r"[^a-z0-9+*/ -]|-(?=[^c])", " ", spaced.lower())).strip()


def sequence_by_words(words: str) -> Sequence | None:
    """Kind of scan that the words name (contrast left out), or None.

    Examples
    --------
    >>> sequence_by_words(plain_words("AX_T2_FLAIR"))
    <Sequence.FLAIR: 'FLAIR'>
    """
    if NOT_A_STRUCTURAL_SCAN.search(words) and not re.search(r"\badc\b", words):
        return None
    return next((sequence for sequence, pattern in WORDS if pattern.search(words)), None)


def sequence_by_physics(physics: Physics) -> Sequence | None:
    """Kind of scan that the timing makes, or None when the header does not tell or fits several kinds.

    Notes
    -----
    FLAIR nulls fluid: a long inversion time with a long echo. T1 weighting needs a short echo and either a short repetition or
    an inversion, T2 weighting a long echo and a long repetition; what has a long repetition and a short echo is proton density.
    """
    repetition, echo, inversion = physics.repetition_ms, physics.echo_ms, physics.inversion_ms or 0.0
    if physics.b_value:
        return Sequence.DWI
    if not echo or not repetition or min(echo, repetition) <= 0:
        return None
    made = (
        (Sequence.FLAIR, inversion > 1700 and echo > 70),
        (Sequence.T1W, echo < 30 and (repetition < 3000 or inversion > 0)),
        (Sequence.T2W, echo >= 70 and repetition > 2000),
        (Sequence.PDW, echo < 50 and repetition > 2000),
    )
    return next((sequence for sequence, fits in made if fits), None)


def has_contrast(words: str, agent: str = "") -> bool:
    """Whether words or agent say that contrast was given; a word like `pre` or `without` outweighs every other word."""
    if plain_words(agent) not in NO_AGENT:
        return True
    return bool(CONTRAST.search(words)) and not NO_CONTRAST.search(words)


def label_sequence(modality: str, words: str, physics: Physics) -> Label:
    """Name the kind of a series.

    Parameters
    ----------
    modality : str
        DICOM Modality: `MR` or `CT`; anything else is unknown.
    words : str
        `plain_words` of SeriesDescription, ProtocolName, SequenceName and ImageType, or of a file name.
    physics : Physics
        Timing, diffusion weighting and contrast agent.

    Returns
    -------
    Label
        Words decide where there are any, physics where there are none. When both speak and disagree the words' kind is kept
        and flagged `words_and_physics_disagree`: names lie about physics, and guessing which one is right is a person's work.
    """
    if modality == "CT":
        return Label(Sequence.CE_CT if has_contrast(words, physics.agent) or re.search(r"\bangio\w*", words) else Sequence.CT)
    if modality != "MR":
        return Label(Sequence.UNKNOWN)
    named, made = sequence_by_words(words), sequence_by_physics(physics)
    if named is None:
        made = None if NOT_A_STRUCTURAL_SCAN.search(words) else made
        return Label(_with_contrast(made, words, physics)) if made else Label(Sequence.UNKNOWN)
    return Label(_with_contrast(named, words, physics), (DISAGREE,) if _disagree(named, made, physics) else ())


def _with_contrast(sequence: Sequence, words: str, physics: Physics) -> Sequence:
    return CONTRAST_OF.get(sequence, sequence) if has_contrast(words, physics.agent) else sequence


def _disagree(named: Sequence, made: Sequence | None, physics: Physics) -> bool:
    if made is None or named in {Sequence.ADC, Sequence.SWI, Sequence.T2STARW}:
        return False  # derived maps and gradient echoes: their timing does not tell them apart
    if named is Sequence.DWI:
        return made in {Sequence.T1W, Sequence.FLAIR}  # an echo-planar scan without a b-value in its header looks like T2
    if named is Sequence.FLAIR and made is Sequence.T2W:
        return physics.inversion_ms is not None and physics.inversion_ms <= 1700  # some vendors do not write the inversion time
    return named is not made
