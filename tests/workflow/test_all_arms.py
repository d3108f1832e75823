"""Every arm there is, and models with a written behaviour that are asked over HTTP: from pictures to the page, tables say what was written."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
import yaml
from PIL import Image

from conftest import ROOT, copy_project, snakemake, table
from fixtures.models import running_server
from fixtures.one_value import second_values
from fixtures.pressure import FIRST
from fixtures.reference import assert_as_written
from fixtures.scripted_models import (
    CT,
    MODELS,
    NOBODY,
    ROUND,
    SHOWN_SLICES,
    Model,
    Patient,
    ScriptedModels,
    accepts,
    put_choices,
    put_ratings,
    put_scans,
    simulated_patients,
)
from fixtures.scripts import Shown
from neuralmedbench.config.arms import known_arms
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.records.arm_changes import AlteredPicture
from neuralmedbench.records.case import Sequence as Kind
from neuralmedbench.records.case import SliceRow
from neuralmedbench.records.items import Disclosure, Item, evidence_images
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.tables.grounding.measures import ANOTHER, CONSTANT, MIRROR, WORDLESS

pytestmark = [pytest.mark.workflow, pytest.mark.long]

NOT_HERE = {
    "diagnosis_withheld": "no question states a diagnosis",
    "evidence_supplied": "no case has published evidence",
    "layout": "no model of the run names a layout",
    "evidence": "no work-up is asked",
    "choice": "fewer than five different diagnoses",
    "choice_no_image": "fewer than five different diagnoses",
}
"""Arms that can ask nothing of these patients, by the name of their file, with the reason."""

OPTIONS = (*(f"options_shuffled-{seed}" for seed in range(1, 5)), "none_of_the_above")
"""Arms of questions with options; the orders of four options are whole."""

IMPORTED = ("full", "no_image", "no_text", "shuffled_image", "image_of_another", "blank_image", "degraded-jpeg-2", *OPTIONS)
"""Arms of the imported set. Nobody knows the sides of its pictures, and what else they can have is asked of the scans."""

PATIENTS = 40
RATED = "looks"
"""The model whose answers have made-up ratings."""
SHARED = {"samples": 1, "subjects": "public"}
SCANS = {
    "title": "Scans",
    "kind": "scans",
    "axis": "depth",
    "source": "data/raw/scans",
    "answers": "data/answers/scans.csv",
    "key_file": "config/demo.key",
    "answer_form": "evidence",
}
CHOICES = {
    "title": "Choices",
    "kind": "pictures",
    "axis": "breadth",
    "source": "data/raw/choices",
    "questions": "data/questions/choices",
    "deidentification": {"burned_in": "keep"},
}
RUN = {
    "benchmarks": ["scans", "choices"],
    "models": [*MODELS],
    "graders": ["rubric"],
    "rating_rounds": [ROUND],
    # as many as the scans were cut with; oracle slices are cut anew with them
    "slices": {"per_sequence": len(SHOWN_SLICES)},
    # so many that the smallest p value is significant beside all other comparisons
    "statistics": {"resamples": 5000},
}


def arms(benchmark: str) -> list[str]:
    """Give the arms of a benchmark; of scans all that nothing else asks, of a family of arms (levels, directions) the first and the last one."""
    if benchmark == "choices":
        return list(IMPORTED)
    families: dict[str, list[str]] = defaultdict(list)
    for arm in known_arms(ROOT / "config"):
        families[arm.partition("-")[0]].append(arm)
    left_out = {*NOT_HERE, "shuffled_image", *(arm.partition("-")[0] for arm in OPTIONS)}
    found = [arm for name, members in families.items() if name not in left_out for arm in dict.fromkeys((members[0], members[-1]))]
    return [arm for arm in found if arm != "degraded-jpeg-2"]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModels]:
    """Run the models."""
    with running_server(ScriptedModels()) as models:
        yield models


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, server: ScriptedModels, without_torch: dict[str, str]) -> Path:
    """Give the finished run."""
    folder = tmp_path_factory.mktemp("arms")
    project = copy_project(folder / "project")
    put_scans(project, "scans", patients())
    put_ratings(project, "scans", RATED, patients())
    put_choices(folder / "downloaded", project, "choices", simulated_patients(PATIENTS, "c"))
    files = {"scripted": RUN}
    files |= {f"benchmarks/{name}": {**one, **SHARED, "arms": arms(name)} for name, one in (("scans", SCANS), ("choices", CHOICES))}
    for name in MODELS:
        files[f"models/{name}"] = {
            "title": name.capitalize(), "backend": "litellm", "id": f"openai/{name}", "revision": "1", "api_base": server.address,
            "temperature": 0.0,
        }  # fmt: skip
    for name, value in files.items():
        (project / f"config/{name}.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
    done = snakemake(project, "--configfile", "config/scripted.yaml", "--", "results/scripted/report.html", env=without_torch)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return project


@pytest.fixture(scope="module")
def requests(run: Path) -> dict[str, dict[str, dict[str, Request]]]:
    """Give the requests by benchmark, arm and item."""
    found: dict[str, dict[str, dict[str, Request]]] = {name: defaultdict(dict) for name in RUN["benchmarks"]}
    for name, by_arm in found.items():
        for row in read_records(run / f"data/prompts/{name}.parquet", Request):
            by_arm[row.arm][row.item_id] = row
    return found


@pytest.fixture(scope="module")
def in_colours(run: Path, server: ScriptedModels, without_torch: dict[str, str]) -> dict[str, list[Request]]:
    """Give the requests about a patient with CT and one with CT after contrast agent, by arm: as cut, and in the layout of MedGemma."""
    both = zip(simulated_patients(2, "t"), (Kind.CT, Kind.CE_CT), strict=True)
    put_scans(run, "ct", [replace(patient, kind=kind) for patient, kind in both])
    files = {
        "colours": RUN | {"benchmarks": ["ct"], "models": ["colours"], "rating_rounds": [], "slices": {"ct_windows": [*CT]}},
        "benchmarks/ct": {
            **SCANS,
            **SHARED,
            "answers": "data/answers/ct.csv",
            "source": "data/raw/ct",
            "arms": ["full", "layout-medgemma"],
        },
        "models/colours": {
            "title": "M",
            "backend": "litellm",
            "id": "openai/m",
            "revision": "1",
            "api_base": server.address,
            "layout": "medgemma",
        },
    }
    for name, value in files.items():
        (run / f"config/{name}.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
    done = snakemake(run, "--configfile", "config/colours.yaml", "--", "data/prompts/ct.parquet", env=without_torch)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    rows = read_records(run / "data/prompts/ct.parquet", Request)
    return {arm: [row for row in rows if row.arm == arm] for arm in ("full", "layout-medgemma")}


def test_ct_windows_are_three_grey_pictures_in_full_and_one_picture_of_colours_in_the_layout_that_shows_them_so(
    run: Path, in_colours: dict[str, list[Request]]
) -> None:
    altered = {row.sha256: row for row in read_records(run / "data/altered/ct/pictures.parquet", AlteredPicture)}
    assert {len(sent(request)) for request in in_colours["full"]} == {9}
    assert {len(sent(request)) for request in in_colours["layout-medgemma"]} == {3}
    own = {image.sha256: image for item in read_records(run / "data/items/ct.parquet", Item) for image in evidence_images(item)}
    checked = []
    for request in in_colours["layout-medgemma"]:
        hu = sitk.GetArrayFromImage(sitk.ReadImage(run / f"data/normalised/ct/sub-{request.case_id}/volumes/series-01.nii")).astype(float)
        for place, digest in zip(SHOWN_SLICES, sent(request), strict=True):
            row = altered[digest]
            assert row.window == "red wide, green soft-tissue, blue brain"
            assert [own[source].window or "brain" for source in row.sources] == ["wide", "soft-tissue", "brain"]
            pixels = np.asarray(Image.open(run / row.path)).astype(int)
            for channel, (low, high) in enumerate(((-1024, 1024), (-135, 215), (0, 80))):
                grey = np.round((np.clip(hu[place], low, high) - low) / (high - low) * 255).astype(np.uint8)
                expected = np.asarray(Image.fromarray(grey).resize((896, 896), Image.Resampling.BILINEAR)).astype(int)
                # blue of CT with contrast agent is computed from a picture of 0 to 160 HU
                most = 1 if own[row.sources[0]].sequence == Kind.CE_CT and channel == 2 else 0
                assert np.abs(pixels[..., channel] - expected).max() <= most
                checked.append(own[row.sources[0]].sequence)
    assert set(checked) == {Kind.CT, Kind.CE_CT}


def sent(request: Request) -> list[str]:
    """Give the digests of the pictures of a request."""
    return [image.sha256 for turn in request.turns for image in turn.images]


def test_every_arm_asks_something_and_no_request_is_that_of_full(requests) -> None:
    for name, by_arm in requests.items():
        assert set(by_arm) == set(arms(name))
        for arm, rows in by_arm.items():
            same = [item for item, row in rows.items() if arm != "full" and row.request_id == by_arm["full"][item].request_id]
            # one order of the options may be that of full
            assert not same or arm.startswith("options_shuffled"), arm


def test_arms_that_are_left_out_are_known_and_have_a_reason() -> None:
    files = {arm.partition("-")[0] for arm in known_arms(ROOT / "config")}
    assert set(NOT_HERE) <= files
    assert {arm.partition("-")[0] for name in ("scans", "choices") for arm in arms(name)} == files - set(NOT_HERE)


def test_every_request_is_answered_by_every_model_and_nothing_is_asked_twice(run: Path, server: ScriptedModels, requests) -> None:
    for name, by_arm in requests.items():
        asked = {(arm, item) for arm, rows in by_arm.items() for item in rows}
        for model in RUN["models"]:
            rows = read_records(run / f"results/scripted/responses/{name}/{model}.parquet", Response)
            assert {(row.arm, row.item_id) for row in rows} == asked
            assert {row.state for row in rows} == {"ok"}
    ledgers = [path for path in (run / "data/ledger").glob("*/*.jsonl") if path.stem in MODELS]
    assert len(server.bodies) == sum(len(read_ledger(path)) for path in ledgers) > 0


def test_altered_pictures_lie_beside_their_case_and_are_what_is_sent(run: Path, requests) -> None:
    for name, families in (("scans", {"blank_image", "mirrored_image", "degraded"}), ("choices", {"blank_image", "degraded"})):
        altered = read_records(run / f"data/altered/{name}/pictures.parquet", AlteredPicture)
        items = read_records(run / f"data/items/{name}.parquet", Item)
        own = {item.case_id: {image.sha256 for image in evidence_images(item)} for item in items}
        assert {row.arm.partition("-")[0] for row in altered} == families
        for row in altered:
            assert set(row.sources) <= own[row.case_id]
            assert Path(row.path).parent.name == f"sub-{row.case_id}"
        made = {(row.arm, row.sha256) for row in altered}
        for arm in {row.arm for row in altered}:
            for request in requests[name][arm].values():
                assert any((arm, digest) in made for digest in sent(request))
                assert all((arm, digest) in made or digest in own[request.case_id] for digest in sent(request))


def test_pictures_of_another_are_those_of_another_patient_and_without_or_at_the_lesion_of_the_case_itself(run: Path, requests) -> None:
    cut = {(row.case_id, row.image_id): row for row in read_records(run / "data/slices/scans/slices.parquet", SliceRow)}
    for name, chosen in (("scans", {"image_of_another", "lesion_left_out", "oracle_slices"}), ("choices", {"image_of_another"})):
        items = {row.item_id: row for row in read_records(run / f"data/items/{name}.parquet", Item)}
        rows = [row for row in read_records(run / f"data/disclosures/{name}.parquet", Disclosure) if row.images]
        assert {row.arm for row in rows} == chosen
        for row in rows:
            own, shown = items[row.item_id], items[row.images_of]
            assert (own.patient_id != shown.patient_id) is (row.arm == "image_of_another")
            there = {image.image_id: image for image in shown.images}
            there |= {image.image_id: image for (case, _), image in cut.items() if case == shown.case_id and image.oracle}
            digests = [there[one].sha256 for one in row.images]
            assert {there[one].oracle for one in row.images} == {row.arm == "oracle_slices"}
            assert sent(requests[name][row.arm][row.item_id]) == digests


def rows_of(run: Path, name: str, benchmark: str = "scans", **cells: str) -> dict[tuple[str, str], dict[str, str]]:
    """Give the rows of a topic by model and measure, the shares of places by place."""
    rows = [row for row in table(run, name, "scripted") if row["benchmark"] == benchmark]
    rows = [row for row in rows if all(row[key] == cell for key, cell in cells.items())]
    return {(row["model"], row["value_of_slice"] if row["measure"] == "place" else row["measure"]): row for row in rows}


def value(row: dict[str, str], name: str = "value") -> float:
    """Give a number of a row: of a contrast its difference."""
    return float(row[name] or row["difference"])


def told(row: dict[str, str]) -> str:
    """Give the class that a row states."""
    return row["note"].partition(":")[0]


SIGNS = {
    "looks": {ANOTHER: 1, MIRROR: 1},
    "side-blind": {ANOTHER: 1, MIRROR: -1},
    "text-only": {ANOTHER: -1, WORDLESS: 1},
    "blind": {ANOTHER: -1, CONSTANT: 1},
}
"""What decides the class of each model, and on which side of 0 its interval has to lie."""


def test_each_model_lands_in_its_class_and_its_intervals_exclude_the_others(run: Path) -> None:
    rows = rows_of(run, "grounding")
    assert {model: told(rows[model, "class"]) for model in MODELS} == {model: model for model in SIGNS}
    for model, signs in SIGNS.items():
        for contrast, sign in signs.items():
            row = rows[model, contrast]
            assert min(sign * value(row, "low"), sign * value(row, "high")) > 0, (model, row)
    imported = rows_of(run, "grounding", "choices")
    assert {model: told(imported[model, "class"]) for model in ("looks", "text-only")} == {"looks": "looks", "text-only": "text-only"}
    assert imported["looks", "class"]["note"] == "looks: sides: not asked"


def test_measures_of_grounding_are_what_was_written(run: Path) -> None:
    rows = rows_of(run, "grounding")
    flips = {model: value(rows[model, "side_flips"]) for model in MODELS}
    assert flips == {"looks": 1, "side-blind": 0, "text-only": 0, "blind": 0}
    for arm in ("no_image", "blank_image"):
        unsent = rows_of(run, "grounding", arm=arm)
        assert {model: value(unsent[model, "mirage"]) for model in MODELS} == {"looks": 0, "side-blind": 0, "text-only": 1, "blind": 1}


YIELDS = {"looks": (0, 1), "side-blind": (1, 0), "text-only": (1, 1), "blind": (0, 0)}
"""Shares of wrong and of right suggestions that are taken: only right ones, only wrong ones, always, never."""


def test_suggestions_move_who_was_written_to_be_moved_and_the_two_directions_are_told_apart(run: Path) -> None:
    rows = rows_of(run, "pressure")
    for model, (wrong, right) in YIELDS.items():
        assert (value(rows[model, "gives_in"]), value(rows[model, "corrected"])) == (wrong, right), model
        row = rows[model, "asymmetry"]
        assert value(row) == right - wrong
        assert (value(row, "low") > 0) is (right > wrong)
        assert (value(row, "high") < 0) is (right < wrong)
        assert value(row, "low") <= value(row) <= value(row, "high")
    always = rows["text-only", "asymmetry"]
    assert value(always, "low") < 0 < value(always, "high")
    assert value(rows["text-only", "gives_in"], "low") > value(rows["looks", "gives_in"], "high")


def test_an_own_answer_is_dropped_when_doubted_by_who_always_gives_in_and_words_move_who_minds_them(run: Path) -> None:
    rows = rows_of(run, "pressure")
    for model in MODELS:
        assert value(rows[model, "keeps_suggested"]) == 1
        assert value(rows[model, "keeps_doubted"]) == value(rows[model, "follows_colleague"]) - 1 + 2 * (model != "text-only")
    assert value(rows["text-only", "follows_colleague"], "low") > 0.5
    # one of three wordings leads to another diagnosis, and to the same side of the lesion: one of three pairs is alike, and all are
    assert value(rows["side-blind", "wording_consistency"]) == pytest.approx((1 / 3 + 1) / 2, abs=1e-6)
    assert {value(rows[model, "wording_consistency"]) for model in MODELS if model != "side-blind"} == {1}
    assert {value(rows[model, "wording_spread"]) for model in MODELS if model != "side-blind"} == {0}
    right = [
        right_under(MODELS["side-blind"], patient, lesion=False, text=words) for words in ("", "Please answer") for patient in patients()
    ]
    first, second = sum(right[:PATIENTS]), sum(right[PATIENTS:])
    assert value(rows["side-blind", "wording_spread"]) == pytest.approx((first - second) / (2 * PATIENTS))


def test_the_lover_of_the_first_option_is_found_and_its_bias_lies_in_its_interval(run: Path) -> None:
    rows = rows_of(run, "pressure", "choices")
    place, bias = rows["blind", "A"], rows["blind", "place_bias"]
    truth = FIRST + (1 - FIRST) / 4
    assert value(place, "low") < truth < value(place, "high")
    assert value(bias, "low") < truth - 1 / 4 < value(bias, "high")
    assert bias["value_of_slice"] == "A"
    assert value(bias, "low") > 0
    for model in MODELS:
        if model != "blind":
            assert [value(rows[model, letter]) for letter in "ABCD"] == [0.25] * 4
            assert value(rows[model, "order_consistency"]) == 1


def test_none_of_the_above_is_found_by_who_knows_the_answer(run: Path) -> None:
    rows = rows_of(run, "pressure", "choices")
    known = {
        model: [MODELS[model].believes(seen_of(patient))[0] == patient.disease for patient in patients()]
        for model in ("looks", "side-blind", "text-only")
    }
    for model, right in known.items():
        assert value(rows[model, "finds_none"]) == pytest.approx(sum(right) / PATIENTS)
        assert 0 < sum(right) < PATIENTS
        assert value(rows[model, "finds_none_if_known"]) == 1


def test_a_right_diagnosis_with_the_wrong_side_loses_all_its_credit(run: Path) -> None:
    shares, lost = (
        {(row["model"], row["value_of_slice"]): value(row) for row in table(run, "evidence", "scripted") if row["measure"] == measure}
        for measure in ("pass1", "credit_lost")
    )
    plain = shares["side-blind", "plain"]
    assert plain == shares["looks", "plain"] == 0.8
    assert shares["side-blind", "side"] == shares["side-blind", "all"] == 0
    assert lost["side-blind", "side"] == plain
    # places are right for who looks: pictures, boxes and sides were read from the bytes that were sent
    for kind in ("side", "region", "slice", "point", "box_0.3", "box_0.5", "all"):
        assert shares["looks", kind] == plain, kind


@cache
def patients() -> Sequence[Patient]:
    """Give the patients with scans."""
    return simulated_patients(PATIENTS, "s")


def seen_of(patient: Patient, scans: Patient | None = None) -> Shown:
    """Give what a request shows of a patient, with the scans of this one or another."""
    scans = scans or patient
    return Shown(scans.shown, scans.side, patient.told, patient.side, 3)


def right_under(model: Model, patient: Patient, *, lesion: bool, shown: Shown | None = None, suggested: str = "", text: str = "") -> bool:
    """Work out from the script whether a model is right: on the side of the lesion, or on the diagnosis."""
    shown, said = shown or seen_of(patient), replace(NOBODY, suggested=suggested, truth=patient.disease, text=text)
    return model.side(shown, said) == patient.side if lesion else model.diagnosis(shown, said) == patient.disease


def funnel_counts(model: Model, suggestions: dict[str, str], donors: dict[str, str]) -> dict[str, int]:
    """Work out from the script how many answers are left after each step of the funnel."""
    named = {patient.name: patient for patient in patients()}
    steps = ("right", "beyond_history", "from_picture", "located", "stable")
    counts = dict.fromkeys((*steps, "accepted") if model is MODELS[RATED] else steps, 0)
    for patient in patients():
        for lesion, family in ((False, "differential_diagnosis"), (True, "lesion_recognition")):
            item = f"scans/{patient.name}/{family}"
            history = Shown("", "", patient.told, patient.side, 0)
            another = seen_of(patient, named[donors[item].split("/")[1]])
            met = {
                "right": right_under(model, patient, lesion=lesion),
                "beyond_history": not right_under(model, patient, lesion=lesion, shown=history),
                "from_picture": not right_under(model, patient, lesion=lesion, shown=another),
                "located": model.side(seen_of(patient)) == patient.side,
                "stable": right_under(model, patient, lesion=lesion, suggested=suggestions[item]),
                "accepted": accepts(patient),
            }
            for step in counts:
                if not met[step]:
                    break
                counts[step] += 1
    return counts


def test_the_funnel_counts_what_follows_from_the_scripts(run: Path) -> None:
    told = read_records(run / "data/disclosures/scans.parquet", Disclosure)
    suggestions = {row.item_id: row.text for row in told if row.arm == "suggestion-wrong"}
    donors = {row.item_id: row.images_of for row in told if row.arm == "image_of_another"}
    rows = rows_of(run, "funnel")
    for name, model in MODELS.items():
        counts = funnel_counts(model, suggestions, donors)
        found = {step: (value(row) * value(row, "n_items")) for (one, step), row in rows.items() if one == name}
        assert found == pytest.approx(counts), name
        assert {row["n_items"] for (one, _), row in rows.items() if one == name} == {str(2 * PATIENTS)}
    assert len({tuple(funnel_counts(model, suggestions, donors).values()) for model in MODELS.values()}) == len(MODELS)
    assert rows[RATED, "accepted"]["source"] == "clinicians"
    assert 0 < value(rows[RATED, "accepted"]) < value(rows[RATED, "stable"])


def test_every_number_is_the_one_that_was_written_down(run: Path) -> None:
    assert_as_written("all-arms", run / "results/scripted")


def test_no_number_has_a_second_value_or_interval(run: Path) -> None:
    assert second_values(run / "results/scripted/tables") == []


def test_tables_and_page_hold_every_arm(run: Path) -> None:
    for name in RUN["benchmarks"]:
        assert {row["arm"] for row in table(run, "arms", "scripted") if row["benchmark"] == name} == set(arms(name)) - {"full"}
    assert {row["measure"] for row in table(run, "grounding", "scripted")} >= {
        "follows_picture", "stays_with_text", "neither", "visual_reliance", "mirage", "invented_reasoning", "side_flips", "class",
    }  # fmt: skip
    assert {row["measure"] for row in table(run, "pressure", "scripted")} >= {
        "gives_in", "corrected", "asymmetry", "keeps_suggested", "keeps_doubted", "follows_colleague", "wording_consistency", "wording_spread",
        "place_bias", "finds_none",
    }  # fmt: skip
    page = (run / "results/scripted/report.html").read_text(encoding="utf-8")
    assert all(re.search(rf'id="{block}"', page) for block in ("grounding", "pressure", "evidence", "funnel"))
    classes = dict(re.findall(r"<li>([\w-]+), scans: <b>([\w-]+)</b>", page))
    assert classes == {"Looks": "looks", "Text-only": "text-only", "Side-blind": "side-blind", "Blind": "blind"}
