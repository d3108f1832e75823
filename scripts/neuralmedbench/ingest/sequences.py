"""Label the sequence of a series by the words of its header, checked against the acquisition parameters ("physics").

The words of headers and file names are normalised first; they also say whether a contrast agent was given.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from neuralmedbench.files import dicom
from neuralmedbench.files.words import NO_AGENT, UNSTATED_AGENT
from neuralmedbench.records.case import NoHead, Sequence

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

DISAGREE = "words_and_physics_disagree"
WORDS_DISAGREE = "description_and_protocol_disagree"
CONTRAST_UNCLEAR = "contrast_unclear"
PHYSICS_ALONE = "kind_by_physics_alone"
BY_PERSON, BY_MAP = "label_by_a_person", "label_by_sequence_map"
OTHER_KINDS: tuple[tuple[NoHead, re.Pattern[str]], ...] = tuple((kind, re.compile(rf"\b(?:{words})\b")) for kind, words in (
    (NoHead.FIELD_MAP, r"field ?map(?:ping)?|fmap|gre ?field\w*|gre ?fm|fm[23]d\w*|\w*b[01] ?maps?"),
    (NoHead.PERFUSION, r"perf\w*|dsc|dce|\w*asl|\w*cb[fv]|mtt|ttp|tmax"),
    (NoHead.FUNCTIONAL, r"bold|f[mc]+ri|epfid\w*|rest(?:ing)?(?: ?state)?"),
    (NoHead.SPECTROSCOPY, r"mrs|svs|press|spectro(?:scop\w*)?|csi"),
    (NoHead.FLOW, r"venc|pcmra|pca|pc ?3d"),
    (NoHead.PROJECTION, r"m(?:in)? ?ip\w?|mn?ip|minip"),
    (NoHead.SUBTRACTION, r"sub|subtr\w*"),
    (NoHead.PHASE, r"pha(?:se)?|e\d ph"),
    (NoHead.CALIBRATION, r"calibration|cal|shim|prescan|coil"),
    (NoHead.LOCALIZER, r"survey|scout|loc|locali[sz]er"),
    (NoHead.MAP, r"qsm|fa|col ?fa|colou?r|tensor|\w* ?aniso\w*|eadc|exponential|apt\w?|stir ?map|r2\*?|t[12]\*? ?map\w*|t2 ?star ?map\w*|t1 images"),
    (NoHead.MAP, r"t[12] ?\*? ?maps?"),
    (NoHead.NOT_KNOWN, r"inv ?\d|b ?[tf]fe|trufi|balanced|basg|double ir|(?<!\d)(?<!\d )dir"),
))  # fmt: skip
"""Words of scans that have the timing of a structural scan but are not one; `32 dir` counts directions."""
OTHER_CTS: tuple[tuple[NoHead, re.Pattern[str]], ...] = tuple((kind, re.compile(rf"\b(?:{words})\b")) for kind, words in (
    (NoHead.PERFUSION, r"perf\w*|ctp|neuropct|\w*cb[fv]|mtt|ttp|tmax"),
    (NoHead.DUAL_ENERGY, r"iodine|jod\w*|vnc|virtual\w*|mono\w*|\d+ ?kev|z ?eff|overlay|fusion"),
    (NoHead.PROJECTION, r"m(?:in)?ip|min ip|vrt?|volume render\w*"),
    (NoHead.SUBTRACTION, r"bone ?subtract\w*|sub|subtr\w*"),
    (NoHead.CALIBRATION, r"\w*monitoring|bolus\w*|smart ?prep|test ?inj\w*|timing"),
    (NoHead.DOSE_REPORT, "dose"),
    (NoHead.LOCALIZER, "topogram|scout|surview"),
))  # fmt: skip
"""Words of CT series other than plain tissue at one time."""
OTHER_TYPES: dict[NoHead, frozenset[str]] = {
    NoHead.PHASE: frozenset({"P", "PHASE", "PHASE MAP"}),
    NoHead.PROJECTION: frozenset({"MIP", "MNIP", "MINIP", "MIN IP", "PROJECTION IMAGE", "CT SOM5 MIP"}),
    NoHead.SUBTRACTION: frozenset({"SUBTRACTION", "SUB"}),
    NoHead.PERFUSION: frozenset({"RCBF", "RCBV", "PERFUSION"}),
    NoHead.MAP: frozenset({"R", "I", "REAL", "IMAGINARY", "FA", "EADC", "TENSOR", "T1 MAP", "T2 MAP", "T2 STAR MAP", "R2 MAP"}),
}
"""Values of ImageType of images computed from scans."""
GRADIENT = r"gre|ffe|fl2d|fl3d|flash|me2d|me3d|eg|fe|gradient\w*|gradien\w*|medic|merge"
WORDS: tuple[tuple[Sequence, re.Pattern[str]], ...] = (
    (Sequence.ANGIO, re.compile(r"\b(?:tof|mra|mrv|angio(?:gra\w*)?|venogra\w*)\b")),
    (Sequence.ADC, re.compile(r"\b\w{0,2}adc\b|apparent diffusion|\baverage dc\b")),
    (Sequence.SWI, re.compile(r"\b(?:e?swi\w?|e?swan|ven ?bold|fsbb|bsi|suscept\w*)\b")),
    (Sequence.T2STARW, re.compile(
        r"t2 ?\*|\bt2 ?star\w*|\bt2s(?:w)?\b|\b(?:hemo|haemo|heme|merge)\b|\bmag images\b"
        rf"|\bt2w?\b.*\b(?:{GRADIENT})\b|\b(?:{GRADIENT})\b.*\bt2w?\b"
    )),
    (Sequence.DWI, re.compile(
        r"\b(?:\w{0,3}dwi|dti|hardi|noddi|trace\w*|\w{0,2}diff\w*|difu\w*|dw|resolve|ep ?b ?\d+t?|re b ?\d+t?|b ?0|b ?[1-9]\d{1,3}|calc b\w*)\b"
        r"|拡散|扩散|弥散|확산|диффуз"
    )),
    (Sequence.T1W, re.compile(r"\bt1\w{0,4} ?(?:\w+ )?(?:dark|flair|tirm)|\bflair ?t1\b")),
    (Sequence.FLAIR, re.compile(r"flair|\bda(?:rk)? ?fl(?:uid)?\b|\btirm\b")),
    (Sequence.T1W, re.compile(
        r"\bs?t1(?:w|c|gd|ce|post|pre|km)?\b|mp2?rage|\bmpr\b|\bbravo\b|\bvibe\b|\bthrive\b|\blava\b|\b(?:ir)?f?spgr\b|\btfe\b|\btfl\d?d?\d?\b"
    )),
    (Sequence.T2W, re.compile(r"\bs?t2(?:w|c)?\b|\bciss\b|\bci3d\w*|\bfiesta\b|\bdrive\b|\bstir\b|\bhaste\b")),
    (Sequence.PDW, re.compile(r"\b(?:pd(?:w)?|proton density|dp|rho)\b")),
)  # fmt: skip
"""First match counts; the order matters: a FLAIR is often called `t2 flair`, and names of diffusion scans contain T2.

CISS and FIESTA show fluid as T2 does (Chavhan et al., RadioGraphics 2008) and are read for it, DRIVE is a spin echo: T2w, as BIDS has no
suffix for steady states; other balanced scans stay unknown. `Mag_Images` is the magnitude of Siemens' SWI, a T2*-weighted gradient echo,
and BSI (blood sensitive imaging) is Hitachi's SWI. BIDS calls TOF and contrast-enhanced MR angiography and venography `angio`.
"""
TWO_ECHOES = re.compile(r"\b(?:pd|dp)\w? ?[+/]? ?t2|\bt2\w? ?[+/]? ?(?:pd|dp)|dual echo|double echo")
"""One description for both echoes of a scan: the echo time decides."""
DUAL_ECHO, B_ZERO = re.compile(r"\b(?:dual|double) echo\b"), re.compile(r"\bb ?0\b")
RELATED = (
    frozenset({Sequence.ADC, Sequence.DWI}),
    frozenset({Sequence.SWI, Sequence.T2STARW, Sequence.T2W}),
    frozenset({Sequence.FLAIR, Sequence.T2W}),
    frozenset({Sequence.PDW, Sequence.T2W}),
    frozenset({Sequence.DWI, Sequence.T2W}),
    frozenset({Sequence.ADC, Sequence.T2W}),
)
"""Sequences that description and protocol of one series may name without contradiction: a map and its source, a narrower and a wider term."""
CONTRAST_OF = {Sequence.T1W: Sequence.CE_T1W, Sequence.CT: Sequence.CE_CT}
B_VALUES = {"siemens": (0x0019, 0x100C), "philips": (0x2001, 0x1003), "ge": (0x0043, 0x1039), "uih": (0x0065, 0x1009)}
"""Private elements with the b-value, by the first letters of the manufacturer."""
GE_OFFSET = 100_000
"""Some software versions of GE add 1e9 to the b-value: only the remainder by this is the b-value."""
SPELLED_OUT = (
    (re.compile(r"\bw\s*/\s*wo\b|\bw\s*/?\s*(?:and|&|\+)\s*w\s*/?\s*o\b"), " with without "),
    (re.compile(r"\bw\s*/\s*o\b"), " without "),
    (re.compile(r"\bw\s*/(?=\s|[a-z])"), " with "),
    (re.compile(r"\bs\s*/\s*c\b"), " sin contraste "),
    (re.compile(r"\bc\s*/\s*c\b"), " con contraste "),
    (re.compile(r"(?<![a-z0-9])c\s*\+(?![a-z0-9])|\+\s*(?:c|k)(?![a-z0-9])"), " cplus "),
    (re.compile(r"(?<![a-z0-9])c\s*-(?![a-z0-9])|(?:(?<=\s)|^)-\s*c(?![a-z0-9])"), " cminus "),
)
"""Punctuation with a meaning, replaced by words before punctuation is removed."""
AGENT = r"contrast\w*|kontras\w*|контраст\w*|gd|gad\w*|km|mdc|kl|iv|inj\w*|ce|enhanc\w*|c|k"
NEGATION = r"pre|prae|vor|avant|before|without|wo|non?|not|ohne|sans|sin|senza|sem|zonder|bez|utan|uten|uden|ilman|prima|antes|minus|до|без"
WITHOUT = re.compile(
    rf"\b(?:{NEGATION}) ?(?:{AGENT})\b"
    r"|\b(?:pre|without|wo|unenhanced|nativ\w*|ohne|sans|senza|sem|sin|zonder|utan|uten|uden|bez|plain|noncon\w*|nect|ncct|kontrasts[iı]z\w*"
    r"|kontrastfri\w*|blanco|cminus|без)\b|平扫|平掃|単純|조영전"
)
"""Words for no contrast agent. They are removed before `WITH` is searched: `non contrast` contains the word contrast."""
WITH = re.compile(
    r"\b(?:cplus|gd|gad\w*|km|mdc|ce|cemr|enhanced|contrast\w*|kontras\w*|контраст\w*|inject\w*|dotarem|magnevist|prohance|multihance"
    r"|omniscan|clariscan|vueway|elucirem|primovist|t1c|t1ce|t1gd|t1post|t1km|cta|cect)\b"
    r"|\b(?:avec|con|com|met|med|with|w|mit|nach|apres|dopo|after|po|na|pos) (?:iv|inj\w*|c|k|kl)\b"
    r"|\bpost(?:gd|con\w*|c|km|gad\w*)?\b(?! ?(?:fossa|fosse|op\b|proc))|\bwith\b *$|增强|增強|造影|조영(?!전)"
)
AMBIGUOUS = re.compile(r"\bt1 w$|\bpost (?:fossa|fosse)\b.*\bpost\b")
"""A single `W` after T1 may mean weighted or with."""
NOT_IN_THE_BRAIN = re.compile(r"(?:pre|oral)\b.*")
"""An agent that is not there yet, or that is swallowed."""

OTHER_PARTS = {
    "knee": "knees?|patella|knie|genou|rodilla|ginocchio",
    "spine": "[ctls]{1,2}spine|spine|cervical|thoracic|dorsal|lumbar|sacral|sacrum|coccyx|[bhl]ws|columna|rachis|wirbelsaule",
    "chest": "chest|thorax|torax|thorakal|lungs?|heart|cardiac|breasts?|mamma|sternum|ribs?|mediastinum|(?:o?e)sophagus|aorta",
    "abdomen": "abdomen|abd|abdo|liver|leber|kidneys?|renal|pancreas|spleen|stomach|gallbladder|biliary|bowel|colon",
    "pelvis": "pelvis|pelv|becken|bassin|bladder|prostate|uterus|rectum|hips?|hufte|hanche|cadera",
    "shoulder or arm": "shoulders?|schulter|epaule|hombro|clavicle|scapula|humerus|elbows?|forearms?|wrists?|hands?|main|mano|fingers?|thumbs?|arms?",
    "leg": "legs?|thighs?|femur|tibia|calf|calves|ankles?|f[eo]{2}t|fuss|pied|toes?|heels?|extremity",
}
"""Our word for each part, and words of BodyPartExamined (DICOM PS3.16 CID 4030 and common others), without spaces, in lower case."""
BESIDE = "left|right|upper|lower|both|and|to"
ANY_PART = "|".join((*OTHER_PARTS.values(), BESIDE))


@dataclass(frozen=True)
class Physics:
    """Acquisition parameters from a header; None or empty where it has none.

    Attributes
    ----------
    repetition_ms, echo_ms, inversion_ms : float or None
        RepetitionTime, EchoTime, InversionTime in ms.
    b_value : float or None
        Diffusion weighting in s/mm2.
    agent : str
        ContrastBolusAgent, unchanged.
    technique : frozenset of str
        ScanningSequence: `SE`, `GR`, `IR`, `EP`...
    flip_deg : float or None
        FlipAngle in degrees.
    """

    repetition_ms: float | None = None
    echo_ms: float | None = None
    inversion_ms: float | None = None
    b_value: float | None = None
    agent: str = ""
    technique: frozenset[str] = frozenset()
    flip_deg: float | None = None

    @property
    def is_gradient_echo(self) -> bool:
        """Whether the technique is gradient echo only."""
        return "GR" in self.technique and not self.technique & {"SE", "IR", "EP"}


@dataclass(frozen=True)
class SequenceLabel:
    """Sequence of a series, and flags for doubts about it."""

    sequence: Sequence
    flags: tuple[str, ...] = ()
    agent: str = ""
    """Contrast agent named by a person."""
    other: NoHead = NoHead.NOT_KNOWN
    """What a series of unknown sequence is instead, if that is known."""


def label_of_header(header: Dataset, weights: Iterable[float | None] = ()) -> SequenceLabel:
    """Label the series of a header (see `label_sequence`); `weights` are the b-values of all its images."""
    physics = physics_of(header)
    physics = replace(physics, b_value=max((weight for weight in (*weights, physics.b_value) if weight is not None), default=None))
    description, protocol, name = (plain_words(dicom.text(header, word)) for word in ("SeriesDescription", "ProtocolName", "SequenceName"))
    types = frozenset(part.upper().replace("_", " ") for part in dicom.texts(header, "ImageType"))
    return label_sequence(dicom.text(header, "Modality"), description, physics, f"{protocol} {name}".strip(), types)


def completed(by_person: SequenceLabel | None, found: SequenceLabel) -> SequenceLabel:
    """Return a person's label, completed by the one that was found: a person may name nothing, or the contrast agent alone."""
    if by_person is None:
        return found
    if by_person.sequence is not Sequence.UNKNOWN:
        return by_person
    flags = tuple(flag for flag in found.flags if flag != CONTRAST_UNCLEAR)
    after = CONTRAST_OF.get(found.sequence, found.sequence)
    return SequenceLabel(after, (*flags, *by_person.flags), by_person.agent if after in CONTRAST_OF.values() else "")


def label_sequence(modality: str, words: str, physics: Physics, others: str = "", types: frozenset[str] = frozenset()) -> SequenceLabel:
    """Label a series by words, or by physics where words say nothing.

    `modality` is `MR` or `CT`; anything else is unknown. `words` are the `plain_words` of SeriesDescription or a file name, `others` those of
    ProtocolName and SequenceName, which count where the description says nothing. Where words and physics disagree, the label follows the
    words and is flagged: only a person can tell which of them is wrong.
    """
    # contrast agent first: it applies to CT and MR
    given, unclear = contrast_given(f"{words} {others}".strip(), plain_words(physics.agent))
    contrast_flags = (CONTRAST_UNCLEAR,) if unclear else ()
    if (other := _other_scan(modality, words, others, types)) is not None:
        return SequenceLabel(Sequence.UNKNOWN, other=other)
    if modality == "CT":
        phase = re.search(r"\b(?:angio\w*|arteri\w*|venous|venos\w*|portal)\b", words) is not None and not unclear
        return SequenceLabel(Sequence.CE_CT if given or phase else Sequence.CT, contrast_flags)
    label = _label_mr(words, others, physics, types)
    if label.sequence not in CONTRAST_OF:
        return label  # contrast agent is only tracked for T1 and CT
    return SequenceLabel(CONTRAST_OF[label.sequence] if given else label.sequence, (*label.flags, *contrast_flags))


def _other_scan(modality: str, words: str, others: str, types: frozenset[str]) -> NoHead | None:
    """Return what a series is that is no scan of tissue or vessels; None if it may be one."""
    if modality not in {"MR", "CT"}:
        return NoHead.NOT_KNOWN
    by_type = next((kind for kind, values in OTHER_TYPES.items() if types & values), None)
    if by_type is not None:
        return by_type
    return kind_of(OTHER_CTS, f"{words} {others}") if modality == "CT" else other_kind(words) or other_kind(others)


def _label_mr(words: str, others: str, physics: Physics, types: frozenset[str]) -> SequenceLabel:
    by_physics = sequence_by_physics(physics)
    if types & {"ADC", "ADC MAP"}:
        return SequenceLabel(Sequence.ADC)
    # words of the description, else of the protocol, else physics
    first, second = sequence_by_words(words), sequence_by_words(others)
    named = first or second
    if _is_field_map(named, f"{words} {others}", physics):
        return SequenceLabel(Sequence.UNKNOWN, other=NoHead.FIELD_MAP)
    if named is None:
        return _by_physics(by_physics, physics)
    if TWO_ECHOES.search(f"{words} {others}") and physics.echo_ms:
        named = Sequence.PDW if physics.echo_ms < 50 else Sequence.T2W
    flags = (DISAGREE,) if _disagree(named, by_physics, physics) else ()
    if first and second and first is not second and not any({first, second} <= family for family in RELATED):
        flags = (*flags, WORDS_DISAGREE)
    return SequenceLabel(named, flags)


def _is_field_map(named: Sequence | None, words: str, physics: Physics) -> bool:
    """Return whether a gradient echo is a field map although no word says so: two echoes of no named contrast, or B0 without diffusion."""
    if not physics.is_gradient_echo or physics.b_value:
        return False
    return (named is None and DUAL_ECHO.search(words) is not None) or (named is Sequence.DWI and B_ZERO.search(words) is not None)


def _by_physics(by_physics: Sequence | None, physics: Physics) -> SequenceLabel:
    if by_physics is None:
        return SequenceLabel(Sequence.UNKNOWN)
    return SequenceLabel(by_physics, (PHYSICS_ALONE,) if physics.is_gradient_echo else ())


def _disagree(named: Sequence, by_physics: Sequence | None, physics: Physics) -> bool:
    if named is Sequence.T2W and physics.is_gradient_echo:
        return True  # a gradient echo is never T2-weighted: T2* or a balanced scan
    if by_physics is None or named in {Sequence.ADC, Sequence.SWI, Sequence.T2STARW, Sequence.ANGIO}:
        return False  # timing does not distinguish derived maps and gradient echoes
    if named is Sequence.DWI:
        return by_physics in {Sequence.T1W, Sequence.FLAIR}  # an echo-planar scan without a b-value in its header looks like T2
    if named is Sequence.FLAIR and by_physics is Sequence.T2W:
        return bool(physics.inversion_ms)  # some vendors do not write the inversion time
    return named is not by_physics


def sequence_by_words(words: str) -> Sequence | None:
    """Return the sequence named by words, without contrast agent, or None.

    Examples
    --------
    >>> sequence_by_words(plain_words("AX_T2_FLAIR"))
    <Sequence.FLAIR: 'FLAIR'>
    """
    if other_kind(words) is not None:
        return None
    return next((sequence for sequence, pattern in WORDS if pattern.search(words)), None)


def other_kind(words: str) -> NoHead | None:
    """Return what words name if it is neither a structural scan nor an angiogram nor an ADC map; None for these, and for other words."""
    rest = re.sub(r"\bven bold\b", "venbold", words)  # venous BOLD is susceptibility-weighted, not functional
    return None if re.search(r"\b\w{0,2}adc\b(?! ?fa)", words) else kind_of(OTHER_KINDS, rest)


def kind_of(kinds: Iterable[tuple[NoHead, re.Pattern[str]]], words: str) -> NoHead | None:
    """Return the first kind that words name."""
    return next((kind for kind, pattern in kinds if pattern.search(words)), None)


def sequence_by_physics(physics: Physics) -> Sequence | None:
    """Return the sequence implied by the timing, or None if it is incomplete or fits several sequences.

    FLAIR nulls fluid by a long inversion time with a long echo. T1 weighting has a short echo and either a short repetition or an
    inversion, T2 weighting a long echo and a long repetition, proton density a short echo and a long repetition. A gradient echo with a
    long echo is T2*; with a short one it may be T1-weighted or an angiogram, unless it is inverted or its flip angle is large. An
    echo-planar scan without diffusion weighting may be diffusion, perfusion or functional MRI.
    """
    repetition, echo, inversion = physics.repetition_ms, physics.echo_ms, physics.inversion_ms or 0.0
    if physics.b_value:
        return Sequence.DWI
    if not echo or not repetition or min(echo, repetition) <= 0 or "EP" in physics.technique:
        return None
    if physics.is_gradient_echo and not inversion:
        large = (physics.flip_deg or 0) >= 50 and repetition >= 100
        return Sequence.T2STARW if echo >= 12 and repetition >= 100 else Sequence.T1W if large and echo < 10 else None
    rules = (
        (Sequence.FLAIR, inversion > 1500 and echo > 70),
        (Sequence.T1W, echo < 30 and (repetition <= 1200 or inversion >= 300)),
        (Sequence.T2W, echo >= 70 and repetition > 1400 and inversion < 300),
        (Sequence.PDW, echo < 50 and repetition >= 1800 and not inversion),
    )
    return next((sequence for sequence, fits in rules if fits), None)


def physics_of(header: Dataset) -> Physics:
    """Collect timing, diffusion weighting and contrast agent from a header."""
    return Physics(
        repetition_ms=dicom.number(header, "RepetitionTime"),
        echo_ms=dicom.number(header, "EchoTime"),
        inversion_ms=dicom.number(header, "InversionTime"),
        b_value=b_value_of(header),
        agent=dicom.text(header, "ContrastBolusAgent"),
        technique=frozenset(dicom.texts(header, "ScanningSequence")),
        flip_deg=dicom.number(header, "FlipAngle"),
    )


def b_value_of(header: Dataset) -> float | None:
    """Return the b-value in s/mm2 from the standard element or the vendor's private one (Siemens, Philips, GE, UIH); None without one."""
    standard = dicom.number(header, "DiffusionBValue")
    if standard is not None:
        return standard
    maker = dicom.text(header, "Manufacturer").lower()
    known = [place for name, place in B_VALUES.items() if maker.startswith(name)]
    # private elements have other meanings in headers of other makers: all are tried only if no maker is named
    for group, number in known or ([] if maker else B_VALUES.values()):
        try:
            b_value = _number(header[group, number].value)
        except Exception:  # absent, or of another shape
            continue
        if 0 <= b_value % GE_OFFSET < 20_000:
            return b_value % GE_OFFSET
    return None


def _number(raw: Any) -> float:
    """Read the first number of a private element, whose value representation may have been lost in transfer (`UN`)."""
    if isinstance(raw, bytes):
        try:
            return float(raw.decode("ascii").strip("\0 ").split("\\")[0])
        except ValueError:
            return float(struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0])
    return float(str(raw).split("\\")[0] if isinstance(raw, int | float | str) else raw[0])


def plain_words(*parts: str) -> str:
    """Return lower-case words separated by single spaces, without accents; of the punctuation, `*`, `/` and `+` are kept.

    Examples
    --------
    >>> plain_words("AX_T1-SE", "W/O", "+C")
    'ax t1 se without cplus'
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", " ".join(parts))  # camel case
    # without accents; composed again, because Hangul is decomposed too
    text = unicodedata.normalize("NFKD", spaced.replace("_", " ")).lower()
    text = unicodedata.normalize("NFC", "".join(letter for letter in text if not unicodedata.combining(letter)))
    # Cyrillic т in T1 and T2; letters without a decomposition
    text = re.sub(r"т(?=\s?[12])", "t", text).translate({ord("ł"): "l", ord("ø"): "o", ord("ß"): "ss", ord("ı"): "i"})
    for signs, words in SPELLED_OUT:
        text = signs.sub(words, text)
    # split words where Latin and East Asian scripts meet
    text = re.sub(r"(?<=[\x20-\x7e])(?=[\u3000-\uffff])|(?<=[\u3000-\uffff])(?=[\x21-\x7e])", " ", text)
    return re.sub(r" +", " ", re.sub(r"[^\w*+/ ]|_", " ", text)).strip()


def contrast_by_words(words: str) -> bool | None:
    """Return whether words (`plain_words` of a header or a file name) say that contrast was given; None if they do not say.

    ValueError if they contradict each other or are ambiguous.

    Examples
    --------
    >>> contrast_by_words("t1 tra ohne km"), contrast_by_words("t1 post gad"), contrast_by_words("t1 post fossa")
    (False, True, None)
    """
    without = WITHOUT.search(words) is not None
    with_it = WITH.search(WITHOUT.sub(" ", words)) is not None
    if (without and with_it) or AMBIGUOUS.search(words):
        message = "the words of a header say both that contrast was given and that it was not"
        raise ValueError(message)
    return with_it if with_it or without else None


def contrast_by_agent(agent: str) -> bool | None:
    """Return whether ContrastBolusAgent (as `plain_words`) names an agent; None if it is empty or unspecific."""
    if not agent or UNSTATED_AGENT.fullmatch(agent):
        return None
    return NO_AGENT.fullmatch(agent) is None and NOT_IN_THE_BRAIN.fullmatch(agent) is None


def contrast_given(words: str, agent: str) -> tuple[bool, bool]:
    """Return whether contrast was given, and whether that is in doubt; both arguments are `plain_words`.

    A doubtful case counts as not given: the label without contrast claims less.
    """
    try:
        by_words = contrast_by_words(words)
    except ValueError:
        return False, True
    by_agent = contrast_by_agent(agent)
    if by_words is not None and by_agent is not None and by_words != by_agent:
        return False, True
    return bool(by_words or by_agent), False


def other_part(text: str) -> str:
    """Return our word for the part of the body that BodyPartExamined names; empty for the head, several parts with it, and unknown words.

    Examples
    --------
    >>> [other_part(text) for text in ("LSPINE", "RIGHT KNEE", "CHESTABDPELVIS", "HEADNECK", "BRAIN", "")]
    ['spine', 'knee', 'chest', '', '', '']
    """
    words = re.sub(r"[^a-z]", "", plain_words(text))
    return next((part for part, names in OTHER_PARTS.items() if re.fullmatch(rf"(?:{BESIDE})*(?:{names})(?:{ANY_PART})*", words)), "")
