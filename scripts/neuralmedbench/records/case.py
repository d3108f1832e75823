"""What each per-case stage says about one case: `case.json`, written by ingest, deidentify, normalise and slices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from neuralmedbench.records.answer_key import ScoreRow

SCHEMA_VERSION = 2


class Sequence(StrEnum):
    """Kind of scan, spelled as its BIDS suffix where there is one."""

    T1W = "T1w"
    CE_T1W = "ceT1w"
    T2W = "T2w"
    FLAIR = "FLAIR"
    DWI = "dwi"
    ADC = "ADC"
    SWI = "SWI"
    T2STARW = "T2starw"
    PDW = "PDw"
    CT = "CT"
    CE_CT = "ceCT"
    UNKNOWN = "unknown"


class Plane(StrEnum):
    """The plane in which a scan was acquired, or a picture was cut."""

    AXIAL = "axial"
    CORONAL = "coronal"
    SAGITTAL = "sagittal"

    @property
    def axis(self) -> str:
        """The axis along which its slices follow each other: `x` (left-right), `y` (front-back) or `z` (feet-head)."""
        return {Plane.SAGITTAL: "x", Plane.CORONAL: "y", Plane.AXIAL: "z"}[self]


class State(StrEnum):
    """What became of a case or a picture at a stage."""

    OK = "ok"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, kw_only=True)
class Series:
    """One scan of a case, as a stage leaves it.

    Attributes
    ----------
    series_id : str
        `series-01`, `series-02`...; the same at every stage.
    path : str
        POSIX path relative to the folder of `case.json`. After ingest a folder of DICOM files, or a NIfTI file (raw NIfTI, and
        diffusion that was converted while its headers were there); later always a NIfTI file. The slices stage makes no scans: its
        paths are those of the normalised case.
    modality : str
        DICOM Modality: `MR`, `CT` or `OT`.
    sequence : Sequence
        Kind of scan.
    plane : Plane or None
        Plane of acquisition; None for isotropic 3-D scans and before it is known.
    acquisition : str
        `2d`, `3d` or `unknown`.
    b_value : float or None
        Diffusion weighting in s/mm2.
    flags : tuple of str
        Findings that a person should know: `words_and_physics_disagree`, `positions_and_thickness_disagree`...
    quality : dict of str to float
        Numbers of the stage, units in their names (`spacing_mm`, `shift_mm`...).
    volume_sha256 : str
        Digest of the de-identified NIfTI that the scan comes from (from normalise on): what the audit covers.
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
    volume_sha256: str = ""
    window: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One slice in a picture; a single picture has one, a montage several, left to right and then top to bottom.

    Attributes
    ----------
    index : int
        Index of the slice in the native volume (LPS+), along its slice axis.
    position_mm : float
        Position of the slice along that axis, in the space of the reference sequence (LPS+, mm).
    """

    index: int
    position_mm: float


@dataclass(frozen=True, kw_only=True)
class Slice:
    """One picture that was cut from a normalised case.

    Attributes
    ----------
    image_id : str
        Unique within the case, for example `flair-z+012`: sequence, axis and position in whole mm (a montage has `montage` in its
        place, a CT window other than `brain` its name before the axis).
    path : str
        POSIX path of the PNG, relative to the folder of `case.json`.
    sha256, pixels_sha256, volume_sha256 : str
        Digest of the PNG, of its grey values alone (row by row, without any file format), and of the de-identified NIfTI that it shows.
    sequence, plane : Sequence, Plane
        What it shows.
    index, position_mm : int, float
        Those of its (middle) tile.
    tiles : tuple of Tile
        Every slice that it shows.
    native_mm_per_px : tuple of float
        Size of a pixel of the slice as it was acquired, along rows and along columns.
    mm_per_px : float
        Size of a pixel as it is sent; these pixels are square.
    window : tuple of float
        Intensities shown as black and white, in the volume's own units.
    window_name : str
        `brain`, `blood` or `bone` (CT), `shared` (T1 and T1 after contrast through one window) or `own`.
    resampled : bool
        True when the plane cuts across thick slices, so that rows or columns are interpolated between them.
    side_marked : bool
        True when the letters L and R were drawn beside the brain.
    oracle : bool
        True when the choice of the slice used the answer.
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


@dataclass(frozen=True, kw_only=True)
class FileFate:
    """What became of one raw file; files are known by their number, never by their name.

    Attributes
    ----------
    file : int
        Number of the file in the private index.
    fate : str
        `used` or `set_aside`.
    reason : str
        The series that uses it, or why it was set aside.
    """

    file: int
    fate: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class CaseRecord:
    """One case after one stage.

    Attributes
    ----------
    benchmark, case_id, patient_id : str
        Whose; `patient_id` is the cluster of every statistic. Both ids are pseudonyms.
    stage : str
        `ingest`, `deidentify`, `normalise` or `slices`.
    state : State
        `quarantined` records are passed on by every later stage.
    reason : str
        Why it was quarantined, in one line; empty when ok.
    quarantined_by : str
        The stage that quarantined it; empty when ok.
    source_sha256 : str
        Digest of what the stage read: the raw files, or the case.json of the stage before.
    files : dict of str to str
        SHA-256 of every file beside this record, by relative POSIX path.
    series : tuple of Series
        The scans that are used; after normalise the first one is the reference.
    set_aside : dict of str to str
        Why de-identification or normalisation left a series out, by series id.
    slices : tuple of Slice
        The pictures (slices stage only).
    pictures : tuple of PictureFate
        The pictures of a case that came as pictures and not as scans (ingest and deidentify), with paths relative to the folder of
        `case.json`; such a case has no series.
    fates : tuple of FileFate
        Every raw file (ingest stage only).
    raw_files : dict of str to int
        How many raw files are used (`used`), and how many were set aside, by reason in words. Passed on by every stage.
    notes : tuple of str
        Paths of the clinical notes, in order of time.
    record : str
        Path of the structured health record, or empty: CSV as it came (ingest), then TSV with `records.columns.RECORD_COLUMNS`.
        Later stages copy neither notes nor record; the paths stay those of the de-identified case.
    quality : dict of str to float
        Numbers about the case as a whole.
    checks : dict of str to int
        De-identification: how many values each named check removed, replaced or found (counts, never values).
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
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class PictureFate:
    """One 2-D picture of a benchmark of `kind: pictures`, after ingest or deidentify.

    Attributes
    ----------
    image_id : str
        `img-000001`...: its row in the data set's own table. Of an own case: its id and the number of the picture, `c0ffee-01`...
    path : str
        POSIX path relative to the folder of the manifest; empty when quarantined.
    sha256 : str
        Digest of the file; empty when quarantined.
    state : State
        Whether it is used.
    reason : str
        Why not.
    flags : tuple of str
        Findings that a person should know: `type_disagrees` when name or MIME type say another format than the bytes hold,
        `burned_in_text_hidden`, and `burned_in_text_kept` when the benchmark's yaml says so.
    case_id : str
        Case that it belongs to; empty in data sets whose questions say it.
    sequence, plane : str
        What a person says that it shows; `unknown` and empty when nothing is said.
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
        """Give it as quarantined for a reason; one that is already stays as it is."""
        return replace(self, path="", sha256="", state=State.QUARANTINED, reason=reason) if self.state is State.OK else self


@dataclass(frozen=True, kw_only=True)
class PictureManifest:
    """All pictures of a benchmark of `kind: pictures`, after ingest or deidentify (`pictures.json`).

    Attributes
    ----------
    pictures : tuple of PictureFate
        In the order of the table, or of own cases by case.
    checks : dict of str to int
        As in `CaseRecord`.
    cases : dict of str to str
        Of own cases: the digest of `sub-<case>/case.json` beside the manifest, by case. It holds the digests of everything that the case
        has, so a changed note is a changed manifest.
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
    """A row of `slices.parquet`: one picture of one case, with the chain of digests that the audit follows.

    The attributes are those of :class:`Slice`, the path relative to the repository, and whose it is.
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


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The pass token of de-identification (`audit.json`): what may be shown to a model.

    Attributes
    ----------
    benchmark : str
        Whose.
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
        Identifiers found after cleaning, over every file of the stage; must be 0.
    looked_for : dict of str to str
        In words, what each of these checks counts.
    covered : dict of str to str
        SHA-256 of every file that the audit covers (scans, sidecars, texts; or pictures), with its case_id or image_id.
    flow : dict of str to int
        Cases listed, quarantined at ingest, quarantined at deidentify, passed; of pictures, both quarantines are one number. Then how many
        of them a reviewer took out (`excluded_by_review`).
    reasons : dict of str to int
        Why cases are quarantined, counted by kind of reason.
    options : tuple of str
        Options of DICOM PS3.15 Annex E that hold, by code.
    tools : dict of str to str
        Versions of the packages that cleaned; several when the cases were cleaned by several.
    score : tuple of ScoreRow
        How often what had to be done to planted identities was done; phantoms only.
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
    schema_version: int = SCHEMA_VERSION
