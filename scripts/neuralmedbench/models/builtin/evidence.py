"""What the image baseline believes: how often a feature is seen in a disease, and how common the disease is.

All numbers are round figures from textbook knowledge of neuroradiology; none was optimised on a benchmark. One feature (wide temporal
horns) was added after looking at the demo's phantoms, so what this baseline scores on the demo is not a held-out result.
A feature that a diagnosis does not name is as likely in it as in anybody (`BACKGROUND`), so it says nothing about it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from neuralmedbench.records.vocabulary import Vocabulary

ALWAYS, TYPICAL, OFTEN, SOMETIMES, NEVER = 0.95, 0.8, 0.5, 0.25, 0.005

BACKGROUND: Mapping[str, float] = {
    "ring_enhancement": 0.02,
    "solid_enhancement": 0.03,
    "dural_enhancement": 0.015,
    "many_enhancing": 0.02,
    "dense_clot": 0.02,
    "ct_hypodensity": 0.03,
    "microbleeds": 0.05,
    "black_bleed": 0.03,
    "restricted_diffusion": 0.02,
    "shine_through": 0.03,
    "dwi_bright": 0.04,
    "large_flair": 0.05,
    "scattered_flair": 0.1,
    "ovoid_periventricular": 0.05,
    "confluent_periventricular": 0.04,
    "mesial_temporal": 0.02,
    "posterior_fossa_flair": 0.03,
    "cavity": 0.03,
    "large_ventricles": 0.08,
    "tight_vertex": 0.03,
    "wide_sulci": 0.12,
    "wide_temporal_horns": 0.08,
    "lateral_lesion": 0.25,
    "medial_lesion": 0.1,
    "posterior_lesion": 0.1,
    "infratentorial_lesion": 0.08,
    "deep_lesion": 0.15,
    "two_sided": 0.2,
    "unremarkable": 0.2,
}
"""How often a feature is reported in a patient in whom nothing explains it: chance findings and errors of measurement."""

WORDS: Mapping[str, str] = {
    "ring_enhancement": "a ring of enhancement",
    "solid_enhancement": "an evenly enhancing mass",
    "dural_enhancement": "broad contact of the enhancing mass with the surface of the brain",
    "many_enhancing": "several enhancing foci",
    "dense_clot": "a dense focus on CT",
    "ct_hypodensity": "a hypodense area of one side on CT",
    "microbleeds": "several small dark spots on the susceptibility-weighted pictures",
    "black_bleed": "a large dark focus on the susceptibility-weighted pictures",
    "restricted_diffusion": "restricted diffusion (bright on DWI, dark on ADC)",
    "shine_through": "a DWI-bright focus with raised ADC",
    "dwi_bright": "a DWI-bright focus whose ADC is not clear",
    "large_flair": "a large hyperintense area",
    "scattered_flair": "many small hyperintense foci",
    "ovoid_periventricular": "several small hyperintense foci close to the ventricles",
    "confluent_periventricular": "confluent hyperintensity around the ventricles on both sides",
    "mesial_temporal": "hyperintensity of the mesial temporal lobe",
    "posterior_fossa_flair": "hyperintensity in the posterior fossa",
    "cavity": "a fluid-filled defect of one side",
    "large_ventricles": "wide ventricles (Evans index above 0.30)",
    "tight_vertex": "tight sulci at the vertex",
    "wide_sulci": "wide sulci",
    "wide_temporal_horns": "wide temporal horns on both sides",
    "lateral_lesion": "a lateral position in the hemisphere",
    "medial_lesion": "a position beside the midline",
    "posterior_lesion": "an occipital position",
    "infratentorial_lesion": "an infratentorial position",
    "deep_lesion": "a position in the deep nuclei",
    "two_sided": "lesions on both sides",
    "unremarkable": "no focal abnormality",
}
"""How a feature is named in an answer."""

ISCHAEMIC = {"restricted_diffusion": ALWAYS, "ct_hypodensity": OFTEN, "unremarkable": 0.05, "ring_enhancement": NEVER}
TUMOUR = {"large_flair": TYPICAL, "unremarkable": 0.03, "restricted_diffusion": 0.08}

EVIDENCE: Mapping[str, Mapping[str, float]] = {
    "normal": {"unremarkable": ALWAYS, "large_ventricles": 0.03, "wide_sulci": 0.1, "scattered_flair": 0.05, "two_sided": 0.05},
    "migraine": {"unremarkable": TYPICAL, "scattered_flair": SOMETIMES},
    "tension-headache": {"unremarkable": ALWAYS},
    "vertigo-functional": {"unremarkable": ALWAYS},
    "focal-epilepsy": {"unremarkable": TYPICAL, "mesial_temporal": 0.1},
    "transient-ischaemic-attack": {"unremarkable": TYPICAL, "scattered_flair": SOMETIMES, "confluent_periventricular": SOMETIMES},
    "parkinson": {"unremarkable": TYPICAL, "wide_sulci": SOMETIMES},
    "acute-ischaemic-stroke": {**ISCHAEMIC, "large_flair": OFTEN},
    "acute-mca-infarct": {**ISCHAEMIC, "large_flair": OFTEN, "lateral_lesion": TYPICAL, "two_sided": 0.03},
    "acute-aca-infarct": {**ISCHAEMIC, "medial_lesion": TYPICAL, "two_sided": 0.05},
    "acute-pca-infarct": {**ISCHAEMIC, "posterior_lesion": TYPICAL, "two_sided": 0.05},
    "posterior-circulation-infarct": {**ISCHAEMIC, "infratentorial_lesion": TYPICAL, "posterior_fossa_flair": OFTEN},
    "lacunar-infarct": {"restricted_diffusion": OFTEN, "deep_lesion": TYPICAL, "large_flair": 0.01},
    "embolic-stroke": {"restricted_diffusion": ALWAYS, "two_sided": OFTEN},
    "watershed-infarct": {"restricted_diffusion": ALWAYS, "two_sided": SOMETIMES},
    "chronic-infarct": {
        "cavity": TYPICAL,
        "shine_through": OFTEN,
        "large_flair": OFTEN,
        "ct_hypodensity": TYPICAL,
        "restricted_diffusion": NEVER,
        "ring_enhancement": 0.01,
        "solid_enhancement": 0.01,
        "unremarkable": 0.05,
    },
    "intracerebral-haemorrhage": {"dense_clot": ALWAYS, "black_bleed": TYPICAL, "unremarkable": 0.02},
    "hypertensive-haemorrhage": {
        "dense_clot": ALWAYS,
        "black_bleed": TYPICAL,
        "deep_lesion": TYPICAL,
        "microbleeds": OFTEN,
        "unremarkable": 0.02,
    },
    "lobar-haemorrhage": {"dense_clot": ALWAYS, "black_bleed": TYPICAL, "deep_lesion": 0.05, "unremarkable": 0.02},
    "cerebellar-haemorrhage": {"dense_clot": ALWAYS, "black_bleed": TYPICAL, "infratentorial_lesion": ALWAYS, "unremarkable": 0.02},
    "subdural-haematoma": {"dense_clot": OFTEN, "ct_hypodensity": SOMETIMES, "deep_lesion": 0.02, "unremarkable": 0.05},
    "amyloid-angiopathy": {"microbleeds": ALWAYS, "confluent_periventricular": OFTEN, "black_bleed": SOMETIMES, "unremarkable": 0.05},
    "cavernous-malformation": {"black_bleed": ALWAYS, "large_flair": 0.03, "restricted_diffusion": 0.01, "unremarkable": 0.05},
    "small-vessel-disease": {
        "confluent_periventricular": TYPICAL,
        "scattered_flair": TYPICAL,
        "two_sided": ALWAYS,
        "ovoid_periventricular": SOMETIMES,
        "microbleeds": OFTEN,
        "wide_sulci": OFTEN,
        "ring_enhancement": NEVER,
        "solid_enhancement": NEVER,
        "restricted_diffusion": 0.02,
        "unremarkable": 0.03,
    },
    "vascular-dementia": {
        "confluent_periventricular": TYPICAL,
        "cavity": OFTEN,
        "wide_sulci": OFTEN,
        "two_sided": TYPICAL,
        "unremarkable": 0.05,
    },
    "cadasil": {"confluent_periventricular": TYPICAL, "scattered_flair": TYPICAL, "mesial_temporal": OFTEN, "two_sided": ALWAYS},
    "multiple-sclerosis": {
        "ovoid_periventricular": ALWAYS,
        "scattered_flair": TYPICAL,
        "two_sided": ALWAYS,
        "posterior_fossa_flair": OFTEN,
        "confluent_periventricular": 0.1,
        "many_enhancing": 0.1,
        "large_flair": 0.05,
        "restricted_diffusion": 0.03,
        "microbleeds": 0.02,
        "unremarkable": 0.02,
    },
    "acute-disseminated-encephalomyelitis": {
        "scattered_flair": TYPICAL,
        "large_flair": OFTEN,
        "many_enhancing": OFTEN,
        "two_sided": ALWAYS,
    },
    "glioblastoma": {**TUMOUR, "ring_enhancement": TYPICAL, "cavity": SOMETIMES, "dural_enhancement": 0.02, "black_bleed": SOMETIMES},
    "anaplastic-astrocytoma": {**TUMOUR, "solid_enhancement": OFTEN, "ring_enhancement": 0.05},
    "low-grade-glioma": {**TUMOUR, "ring_enhancement": NEVER, "solid_enhancement": 0.05, "shine_through": SOMETIMES},
    "meningioma": {
        "solid_enhancement": ALWAYS,
        "dural_enhancement": TYPICAL,
        "ring_enhancement": 0.02,
        "large_flair": OFTEN,
        "unremarkable": 0.03,
    },
    "dural-metastasis": {"solid_enhancement": TYPICAL, "dural_enhancement": TYPICAL, "many_enhancing": SOMETIMES, "unremarkable": 0.03},
    "brain-metastases": {**TUMOUR, "ring_enhancement": OFTEN, "solid_enhancement": OFTEN, "many_enhancing": TYPICAL, "two_sided": OFTEN},
    "cns-lymphoma": {
        "solid_enhancement": ALWAYS,
        "restricted_diffusion": OFTEN,
        "dural_enhancement": 0.03,
        "deep_lesion": OFTEN,
        "large_flair": OFTEN,
    },
    "brain-abscess": {"ring_enhancement": ALWAYS, "restricted_diffusion": ALWAYS, "large_flair": TYPICAL, "unremarkable": 0.02},
    "toxoplasmosis": {"ring_enhancement": TYPICAL, "many_enhancing": TYPICAL, "deep_lesion": OFTEN},
    "vestibular-schwannoma": {"solid_enhancement": TYPICAL, "infratentorial_lesion": TYPICAL, "dural_enhancement": OFTEN},
    "medulloblastoma": {
        "solid_enhancement": TYPICAL,
        "infratentorial_lesion": ALWAYS,
        "large_ventricles": OFTEN,
        "restricted_diffusion": OFTEN,
    },
    "pilocytic-astrocytoma": {"ring_enhancement": SOMETIMES, "solid_enhancement": OFTEN, "infratentorial_lesion": TYPICAL},
    "herpes-encephalitis": {
        "mesial_temporal": ALWAYS,
        "large_flair": TYPICAL,
        "restricted_diffusion": OFTEN,
        "dwi_bright": SOMETIMES,
        "ring_enhancement": 0.01,
        "cavity": 0.01,
        "unremarkable": 0.05,
    },
    "autoimmune-encephalitis": {"mesial_temporal": TYPICAL, "two_sided": TYPICAL, "restricted_diffusion": 0.1, "unremarkable": SOMETIMES},
    "mesial-temporal-sclerosis": {"mesial_temporal": TYPICAL, "large_flair": 0.02, "restricted_diffusion": 0.01},
    "creutzfeldt-jakob": {"restricted_diffusion": TYPICAL, "two_sided": TYPICAL, "large_flair": 0.1},
    "hypoxic-injury": {"restricted_diffusion": TYPICAL, "two_sided": ALWAYS},
    "posterior-reversible-encephalopathy": {
        "posterior_lesion": TYPICAL,
        "two_sided": ALWAYS,
        "large_flair": TYPICAL,
        "restricted_diffusion": 0.1,
    },
    "leukodystrophy": {"confluent_periventricular": ALWAYS, "two_sided": ALWAYS, "microbleeds": 0.01},
    "normal-pressure-hydrocephalus": {
        "large_ventricles": ALWAYS,
        "tight_vertex": TYPICAL,
        "wide_temporal_horns": OFTEN,
        "wide_sulci": 0.15,
        "confluent_periventricular": SOMETIMES,
        "unremarkable": 0.02,
    },
    "obstructive-hydrocephalus": {
        "large_ventricles": ALWAYS,
        "tight_vertex": OFTEN,
        "confluent_periventricular": OFTEN,
        "unremarkable": 0.02,
    },
    "alzheimer": {
        "wide_temporal_horns": TYPICAL,
        "wide_sulci": OFTEN,
        "large_ventricles": OFTEN,
        "tight_vertex": 0.01,
        "scattered_flair": SOMETIMES,
        "unremarkable": SOMETIMES,
    },
    "frontotemporal-dementia": {
        "wide_temporal_horns": OFTEN,
        "wide_sulci": TYPICAL,
        "large_ventricles": OFTEN,
        "tight_vertex": 0.01,
        "unremarkable": SOMETIMES,
    },
    "lewy-body-dementia": {"wide_sulci": OFTEN, "unremarkable": OFTEN},
}
"""How often a feature is seen in a diagnosis; the keys are those of the vocabulary."""

COMMON: Mapping[str, float] = {
    "normal": 0.12,
    "acute-mca-infarct": 0.06,
    "small-vessel-disease": 0.06,
    "chronic-infarct": 0.04,
    "multiple-sclerosis": 0.04,
    "alzheimer": 0.04,
    "intracerebral-haemorrhage": 0.04,
    "hypertensive-haemorrhage": 0.02,
    "glioblastoma": 0.03,
    "meningioma": 0.03,
    "brain-metastases": 0.03,
    "acute-ischaemic-stroke": 0.03,
    "migraine": 0.02,
    "normal-pressure-hydrocephalus": 0.02,
    "lacunar-infarct": 0.02,
    "herpes-encephalitis": 0.015,
    "subdural-haematoma": 0.015,
    "low-grade-glioma": 0.015,
}
"""Rough share of patients sent for a head scan in neurology who have it."""

RARE, UNDESCRIBED = 0.006, 0.0015
"""The same for a diagnosis of `EVIDENCE` that is not among them, and for one of which the table knows nothing."""


def candidates(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Diagnoses that a model may name: all but the umbrella terms, under which others stand and which nothing is confused with."""
    umbrellas = {entry.parent for entry in vocabulary.diagnoses.values() if entry.parent}
    return tuple(key for key, entry in vocabulary.diagnoses.items() if key not in umbrellas or entry.confusable)


def contributions(features: Mapping[str, float], key: str) -> dict[str, float]:
    """Log-odds that each feature adds to a diagnosis.

    Parameters
    ----------
    features : mapping of str to float
        Features between 0 (absent) and 1 (present); what could not be looked for is left out.
    key : str
        Key of a diagnosis.

    Returns
    -------
    dict of str to float
        Only the features that the diagnosis names.
    """
    added = {}
    for feature, seen in EVIDENCE.get(key, {}).items():
        if feature in features:
            chance, value = BACKGROUND[feature], features[feature]
            added[feature] = float(value * np.log(seen / chance) + (1 - value) * np.log((1 - seen) / (1 - chance)))
    return added


def log_scores(features: Mapping[str, float], keys: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Log of prevalence times likelihood, up to a constant.

    Parameters
    ----------
    features : mapping of str to float
        As for :func:`contributions`.
    keys : tuple of str
        The candidates.

    Returns
    -------
    ndarray of float64, shape (len(keys),)
        One score a candidate.
    """
    prior = [COMMON.get(key, RARE if key in EVIDENCE else UNDESCRIBED) for key in keys]
    return np.log(prior) + np.array([sum(contributions(features, key).values()) for key in keys])
