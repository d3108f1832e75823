"""Names of signs that stand for a disease: those that name it, and those that describe a picture that is typical of it.

The lists are ours, by the common use of these names in neuroradiology; a name missing here is not thereby harmless.
"""

from __future__ import annotations

from neuralmedbench.records.items import Gold
from neuralmedbench.records.vocabulary import Vocabulary, normal_form

NAMING: dict[str, tuple[str, ...]] = {
    "multiple sclerosis": ("Dawson fingers", "Dawson finger"),
    "demyelinating disease of the central nervous system": ("demyelinating", "demyelinated", "plaque"),
    "brain tumour": ("neoplastic", "tumorous", "WHO grade"),
    "glioma": ("gliomatous",),
    "brain metastases": ("metastatic",),
    "cerebral infarction": ("infarcted", "ischaemic", "ischaemia"),
    "acute ischaemic stroke": ("infarcted", "ischaemic", "ischaemia", "infarct", "infarction"),
    "hydrocephalus": ("hydrocephalic",),
    "normal pressure hydrocephalus": ("DESH",),
    "encephalitis": ("encephalitic",),
    "infection of the central nervous system": ("infectious", "infective"),
    "epilepsy": ("epileptogenic",),
    "moyamoya disease": ("puff of smoke",),
    "Wilson disease": ("face of the giant panda", "panda sign"),
    "Creutzfeldt-Jakob disease": ("spongiform", "prion"),
    "CADASIL": ("O'Sullivan sign",),
}
"""Eponyms, interpretations and adjectives that name a disease, or the group that it belongs to, by the preferred name of the vocabulary:
findings may not contain them."""

DESCRIBING: dict[str, tuple[str, ...]] = {
    "multiple sclerosis": ("central vein sign", "open ring"),
    "meningioma": ("dural tail",),
    "progressive supranuclear palsy": ("hummingbird", "penguin sign", "Mickey Mouse sign", "morning glory sign"),
    "multiple system atrophy": ("hot cross bun",),
    "Parkinson disease": ("swallow tail sign",),
    "Creutzfeldt-Jakob disease": ("cortical ribboning", "pulvinar sign", "hockey stick sign"),
    "cerebral venous sinus thrombosis": ("empty delta sign", "cord sign"),
    "acute ischaemic stroke": ("hyperdense artery sign", "hyperdense MCA sign", "insular ribbon sign"),
    "cavernous malformation": ("popcorn",),
    "vestibular schwannoma": ("ice cream cone",),
}
"""Names of what is seen that nearly always mean one disease: they are findings, and are listed as a warning where they are sent."""

SEEN_OR_FELT = (
    "ventriculomegaly, ventriculomegalia, Ventrikulomegalie, cystic lesion, zystische Läsion, lesión quística, lésion kystique, 囊性病变, headache,"
    " head pain, cranial pain, cephalalgia, cephalgia, Kopfschmerz, Kopfschmerzen, cefalea, dolor de cabeza, céphalée, céphalées, mal de tête, 头痛"
)

APPEARANCES = frozenset(normal_form(name) for name in SEEN_OR_FELT.split(","))
"""Names of wider terms that say what is seen or felt, and not what it means; in normal form."""


def sign_names(gold: Gold, vocabulary: Vocabulary, signs: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of signs (`NAMING` or `DESCRIBING`) of the answer of an item and of its wider terms.

    Without a vocabulary the answer and its aliases are compared with the names of the diseases.
    """
    found = vocabulary.of_whole_reference(gold.answer, gold.icd10)
    wider = [] if found is None else [entry.name for entry in (found, *vocabulary.ancestors(found.key))]
    names = {normal_form(name) for name in (gold.answer, *gold.aliases, *wider)}
    return tuple(dict.fromkeys(sign for disease, own in signs.items() if normal_form(disease) in names for sign in own))
