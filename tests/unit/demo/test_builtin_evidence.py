"""The table of the image baseline fits the vocabulary, and measurements are correct."""

from pathlib import Path

import numpy as np
import pytest

from fixtures.builtin import head, picture
from neuralmedbench.demo.baselines.findings import read_pictures
from neuralmedbench.demo.baselines.measure import measure
from neuralmedbench.demo.baselines.opinion import BACKGROUND, COMMON, EVIDENCE, WORDS, contributions, log_scores, nameable, ranking
from neuralmedbench.demo.baselines.pictures import brain_mask, decode, head_mask, read_label
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.case import Plane, Sequence


@pytest.fixture(scope="module")
def vocabulary():
    return read_vocabulary(Path("config/vocabulary/neurology.yaml"))


def test_every_key_of_the_tables_is_a_candidate_and_every_feature_is_known(vocabulary):
    assert set(EVIDENCE) | set(COMMON) <= set(nameable(vocabulary))
    assert set(COMMON) <= set(EVIDENCE)
    assert {feature for row in EVIDENCE.values() for feature in row} <= set(BACKGROUND) == set(WORDS)
    assert all(0 < chance < 1 for row in (BACKGROUND, *EVIDENCE.values()) for chance in row.values())


def test_every_feature_that_is_measured_is_in_the_table():
    kinds = ("T1w", "ceT1w", "T2w", "FLAIR", "dwi", "ADC", "CT")
    spots = ((178, 128, 22, 0.9),)
    frames = [measure(picture(head(kind, spots), f"Picture 1: {kind}, axial, z = +{z} mm")) for kind in kinds for z in (0, 20, 40)]
    features = read_pictures([frame for frame in frames if frame]).features
    assert set(features) <= set(BACKGROUND)
    assert all(0 <= value <= 1 for value in features.values())


def test_what_could_not_be_looked_for_says_nothing(vocabulary):
    keys = nameable(vocabulary)
    assert contributions({}, "glioblastoma") == {}
    assert keys[int(np.argmax(log_scores({}, keys)))] == "normal"
    seen, missing = (contributions({"ring_enhancement": value}, "glioblastoma")["ring_enhancement"] for value in (1.0, 0.0))
    assert seen > 1
    assert missing < -1


def test_umbrella_terms_are_no_candidates(vocabulary):
    assert not {"stroke", "brain-tumour", "dementia"} & set(nameable(vocabulary))
    assert {"acute-ischaemic-stroke", "multiple-sclerosis", "normal"} <= set(nameable(vocabulary))


def test_a_differential_does_not_hold_a_term_beside_its_wider_one(vocabulary):
    keys = ("acute-mca-infarct", "acute-ischaemic-stroke", "glioblastoma")
    ranked, confidence = ranking(np.array([2.0, 1.0, 0.0]), keys, vocabulary, np.random.default_rng(0), 0.0)
    assert ranked == ["acute-mca-infarct", "glioblastoma"]
    assert confidence == pytest.approx(np.exp(2) / (np.exp(2) + np.e + 1))


def test_draws_follow_the_probabilities(vocabulary):
    keys = ("glioblastoma", "meningioma", "normal")
    chances = np.array([0.6, 0.3, 0.1])
    random = np.random.default_rng(1)
    draws = [ranking(np.log(chances), keys, vocabulary, random, 1.0)[0][0] for _ in range(2000)]
    assert [draws.count(key) / 2000 for key in keys] == pytest.approx(chances, abs=0.04)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("Picture 3: FLAIR, axial, z = +12 mm", (Sequence.FLAIR, Plane.AXIAL, 12.0)),
        ("Picture 1: ceT1w, coronal, y = -4 mm", (Sequence.CE_T1W, Plane.CORONAL, None)),
        ("Picture 2: dwi, axial, z = -30 mm", (Sequence.DWI, Plane.AXIAL, -30.0)),
        ("Picture 7", (None, None, None)),
        ("", (None, None, None)),
    ],
)
def test_labels_are_read_as_the_prompts_write_them(label, expected):
    read = read_label(label)
    assert (read.sequence, read.plane, read.z_mm) == expected


@pytest.mark.parametrize("sequence", ["T1w", "T2w", "FLAIR", "dwi", "CT"])
def test_the_brain_is_found_inside_the_skull(sequence):
    grey = decode(picture(head(sequence)))
    brain = brain_mask(grey, head_mask(grey), skull_is_bright=sequence == "CT")
    true = np.pi * 76 * 96 / 256**2
    assert brain.mean() == pytest.approx(true, rel=0.15)


def test_wide_ventricles_have_a_high_evans_index_and_narrow_ones_a_low_one():
    values = []
    for ventricle in (8, 24):
        frames = [measure(picture(head("T2w", ventricle=ventricle), f"Picture 1: T2w, axial, z = +{z} mm")) for z in (0, 30, 60)]
        values.append(read_pictures([frame for frame in frames if frame]).features["large_ventricles"])
    assert values[0] == 0
    assert values[1] == 1


def test_a_picture_without_a_head_is_not_measured():
    assert measure(picture(np.zeros((64, 64)))) is None
    assert measure(picture(np.random.default_rng(0).uniform(0, 0.05, (64, 64)))) is None
