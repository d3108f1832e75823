"""De-identify the headers of DICOM series by the table and options of PS3.15 (2026c), and the JSON sidecars of converted scans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralmedbench.deid.headers.diff import changes, snapshot
from neuralmedbench.deid.headers.element_values import (
    BINARY_NUMBERS,
    KEPT,
    OWN,
    TABLE,
    CleanValue,
    Element,
    clean_value,
    is_safe_value,
    standard_meaning,
)
from neuralmedbench.deid.headers.rules import (
    BASIC,
    CODES,
    CREATORS,
    OF_PIXELS,
    OWN_RULES,
    Action,
    HeaderRules,
    Option,
    action_of,
    declare,
    is_safe_private,
    private_vr,
    vrs_of,
)
from neuralmedbench.deid.values import NO_TIMES, Times, clean_descriptor, paired_time, study_start
from neuralmedbench.errors import DeidentificationError
from neuralmedbench.files import dicom
from neuralmedbench.files.json_files import read_json
from neuralmedbench.runtime.storage import full_disk_cause

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

PLAIN_IMAGES = frozenset({"1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.4"})
"""SOP classes of CT and MR images; all others may require more elements."""
CODING_SCHEME = 0x00080102
ALIKE = (frozenset({"DS", "IS"}), frozenset({"US", "SS", "UL", "SL", "FL", "FD"}))
"""VRs for numbers as text and as bytes; within each group the file may use another VR than the standard's."""
PRIVATE = "private"
ALLOWED = frozenset({
    "Modality", "MagneticFieldStrength", "ImagingFrequency", "Manufacturer", "MRAcquisitionType", "ScanningSequence",
    "SequenceVariant", "ScanOptions", "ImageType", "SliceThickness", "SpacingBetweenSlices", "EchoTime", "EchoNumber", "RepetitionTime",
    "InversionTime", "FlipAngle", "EchoTrainLength", "PixelBandwidth", "PercentSampling", "PercentPhaseFOV", "AcquisitionMatrixPE",
    "PhaseEncodingSteps", "ReconMatrixPE", "DiffusionBValue", "XRayExposure", "XRayTubeCurrent", "KVP", "ConvolutionKernel",
    "ImageOrientationPatientDICOM", "InPlanePhaseEncodingDirectionDICOM", "ConversionSoftware", "ConversionSoftwareVersion",
})  # fmt: skip
DEVICE = frozenset({"ManufacturersModelName", "SoftwareVersions", "ReceiveCoilName"})
"""Kept with the option 113109."""
DESCRIPTIONS = ("SeriesDescription", "ProtocolName")
"""Reduced to words about scans and kept with the option 113105."""
SIDECAR_NAMES = {"ManufacturerModelName": "ManufacturersModelName"}
"""Keys of the converter that are not the standard's keyword."""
CLOCK = re.compile(r"(\d{2})(\d{2})(\d{2})")
SHORT_WORD = re.compile(r"[A-Za-z0-9 _.+*\\-]{1,40}")
"""Includes the backslash with which dcm2niix joins several values."""
METHOD = ("headers by an allow-list", "face removed in native space")
"""A list, as BIDS wants it."""


def clean_series(source: Path, target: Path, rules: HeaderRules, changed: Counter[tuple[str, str]] | None = None) -> Counter[str]:
    """Clean the files of one DICOM series.

    `changed`: is filled with the action on every element by name (see `diff.changes`), for the first file and for every file with an element
    that the previous ones lack. Raises DataError if a file cannot be read, DeidentificationError if it cannot be written after cleaning,
    OSError if the disk is full.
    """
    target.mkdir(parents=True, exist_ok=True)
    cleaner = HeaderCleaner(rules)
    counts: Counter[str] = Counter()
    compared: set[int] = set()
    paths = sorted(source.glob("*.dcm"))
    for number, path in enumerate(paths, start=1):
        dataset = dicom.read_dicom(path)
        # the comparison for the reviewer needs only files with elements not seen before
        is_new = changed is not None and not compared.issuperset(dataset.keys())
        compared.update(dataset.keys())
        before = snapshot(dicom.read_dicom(path)) if is_new else None
        counts += cleaner.clean(dataset)
        if before is not None and changed is not None:
            changed.update(changes(before, dataset))
        write_dicom(target / path.name, dataset, f"file {number} of {len(paths)} of a series")
    return counts


def write_dicom(path: Path, dataset: Dataset, what: str) -> None:
    """Write a cleaned dataset.

    Raises DeidentificationError if it cannot be written, naming it `what`, and OSError if the disk is full.
    """
    try:
        dataset.save_as(path, enforce_file_format=True)
    except Exception as error:  # pydicom may raise anything, and its message may hold a header value: only the type is passed on
        if full := full_disk_cause(error):
            raise full from None
        message = f"{what} could not be written after cleaning ({type(error).__name__})"
        raise DeidentificationError(message) from None


class HeaderCleaner:
    """Cleans the headers of one patient; caches cleaned values, because the files of a series share most of them."""

    def __init__(self, rules: HeaderRules) -> None:
        self._rules = rules
        self._known: dict[Element, CleanValue] = {}
        self._enhanced = False
        self._start: datetime | None = None
        self._counts: Counter[str] = Counter()

    def clean(self, dataset: Dataset) -> Counter[str]:
        """Remove the identifiers from a DICOM dataset in place, including nested sequences and the file meta group.

        Pixels are not changed. Returns the number of elements changed by each check: `private`, `uids`, `dates`, `text`, `table`. An element
        that cannot be cleaned is removed.

        Values are examined as encoded in the file, so most elements are never decoded. An element is judged by the VR of its tag in the
        standard, not by the one in the file, so text cannot hide behind another VR.
        """
        self._counts = Counter()
        self._enhanced = dicom.text(dataset, "SOPClassUID") not in PLAIN_IMAGES
        self._start = study_start(dataset, self._rules.dates)
        if dataset.original_encoding[0] is False and any(element.VR is None for element in map(dataset.get_item, list(dataset.keys()))):
            # explicit VR by its transfer syntax, implicit by its bytes: such elements can be written only after decoding
            list(dicom.elements(dataset))
        self._clean_items(dataset, top=True)
        del self._counts[KEPT]
        dataset.PatientID = dataset.PatientName = self._rules.patient_id
        dataset.PatientBirthDate = ""
        if "PatientSex" not in dataset:
            dataset.PatientSex = ""
        declare(dataset, self._rules.applied - OF_PIXELS, kept="keep" in self._rules.elements.values())
        _clean_meta(dataset)
        return self._counts

    def _clean_items(self, dataset: Dataset, *, top: bool) -> None:
        """Clean the elements of a dataset or of an item of a sequence."""
        safe = self._safe_private(dataset) if top and Option.SAFE_PRIVATE in self._rules.applied else frozenset[int]()
        coded = CODING_SCHEME in dataset
        meaning = standard_meaning(dicom.text(dataset, CODING_SCHEME), dicom.text(dataset, "CodeValue")) if coded else ""
        for tag in list(dataset.keys()):
            if tag.group % 2:
                if tag not in safe:
                    del dataset[tag]
                    self._counts[PRIVATE] += 1
                continue
            try:
                self._counts[self._clean_element(dataset, tag, top=top, meaning=meaning)] += 1
            except Exception:  # pydicom may raise anything, and its message may hold the value: the element is removed
                dataset.pop(tag, None)
                self._counts[TABLE] += 1

    def _clean_element(self, dataset: Dataset, tag: Any, *, top: bool, meaning: str) -> str:
        """Clean one standard element; returns the name of the check that changed it, or `kept`."""
        action, own = action_of(tag), self._rules.elements.get(int(tag))
        # 1. elements whose action does not depend on the value
        if own == "remove" or (own is None and (action is Action.REMOVE or (action is Action.PIXELS and not top))):
            del dataset[tag]
            return TABLE if own is None else OWN
        if action is Action.PIXELS:
            return KEPT
        kinds = vrs_of(tag)
        if "SQ" in kinds:
            return self._clean_sequence(dataset, tag, action)
        # 2. the encoded value, under a VR that the standard allows for the tag
        element: Any = dataset.get_item(tag)
        vr = element.VR if element.VR and element.VR != "UN" else next(iter(sorted(kinds)))
        value = element.value if isinstance(element.value, bytes) else _encoded(element.value)
        if vr not in kinds and not any(vr in alike and kinds & alike for alike in ALIKE):
            del dataset[tag]  # not a VR of the standard for this tag, so the meaning of the bytes is unknown
            return TABLE
        # 3. clean it, unless an equal element was cleaned before
        times = Times(self._start, paired_time(dataset, tag)) if action is Action.DATE else NO_TIMES
        key = Element(tag, vr, value, self._enhanced, meaning, times)
        cleaned = self._known.get(key)
        if cleaned is None:
            cleaned = self._known[key] = clean_value(key, self._rules)
        new, check = cleaned
        if new is None:
            del dataset[tag]
        elif new is not value and new != value:
            _replace(dataset, tag, element, vr, new)
        return check

    def _clean_sequence(self, dataset: Dataset, tag: Any, action: Action) -> str:
        emptied = action in {Action.EMPTY, Action.EMPTY_OR_GONE} or (action is Action.CONTENT and Option.CONTENT not in self._rules.applied)
        element = dataset[tag]
        if element.VR != "SQ" or (emptied and action is not Action.EMPTY and not self._enhanced):
            del dataset[tag]
            return TABLE
        if emptied:
            check = TABLE if element.value else KEPT
            element.value = []
            return check
        for item in element.value or ():
            self._clean_items(item, top=False)
        return KEPT

    def _safe_private(self, dataset: Dataset) -> frozenset[int]:
        """Return the tags of private elements to keep: numbers of the safe list, and the creators of their blocks."""
        tags = [tag for tag in dataset.keys() if tag.group % 2]  # noqa: SIM118 (a Dataset iterates over decoded elements)
        blocks = [tag for tag in tags if 0x10 <= tag.element <= 0xFF]  # private creators reserve blocks of elements
        names = {int(tag): name for tag in blocks if (name := dicom.text(dataset, tag)) in CREATORS}
        kept: set[int] = set()
        for tag in tags:
            creator = tag.group << 16 | tag.element >> 8  # (gggg,xxee) belongs to the creator at (gggg,00xx)
            if creator not in names:
                continue
            element: Any = dataset.get_item(tag)
            little = element.is_little_endian if element.is_raw else True
            value = element.value
            if not isinstance(value, bytes) or not is_safe_private(names[creator], tag, element.VR or "UN", value, little_endian=little):
                continue
            vr = private_vr(names[creator], tag)
            if is_safe_value(vr, value if vr in BINARY_NUMBERS else value.rstrip(b"\0 "), self._rules):
                kept |= {int(tag), creator}
        return frozenset(kept)


def _encoded(value: Any) -> bytes:
    """Encode a decoded value as text; non-ASCII bytes never pass as harmless."""
    if value is None:
        return b""
    parts = [value] if isinstance(value, str) or not hasattr(value, "__iter__") or hasattr(value, "family_name") else list(value)
    return "\\".join(str(part) for part in parts).encode("utf-8", "replace")


def _replace(dataset: Dataset, tag: Any, element: Any, vr: str, value: bytes) -> None:
    if element.is_raw:
        # DICOM values have an even length: UIDs are padded with a zero byte, text with a space
        padded = value + (b"\0" if vr == "UI" else b" ") * (len(value) % 2)
        dataset[tag] = element._replace(value=padded, length=len(padded))
    else:
        dataset.add_new(tag, vr, value.decode("ascii"))


def _clean_meta(dataset: Dataset) -> None:
    """Rebuild the file meta group: the old one holds the instance's UID and the sender's name."""
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

    old = getattr(dataset, "file_meta", None)
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    implicit, little = dataset.original_encoding
    # without a transfer syntax it follows from the encoding that was read
    guessed = ImplicitVRLittleEndian if implicit is not False else ExplicitVRBigEndian if little is False else ExplicitVRLittleEndian
    meta.TransferSyntaxUID = (old.get("TransferSyntaxUID") if old is not None else None) or guessed
    dataset.file_meta = meta
    dataset.preamble = b"\0" * 128


def clean_sidecar(
    path: Path | None, *, modality: str, codes: Iterable[str] = (), acquired: str = "", kept_elements: Iterable[str] = ()
) -> dict[str, Any]:
    """Build the published sidecar of a scan.

    `path`: sidecar written by dcm2niix; None for scans that arrived as NIfTI. `codes`: options of PS3.15 that were applied. `acquired`:
    AcquisitionTime after cleaning (HHMMSS). `kept_elements`: keywords that own rules keep, as they stand in the cleaned header.
    Keeps technical keys whose values are numbers, short words or lists of them, and descriptions reduced to words about scans.
    """
    applied = sorted({BASIC, *codes})
    source = read_json(path) if path is not None else {}
    allowed = ALLOWED | (DEVICE if Option.DEVICE in applied else frozenset())
    kept = {key: value for key, value in source.items() if key in allowed and _harmless(value)}
    if Option.DATES in applied and (clock := CLOCK.fullmatch(acquired)):
        kept["AcquisitionTime"] = ":".join(clock.groups())
    for key in DESCRIPTIONS if Option.DESCRIPTORS in applied else ():
        if isinstance(source.get(key), str) and (text := clean_descriptor(source[key])):
            kept[key] = text
    own = {SIDECAR_NAMES.get(keyword, keyword) for keyword in kept_elements}
    kept.update({key: value for key, value in source.items() if key in own and isinstance(value, str | int | float)})
    declared = [{"CodeValue": code, "CodingSchemeDesignator": "DCM", "CodeMeaning": CODES[code]} for code in applied]
    method = [*METHOD, OWN_RULES] if own else list(METHOD)
    return {**kept, "Modality": modality, "DeidentificationMethod": method, "DeidentificationMethodCodeSequence": declared}


def _harmless(value: Any) -> bool:
    if isinstance(value, list):
        return all(_harmless(part) and not isinstance(part, list) for part in value)
    return isinstance(value, bool | int | float) or (isinstance(value, str) and SHORT_WORD.fullmatch(value) is not None)
