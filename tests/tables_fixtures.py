"""A made-up run for the tests of tables, figures and report: no number in it comes from a model or a person."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from conftest import ROOT
from neuralmedbench.files.cases import write_audit, write_pictures
from neuralmedbench.files.json_files import write_json, write_json_record
from neuralmedbench.files.tables import write_records
from neuralmedbench.records.answer_key import ScoreRow
from neuralmedbench.records.answer_leaks import AnswerLeaks
from neuralmedbench.records.case import Audit, PictureFate, PictureManifest, State
from neuralmedbench.records.items import Axis, Family, Gold, GoldFields, Item, ItemImage, Level, Runner
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Grade, GradeState, ParseStatus, Rating, Score, SimilarityRow

DEPTH, BREADTH = "demo", "demo-slices"
GRADERS = ("rubric", "llm")
SKILL = {"alpha": 0.75, "beta": 0.45, "gamma": 0.2}
ARM_SHIFT = {"full": 0.0, "no_image": -0.25, "no_text": -0.15, "shuffled_image": -0.2, "findings_disclosed": 0.25}
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
DIAGNOSES = {
    "glioblastoma": ("tumor", "glioma"),
    "meningioma": ("tumor", "meningioma"),
    "acute ischaemic stroke": ("stroke", "ischemic"),
    "multiple sclerosis": ("multiple sclerosis", ""),
    "normal brain": ("normal", ""),
    "normal pressure hydrocephalus": ("other abnormalities", ""),
}
ANSWER = (
    "DIFFERENTIAL:\n1. {first}\n2. metastasis\n3. abscess\nFINDINGS: A hyperintense area on FLAIR in the left frontal lobe with mass effect.\n"
    "RATIONALE: The signal and the age of the patient fit best with {first}.\nCONFIDENCE: {confidence:.2f}"
)


def item(
    benchmark: str, case: str, patient: str, family: Family, *, level: Level, runner: Runner, images: tuple[ItemImage, ...] = ()
) -> Item:
    return Item(
        item_id=f"{benchmark}/{case}/{family}",
        case_id=case,
        patient_id=patient,
        benchmark=benchmark,
        axis=Axis.BREADTH if runner is Runner.STRUCTURED else Axis.DEPTH,
        family=family,
        level=level,
        runner=runner,
        question="What is the most likely diagnosis?",
        images=images,
        lesion_shown=True,
        notes="Three weeks of headache in the morning, and words that do not come.",
        record="age: 61 years",
    )


def score(of: Item, model: str, *, passed: bool | None, arm: str = "full", repeat: int = 0, **changes: object) -> Score:
    base = Score(
        item_id=of.item_id,
        case_id=of.case_id,
        patient_id=of.patient_id,
        benchmark=of.benchmark,
        axis=of.axis,
        family=of.family,
        level=of.level,
        runner=of.runner,
        arm=arm,
        strategy="direct",
        model=model,
        revision="1",
        repeat=repeat,
        text_sha256="0" * 64,
        state="ok",
        parse_status=ParseStatus.STRICT,
        missing=False,
        scored=True,
        lesion_shown=of.lesion_shown,
        passed=passed,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def response(of: Item, model: str, text: str, *, arm: str = "full", repeat: int = 0, state: ResponseState = ResponseState.OK) -> Response:
    return Response(
        item_id=of.item_id,
        case_id=of.case_id,
        patient_id=of.patient_id,
        benchmark=of.benchmark,
        arm=arm,
        strategy="direct",
        model=model,
        revision="1",
        repeat=repeat,
        request_id="0" * 64,
        runner=of.runner,
        state=state,
        text=text,
        images_sent=0 if arm == "no_image" else len(of.images),
        served_model=f"{model}-served",
        prompt_tokens=700,
        completion_tokens=120,
        latency_s=0.4 + 0.1 * repeat,
        attempts=1,
        called_on="2026-01-02",
    )


def write_study(
    root: Path, *, models: tuple[str, ...] = ("alpha", "beta", "gamma"), patients: int = 12, hostile: bool = False, kind: str = "phantom"
) -> None:
    """Write all files that `build_tables`, `bundle_cases` and `build_report` read."""
    rng = np.random.default_rng(7)
    _write_configs(root, models, kind)
    names = list(DIAGNOSES)
    depth, breadth, gold, flow = [], [], {DEPTH: [], BREADTH: []}, []
    for number in range(patients):
        case, patient = f"case{number:02d}", f"patient{number:02d}"
        answer = names[number % len(names)]
        images = tuple(_picture(root, rng, f"{case}-{sequence}", sequence) for sequence in ("FLAIR", "T1w"))
        for family in (Family.DIFFERENTIAL_DIAGNOSIS, Family.RATIONALE_GENERATION):
            level = Level.DIRECT if number % 3 else Level.COMPLEX
            one = item(DEPTH, case, patient, family, level=level, runner=Runner.OPEN, images=images)
            depth.append(one)
            gold[DEPTH].append(Gold(item_id=one.item_id, answer=answer, findings=("Hyperintense area on FLAIR",), established="simulation"))
        for image in images:
            one = replace(
                item(BREADTH, case, patient, Family.CLASSIFICATION, level=Level.NONE, runner=Runner.STRUCTURED, images=(image,)),
                notes="",
                record="",
            )
            one = replace(one, item_id=f"{BREADTH}/{image.image_id}", tags=("dataset:made-up",))
            breadth.append(one)
            fields = GoldFields(modality="mri", sequence=image.sequence.lower(), plane="axial", diagnosis_class=DIAGNOSES[answer][0])
            gold[BREADTH].append(Gold(item_id=one.item_id, answer=DIAGNOSES[answer][0], fields=fields))
        flow.append(
            {
                "case_id": case,
                "patient_id": patient,
                "state": "ok",
                "quarantined_by": "",
                "reason": "",
                "sequences": ["FLAIR", "T1w"],
                "set_aside": ["T2w: it covers another part of the head"] if number == 0 else [],
                "raw_files": {"used": 60, "localizer (few slices in several planes)": 3} | ({"dose report": 1} if number < 2 else {}),
                "excluded": False,
            }
        )
    odd = {
        "case_id": "case98",
        "patient_id": "patient98",
        "state": "quarantined",
        "quarantined_by": "normalise",
        "sequences": [],
        "set_aside": [],
        "raw_files": {"used": 40, "dose report": 2},
        "excluded": False,
    }
    flow.append({**odd, "reason": "FLAIR and T1w cover different parts of the head"})
    flow.append(
        {
            **odd,
            "case_id": "case99",
            "patient_id": "patient99",
            "state": "ok",
            "quarantined_by": "",
            "reason": "withdrawn",
            "raw_files": {},
            "excluded": True,
        }
    )
    write_json(root / "data" / "slices" / DEPTH / "flow.json", {"cases": flow})
    fates = tuple(PictureFate(image_id=row.images[0].image_id, path="", sha256=row.images[0].sha256) for row in breadth)
    fates += (PictureFate(image_id="img-999999", path="", sha256="", state=State.QUARANTINED, reason="text is burned into the picture"),)
    manifest = PictureManifest(benchmark=BREADTH, stage="deidentify", source_sha256="0" * 64, pictures=fates)
    write_pictures(root / "data" / "deidentified" / BREADTH / "pictures.json", manifest)
    for benchmark, items in ((DEPTH, depth), (BREADTH, breadth)):
        _write_benchmark(root, benchmark, items, gold[benchmark], models, rng=rng, hostile=hostile, kind=kind)
    write_records(root / "results" / "ratings" / "ratings.parquet", Rating, [], key=lambda row: row.item_id)


def _picture(root: Path, rng: np.random.Generator, name: str, sequence: str) -> ItemImage:
    from PIL import Image

    y, x = np.mgrid[-1:1:160j, -1:1:160j]
    head = (x / 0.72) ** 2 + (y / 0.9) ** 2 < 1
    ventricles = ((np.abs(x) - 0.12) / 0.07) ** 2 + (y / 0.3) ** 2 < 1
    centre = rng.uniform(-0.4, 0.4, 2)
    lesion = (x - centre[0]) ** 2 + (y - centre[1]) ** 2 < rng.uniform(0.01, 0.05)
    light = 110 * head - (70 if sequence == "FLAIR" else 40) * ventricles + (90 if sequence == "FLAIR" else -30) * (lesion & head)
    pixels = np.clip(light + rng.normal(0, 6, x.shape) * head, 0, 255).astype(np.uint8)
    path = Path("data") / "pictures" / f"{name.lower()}.png"
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(root / path)
    digest = hashlib.sha256((root / path).read_bytes()).hexdigest()
    return ItemImage(
        image_id=name.lower(), path=path.as_posix(), sha256=digest, volume_sha256="0" * 64, sequence=sequence, plane="axial",
        role="evidence", position_mm=12.0, mm_per_px=1.4, oracle=False,
    )  # fmt: skip


SCORE = (
    ScoreRow(place="all", action="removals", category="all", required=4000, right=4000, patients=4, patients_right=4),
    ScoreRow(place="all", action="actions", category="all", required=9000, right=8999, patients=4, patients_right=3),
    ScoreRow(place="header", action="text_retained", category="research", required=5000, right=4999, patients=4, patients_right=3),
)


def _write_benchmark(
    root: Path,
    benchmark: str,
    items: list[Item],
    gold: list[Gold],
    models: tuple[str, ...],
    *,
    rng: np.random.Generator,
    hostile: bool,
    kind: str,
) -> None:
    if hostile:  # data sets from outside bring their own words
        items = [replace(items[0], question=HOSTILE + items[0].question, notes=HOSTILE + items[0].notes), *items[1:]]
    write_records(root / "data" / "items" / f"{benchmark}.parquet", Item, items, key=lambda row: row.item_id)
    write_records(root / "data" / "gold" / f"{benchmark}.parquet", Gold, gold, key=lambda row: row.item_id)
    checks = {"private tags removed": 143, "dates shifted": 61, "names replaced in notes": 17}
    audit = Audit(
        benchmark=benchmark,
        profile="pseudonymised",
        kind=kind,
        state="passed",
        checks=checks,
        covered={"0" * 64: "case00"},
        score=SCORE if kind == "phantom" else (),
    )
    write_audit(root / "data" / "deidentified" / benchmark / "audit.json", audit)
    leaks = AnswerLeaks(benchmark=benchmark, items=len(items), leaking=0, leaks=())
    write_json_record(root / "data" / "leaks" / f"{benchmark}.json", leaks)
    reference = {row.item_id: row.answer for row in gold}
    similarity: list[SimilarityRow] = []
    for model in models:
        scores, responses, grades = [], [], {grader: [] for grader in GRADERS}
        for arm, shift in ARM_SHIFT.items():
            if items[0].runner is Runner.STRUCTURED and arm not in ("full", "no_image"):
                continue
            for number, one in enumerate(items):
                chance = float(np.clip(SKILL.get(model, 0.4) + shift + 0.35 * np.sin(number * 1.7), 0.02, 0.98))
                for repeat in range(1 if one.runner is Runner.STRUCTURED else 5):
                    passed, stated = bool(rng.random() < chance), float(rng.uniform(0.4, 0.95))
                    first = reference[one.item_id] if passed else "abscess"
                    text = ANSWER.format(first=first, confidence=stated)
                    if hostile and number == 0:
                        evidence = f"2. metastasis | for: {HOSTILE} | against: age"
                        text = f"{HOSTILE}\nSEEN: {HOSTILE}\n{text.replace('2. metastasis', evidence)}"
                    extra: dict[str, object] = {
                        "confidence": stated,
                        "differential": (first, "metastasis"),
                        "relation": "exact" if passed else "unrelated",
                    }
                    if one.runner is Runner.STRUCTURED:
                        fields = {"modality": True, "sequence": bool(rng.random() < 0.7), "plane": True, "class": passed}
                        extra |= {"fields_right": fields, "fields": {"class": first, "modality": "MRI"}}
                    else:
                        extra |= {
                            "core_diagnosis": float(passed),
                            "main_condition": float(rng.random() < chance + 0.1),
                            "in_candidates": passed or bool(rng.random() < 0.3),
                        }
                    scores.append(score(one, model, passed=passed, arm=arm, repeat=repeat, **extra))
                    if one.runner is not Runner.STRUCTURED:
                        cosine, f1 = float(rng.uniform(0.2, 0.9)), float(rng.uniform(0.5, 0.8))
                        similarity.append(_near(scores[-1], cosine=cosine, bertscore_f1=f1))
                    responses.append(response(one, model, text, arm=arm, repeat=repeat))
                    for grader in GRADERS if one.runner is Runner.OPEN else ():
                        agreed = passed if grader == "rubric" or rng.random() < 0.9 else not passed
                        grades[grader] += [
                            _grade(scores[-1], grader, criterion, float(agreed)) for criterion in ("core_diagnosis", "main_condition")
                        ]
        folder = root / "results"
        write_records(folder / "scores" / benchmark / f"{model}.parquet", Score, scores, key=_order)
        write_records(folder / "responses" / benchmark / f"{model}.parquet", Response, responses, key=_order)
        for grader, rows in grades.items():
            write_records(
                folder / "grades" / benchmark / model / f"{grader}.parquet", Grade, rows, key=lambda row: (*_order(row), row.criterion)
            )
    write_records(root / "results" / "similarity" / f"{benchmark}.parquet", SimilarityRow, similarity, key=_order)


def _near(row: Score, **values: float) -> SimilarityRow:
    names = ("item_id", "benchmark", "arm", "strategy", "model", "revision", "repeat", "text_sha256")
    return SimilarityRow(**{name: getattr(row, name) for name in names}, **values)


def _order(row: Score | Response | Grade | SimilarityRow) -> tuple[str, str, int]:
    return row.item_id, row.arm, row.repeat


def _grade(of: Score, grader: str, criterion: str, value: float) -> Grade:
    return Grade(
        item_id=of.item_id, benchmark=of.benchmark, arm=of.arm, strategy=of.strategy, model=of.model, revision=of.revision, repeat=of.repeat,
        text_sha256=of.text_sha256, grader=grader, criterion=criterion, value=value, weight=1.0,
        explanation="The first diagnosis names the reference." if value else "The first diagnosis is another disease.", state=GradeState.OK,
    )  # fmt: skip


def _write_configs(root: Path, models: tuple[str, ...], kind: str) -> None:
    def write(path: str, value: object) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(yaml.safe_dump(value), encoding="utf-8")

    common = {"source": "phantoms", "answers": "a.csv", "subjects": kind, "private": False}
    write(
        f"config/benchmarks/{DEPTH}.yaml", {"title": "Depth, made up", "kind": "scans", "axis": "depth", "arms": list(ARM_SHIFT), **common}
    )
    write(f"config/benchmarks/{BREADTH}.yaml", {"title": "Breadth, made up", "kind": "pictures", "axis": "breadth", **common})
    for number, model in enumerate(models):
        entry = {"title": f"{model.title()} VLM", "backend": "builtin", "id": model, "revision": "1", "temperature": 1.0, "seed": 1}
        write(f"config/models/{model}.yaml", {**entry, "open_weights": number == 0, "baseline": number == 2})
    write("config/graders/rubric.yaml", {"title": "Vocabulary and rubric", "kind": "rubric"})
    judge = {"title": "Judge", "backend": "litellm", "id": "openai/judge", "revision": "1", "api_base": "https://judge.example/v1"}
    write("config/graders/llm.yaml", {"title": "Second grader", "kind": "llm", "model": judge})
    entries = {
        name.replace(" ", "_"): {"name": name, "classes": classes, "subtype": subtype} for name, (classes, subtype) in DIAGNOSES.items()
    }
    entries["normal"] = {**entries.pop("normal_brain"), "synonyms": ["normal"]}
    write("config/vocabulary.yaml", {"version": "1", "diagnoses": entries, "locations": {"frontal lobe": []}})
    shutil.copyfile(ROOT / "config" / "rating.yaml", root / "config" / "rating.yaml")
    groups = {"all": {"title": "All patients"}, "tumour": {"title": "Tumours", "diagnoses": ["glioblastoma", "meningioma"]}}
    write("config/readiness.yaml", {"groups": groups, "uses": {"draft": {"title": "Draft", "conditions": {"all": {"min_accuracy": None}}}}})
    (root / "config" / "prompts").mkdir(parents=True, exist_ok=True)
    (root / "config" / "prompts" / "open.j2").write_text("You read head scans.\n{{ context }}\n{{ question }}\n", encoding="utf-8")
