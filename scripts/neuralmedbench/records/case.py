"""Records of the per-case stages: `case.json` of ingest, deidentify, normalise and slices; pictures, and the audit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from neuralmedbench.records.answer_key import ScoreRow
from neuralmedbench.records.review import AcceptedIdentityLeak, IdentityLeak, OwnRule
from neuralmedbench.records.views import ViewRules

SCHEMA_VERSION = 3
MIN_SLICES = 3
"""Fewer slices are no volume."""
VoxelSizes = Literal["sform", "pixdim"]
"""Statement of a NIfTI header that counts where its voxel sizes differ."""


class NoHead(StrEnum):
    """Reasons of files that are no head scan that could have been used, or that say nothing about one (copies, sidecars).

    A reason may go on after these words; `{}` stands for what differs. A run whose cases of patients are quarantined for other reasons stops
    (`files.case_flow`).
    """

    DIRECTORY = "directory of a medium (DICOMDIR)"
    SCREENSHOT = "screenshot (secondary capture)"
    PHOTOGRAPH = "photograph or video"
    DOSE_REPORT = "dose report"
    PROTOCOL = "acquisition protocol or dose record"
    KEY_OBJECT = "key object selection"
    REPORT = "structured report"
    PRESENTATION = "presentation state"
    DOCUMENT = "document"
    FILE_IN_DICOM = "document (encapsulated PDF or other file)"
    RADIOTHERAPY = "radiotherapy object"
    SEGMENTATION = "segmentation mask"
    REGISTRATION = "registration, fiducials or raw data"
    VALUE_MAP = "value map without an image"
    PARAMETRIC_MAP = "parametric map"
    WAVEFORM = "waveform"
    SPECTROSCOPY = "spectroscopy"
    COLOUR = "colour picture, not a scan"
    ULTRASOUND = "ultrasound"
    PET = "PET image"
    NUCLEAR = "nuclear medicine image"
    RADIOGRAPH = "radiograph"
    ANGIOGRAM = "angiogram or fluoroscopy"
    NEITHER_MR_NOR_CT = "neither an MR nor a CT image"
    LOCALIZER = "localizer"
    NOT_A_VOLUME = "not a grey volume (a single picture, or colours)"
    COMPLEX = "complex numbers, not grey values: store their magnitude as a scan of its own"
    FEW_SLICES = f"fewer than {MIN_SLICES} slices"
    MASK = "a mask, not a scan"
    MOSAIC = "a mosaic that is no diffusion scan"
    VOLUMES = "a series of {} volumes that is no diffusion scan"
    VOLUMES_WITHOUT_WEIGHTS = "a series of {} volumes without b-values"
    ECHOES = "a series of {} echoes: store one of them as a scan of its own"
    NOT_KNOWN = "kind of scan not known"
    OTHER_PART = "shows another part of the body"
    FIELD_MAP = "field map"
    FLOW = "flow measurement (phase contrast)"
    PERFUSION = "perfusion scan"
    FUNCTIONAL = "functional scan"
    PROJECTION = "projection of a scan (MIP, MinIP)"
    PHASE = "phase image"
    MAP = "map computed from scans"
    SUBTRACTION = "subtraction of scans"
    CALIBRATION = "calibration scan"
    DUAL_ENERGY = "computed from a dual-energy CT"
    EMPTY = "empty file (0 bytes)"
    OFFICE = "an office document or table: save a note as .txt, a record as record.csv"
    ARCHIVE = "an archive or a compressed file: unpack it beside the others"
    NO_SCAN = "not a scan (neither readable DICOM nor NIfTI)"
    DUPLICATE = "duplicate of another file"
    COPY = "a copy of another image of the series"
    SENT_AGAIN = "the same images as {}, sent again"
    REFORMATTED = "reformatted from another series of the case (ImageType)"
    WITHOUT_SCAN = "gradients or a sidecar without their scan"


class Sequence(StrEnum):
    """Kind of scan, spelled as its BIDS suffix if it has one."""

    T1W = "T1w"
    CE_T1W = "ceT1w"
    T2W = "T2w"
    FLAIR = "FLAIR"
    DWI = "dwi"
    ADC = "ADC"
    SWI = "SWI"
    T2STARW = "T2starw"
    PDW = "PDw"
    ANGIO = "angio"
    CT = "CT"
    CE_CT = "ceCT"
    UNKNOWN = "unknown"


CT_SEQUENCES = (Sequence.CT, Sequence.CE_CT)
"""Computed tomography, in Hounsfield units; all other kinds are MR."""


class Plane(StrEnum):
    """The plane in which a scan was acquired, or a picture was cut."""

    AXIAL = "axial"
    CORONAL = "coronal"
    SAGITTAL = "sagittal"

    @property
    def axis(self) -> str:
        """Slice axis: `x` (left-right), `y` (front-back) or `z` (feet-head)."""
        return "xyz"[PLANES_ACROSS.index(self)]


PLANES_ACROSS = (Plane.SAGITTAL, Plane.CORONAL, Plane.AXIAL)
"""The planes of slices that follow each other along x, y and z."""


class State(StrEnum):
    """Outcome of a stage for a case or a picture."""

    OK = "ok"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, kw_only=True)
class Series:
    """One scan of a case after a stage.

    Attributes
    ----------
    series_id : str
        `series-01`, `series-02`...; the same at every stage.
    path : str
        POSIX path relative to the folder of `case.json`. After ingest a folder of DICOM files, or a NIfTI file (raw NIfTI, or a series
        that ingest converted); later always a NIfTI file. The slices stage writes no scans: its paths are those of the normalised case.
    modality : str
        DICOM Modality: `MR`, `CT` or `OT`.
    sequence : Sequence
        Kind of scan.
    plane : Plane or None
        Plane of acquisition; None for isotropic 3-D scans, and while it is unknown.
    acquisition : str
        `2d`, `3d` or `unknown`.
    b_value : float or None
        Diffusion weighting in s/mm2.
    flags : tuple of str
        Warnings for a person: `words_and_physics_disagree`, `positions_and_thickness_disagree`...
    quality : dict of str to float
        Quality numbers of the stage, with units in their names (`spacing_mm`, `shift_mm`...).
    agent : str
        Contrast agent named by a person, one word; empty if none was named.
    volume_sha256 : str
        Digest of the de-identified NIfTI file of the scan, which the audit covers (from normalise on).
    window : tuple of float or None
        Intensities shown as black and white, in the volume's own units (from normalise on).
    """

    series_id: str
    path: str
    modality: str
    sequence: Sequence
    plane: Plane | None = None
    acquisition: str = "unknown"
    b_value: float | None = None
    flags: tuple[str, ...] = ()
    quality: dict[str, float] = field(default_factory=dict)
    agent: str = ""
    volume_sha256: str = ""
    window: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One slice in a picture: one in a single picture, several in a montage, left to right and then top to bottom.

    Attributes
    ----------
    index : int
        Index of the slice in the native volume (LPS+), along its slice axis.
    position_mm : float
        Position of the slice along that axis, in the space of the reference sequence (LPS+, mm).
    left_px, top_px, side_px : int
        Upper left corner and side of its square in the picture; 0 if it was cut before version 3.
    corner_mm, right_mm, down_mm : tuple of float or None
        Upper left corner of that square in the space of the reference sequence (x, y, z, LPS+, mm), and the steps by which the place changes
        from one pixel to the next to the right and down; None if it was cut before version 3. `records.coordinates` reads them.
    """

    index: int
    position_mm: float
    left_px: int = 0
    top_px: int = 0
    side_px: int = 0
    corner_mm: tuple[float, float, float] | None = None
    right_mm: tuple[float, float, float] | None = None
    down_mm: tuple[float, float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One picture cut from a normalised case.

    Attributes
    ----------
    image_id : str
        Unique in the case, for example `flair-z+012`: sequence, axis and position in whole mm (`montage` instead of axis and position, the
        name of a CT window other than `brain` before the axis).
    path : str
        POSIX path of the PNG, relative to the folder of `case.json`.
    sha256, pixels_sha256, volume_sha256 : str
        Digests of the PNG, of its grey values only (row by row, without file format), and of the de-identified NIfTI file.
    sequence, plane : Sequence, Plane
        Its sequence and plane.
    index, position_mm : int, float
        Those of its (middle) tile.
    tiles : tuple of Tile
        All its slices.
    native_mm_per_px : tuple of float
        Size of a pixel as acquired, along rows and along columns.
    mm_per_px : float
        Size of a pixel as sent; these pixels are square.
    window : tuple of float
        Intensities shown as black and white, in the volume's own units.
    window_name : str
        Name of a CT window (`slices.ct_windows`), `shared` (T1 and T1 after contrast through one window) or `own`.
    resampled : bool
        True if the plane crosses thick slices, so that rows or columns are interpolated between them.
    side_marked : bool
        True if it has the letters L and R.
    oracle : bool
        True if the choice of the slice used the answer.
    size_px : tuple of int or None
        Width and height of the PNG; None if it was cut before version 3.
    """

    image_id: str
    path: str
    sha256: str
    pixels_sha256: str
    volume_sha256: str
    sequence: Sequence
    plane: Plane
    index: int
    position_mm: float
    tiles: tuple[Tile, ...]
    native_mm_per_px: tuple[float, float]
    mm_per_px: float
    window: tuple[float, float]
    window_name: str
    resampled: bool = False
    side_marked: bool = False
    oracle: bool = False
    size_px: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class FileFate:
    """Outcome of one raw file, identified by its number and never by its name.

    Attributes
    ----------
    file : int
        Number of the file in the private index.
    fate : str
        `used` or `set_aside`.
    reason : str
        The series that uses it, or the reason for which it is excluded.
    """

    file: int
    fate: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class SeriesFate:
    """Outcome of one series that came in; it holds no word of a header.

    Attributes
    ----------
    series_id : str
        `series-01`...; `other-01`... for objects and files that are part of no series of images.
    files : int
        Number of its raw files.
    reason : str
        Reason for which ingest excluded it; empty if it was imported.
    variant : str
        How the scanner processed it, for example `intensity normalised`; empty if its header does not say.
    same_acquisition : tuple of str
        Other imported series that are the same acquisition, processed in another way.
    no_preview : str
        Reason for which no preview of an excluded series can be shown; empty if one may be made.
    """

    series_id: str
    files: int
    reason: str = ""
    variant: str = ""
    same_acquisition: tuple[str, ...] = ()
    no_preview: str = ""


@dataclass(frozen=True, kw_only=True)
class CaseRecord:
    """One case after one stage.

    Attributes
    ----------
    benchmark, case_id, patient_id : str
        Names of the benchmark, case and patient; both ids are pseudonyms. `patient_id` is the cluster of all statistics.
    stage : str
        `ingest`, `deidentify`, `normalise` or `slices`.
    state : State
        Later stages pass `quarantined` records on.
    reason : str
        Reason of the quarantine, in one line; empty if ok.
    quarantined_by : str
        The stage that quarantined it; empty if ok.
    source_sha256 : str
        Digest of the stage's input: the raw files, or the case.json of the previous stage.
    files : dict of str to str
        SHA-256 of every file beside this record, by relative POSIX path.
    series : tuple of Series
        The scans in use; after normalise, the first one is the reference.
    set_aside : dict of str to str
        Reasons of series that de-identification or normalisation excluded, by series id.
    slices : tuple of Slice
        The pictures (slices stage only).
    pictures : tuple of PictureFate
        The pictures of a case without scans (ingest and deidentify), with paths relative to the folder of `case.json`; it has no series.
    fates : tuple of FileFate
        Every raw file (ingest stage only).
    raw_files : dict of str to int
        Number of raw files in use (`used`), and of excluded ones by reason. Passed on by every stage.
    notes : tuple of str
        Paths of the clinical notes, in order of time.
    record : str
        Path of the structured health record, or empty: the original CSV (ingest), then TSV with `records.columns.RECORD_COLUMNS`.
        Later stages copy neither notes nor record; the paths remain those of the de-identified case.
    quality : dict of str to float
        Quality numbers of the case as a whole.
    checks : dict of str to int
        Number of values that each check of de-identification removed, replaced or detected (never the values).
    same_uids : tuple of str
        Cases of other patients whose files have UIDs of this case.
    leaks : tuple of IdentityLeak
        Places where identifying values were left after cleaning: why the case was quarantined, or what a person accepted.
    raw_series : tuple of SeriesFate
        Every series that came in. Passed on by every stage.
    """

    benchmark: str
    case_id: str
    patient_id: str
    stage: str
    state: State = State.OK
    reason: str = ""
    quarantined_by: str = ""
    source_sha256: str = ""
    files: dict[str, str] = field(default_factory=dict)
    series: tuple[Series, ...] = ()
    set_aside: dict[str, str] = field(default_factory=dict)
    slices: tuple[Slice, ...] = ()
    pictures: tuple[PictureFate, ...] = ()
    fates: tuple[FileFate, ...] = ()
    raw_files: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    record: str = ""
    quality: dict[str, float] = field(default_factory=dict)
    checks: dict[str, int] = field(default_factory=dict)
    same_uids: tuple[str, ...] = ()
    leaks: tuple[IdentityLeak, ...] = ()
    raw_series: tuple[SeriesFate, ...] = ()
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class PictureFate:
    """One 2-D picture of a benchmark of `kind: pictures`, after ingest or deidentify.

    Attributes
    ----------
    image_id : str
        `img-000001`...: its row in the data set's table. For a user's case: case id and number of the picture, `c0ffee-01`...
    path : str
        POSIX path relative to the folder of the manifest; empty when quarantined.
    sha256 : str
        Digest of the file; empty when quarantined.
    state : State
        `ok` if it is used.
    reason : str
        Reason of the quarantine.
    flags : tuple of str
        Warnings for a person: `type_disagrees` if name or MIME type differ from the format of the bytes, `burned_in_text_hidden`, and
        `burned_in_text_kept` if the benchmark's YAML file asks for it.
    case_id : str
        Its case; empty in data sets whose questions name the case.
    sequence, plane : str
        As given by a person, else `unknown` and empty.
    """

    image_id: str
    path: str
    sha256: str
    state: State = State.OK
    reason: str = ""
    flags: tuple[str, ...] = ()
    case_id: str = ""
    sequence: str = "unknown"
    plane: str = ""

    def kept_back(self, reason: str) -> PictureFate:
        """Return it as quarantined with a reason; a quarantined one is returned unchanged."""
        return replace(self, path="", sha256="", state=State.QUARANTINED, reason=reason) if self.state is State.OK else self


@dataclass(frozen=True, kw_only=True)
class PictureManifest:
    """All pictures of a benchmark of `kind: pictures`, after ingest or deidentify (`pictures.json`).

    Attributes
    ----------
    pictures : tuple of PictureFate
        In the order of the table; for a user's cases, by case.
    checks : dict of str to int
        As in `CaseRecord`.
    cases : dict of str to str
        For a user's cases: the digest of `sub-<case>/case.json` by case. It contains the digests of all files of the case, so that a changed
        note changes the manifest.
    """

    benchmark: str
    stage: str
    source_sha256: str
    pictures: tuple[PictureFate, ...] = ()
    checks: dict[str, int] = field(default_factory=dict)
    cases: dict[str, str] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class SliceRow:
    """A row of `slices.parquet`: one picture of one case, with the digests by which the audit covers it.

    The attributes are those of :class:`Slice`, with benchmark, case and patient; the path is relative to the repository.
    """

    benchmark: str
    case_id: str
    patient_id: str
    image_id: str
    path: str
    sha256: str
    pixels_sha256: str
    volume_sha256: str
    sequence: str
    plane: str
    index: int
    position_mm: float
    tiles: tuple[Tile, ...]
    native_mm_per_px: tuple[float, float]
    mm_per_px: float
    window: tuple[float, float]
    window_name: str
    resampled: bool
    side_marked: bool
    oracle: bool
    size_px: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The audit of de-identification (`audit.json`), without which nothing is shown to a model.

    Attributes
    ----------
    benchmark : str
        Name of the benchmark.
    profile : str
        `pseudonymised` or `safe_harbor`.
    kind : str
        `phantom`, `public` or `patient`.
    state : str
        `passed`, `pending` (a person has to sign) or `failed`.
    reason : str
        What is pending or failed.
    checks : dict of str to int
        Sums of the cases' checks.
    leaks : int
        Identifiers detected after cleaning, in all files of the stage; must be 0.
    looked_for : dict of str to str
        Description of each check.
    covered : dict of str to str
        Case id or image id by SHA-256 of every file that the audit covers (scans, sidecars, texts; or pictures).
    flow : dict of str to int
        Cases listed, quarantined at ingest, quarantined at deidentify, passed (for pictures, one number for both quarantines), and cases
        excluded by a reviewer (`excluded_by_review`).
    reasons : dict of str to int
        Number of quarantined cases by kind of reason.
    options : tuple of str
        Codes of the applied options of DICOM PS3.15 Annex E.
    tools : dict of str to str
        Versions of the packages used for cleaning; several if the cases differ.
    score : tuple of ScoreRow
        Score of de-identification on planted identities; phantoms only.
    accepted : tuple of AcceptedIdentityLeak
        Identifying values that a person accepted in covered files.
    element_rules : tuple of OwnRule
        Own rules for single elements of headers.
    views : ViewRules or None
        Which slices of the covered scans a model may be shown on request; None: no others than the chosen ones.
    """

    benchmark: str
    profile: str
    kind: str
    state: str
    reason: str = ""
    checks: dict[str, int] = field(default_factory=dict)
    leaks: int = 0
    looked_for: dict[str, str] = field(default_factory=dict)
    covered: dict[str, str] = field(default_factory=dict)
    flow: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    tools: dict[str, str] = field(default_factory=dict)
    score: tuple[ScoreRow, ...] = ()
    accepted: tuple[AcceptedIdentityLeak, ...] = ()
    element_rules: tuple[OwnRule, ...] = ()
    views: ViewRules | None = None
    schema_version: int = SCHEMA_VERSION

    @property
    def unchecked(self) -> bool:
        """Return True for public data that were taken over as published: no check ran on them, although the audit lets them pass."""
        return self.kind == "public" and not any(count for name, count in self.checks.items() if name != "pictures_kept")
