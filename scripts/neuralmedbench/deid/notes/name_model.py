"""An optional local model for name recognition, run by Presidio without downloads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from neuralmedbench.errors import ConfigError

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine

REPLACEMENTS = {"PERSON": ("name", "[NAME]"), "LOCATION": ("place", "[PLACE]"), "ORGANIZATION": ("place", "[PLACE]")}
"""Kind and replacement by entity; dates and nationalities are not taken from a model, as `two days ago` is not an identifier."""
LABELS = {
    "PER": "PERSON", "PERSON": "PERSON", "PS": "PERSON", "PATIENT": "PERSON", "STAFF": "PERSON", "DOCTOR": "PERSON", "NAME": "PERSON", "HCW": "PERSON",
    "LOC": "LOCATION", "LOCATION": "LOCATION", "GPE": "LOCATION", "FAC": "LOCATION", "LC": "LOCATION", "CITY": "LOCATION",
    "ORG": "ORGANIZATION", "ORGANIZATION": "ORGANIZATION", "OG": "ORGANIZATION", "HOSP": "ORGANIZATION", "HOSPITAL": "ORGANIZATION", "PATORG": "ORGANIZATION",
}  # fmt: skip
"""Labels of common models, mapped to Presidio's entities."""
THRESHOLD = 0.3
NO_TRANSFORMERS = (
    "ner_model: a transformers model needs torch and transformers, which the environment of this stage leaves out because few need them;"
    " copy their two lines from envs/scoring.yaml to envs/deidentify.yaml, or name a spaCy pipeline"
)


@dataclass(frozen=True)
class NameModel:
    """A loaded model.

    Attributes
    ----------
    language : str
        Code of its language.
    engine : AnalyzerEngine
        Presidio engine with the model.
    """

    language: str
    engine: AnalyzerEngine

    def find(self, text: str) -> list[tuple[int, int, str, str]]:
        """Detect names: start and end (characters), kind and replacement of each."""
        results = self.engine.analyze(text, language=self.language, entities=list(REPLACEMENTS), score_threshold=THRESHOLD)
        return sorted((one.start, one.end, *REPLACEMENTS[one.entity_type]) for one in results)


def load_name_model(folder: Path, language: str) -> NameModel:
    """Load a model from a folder.

    Parameters
    ----------
    folder : Path
        A spaCy pipeline (`meta.json`), or a transformers model for token classification (`config.json`) with its tokenizer.
    language : str
        Code of its language (ISO 639-1).

    Returns
    -------
    NameModel
        The model, run by Presidio's AnalyzerEngine; nothing is ever downloaded.

    Raises
    ------
    ConfigError
        If the folder holds neither, the model cannot be loaded, or a required package is not installed.

    Notes
    -----
    Only the recogniser of names is registered: the patterns of deid.notes are better at everything else, and Presidio's recogniser of e-mail
    addresses would download the list of public suffixes.
    """
    if (folder / "meta.json").is_file():
        load = _spacy_engine
    elif (folder / "config.json").is_file():
        load = _transformers_engine
    else:
        message = (
            "ner_model: the folder holds neither a spaCy pipeline (meta.json) nor a transformers model (config.json); correct the path"
        )
        raise ConfigError(message)
    try:
        return NameModel(language, load(folder, language))
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        if isinstance(error, ImportError) and load is _transformers_engine:
            raise ConfigError(NO_TRANSFORMERS) from None
        message = f"ner_model: the model cannot be loaded ({type(error).__name__}); check that it is complete and was made with the pinned versions"
        raise ConfigError(message) from None


def _spacy_engine(folder: Path, language: str) -> AnalyzerEngine:
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import SpacyRecognizer

    # by default Presidio ignores organisations, which here include hospitals
    settings = NerModelConfiguration(labels_to_ignore=[], model_to_presidio_entity_mapping=LABELS, low_score_entity_names=[])
    engine = SpacyNlpEngine(models=[{"lang_code": language, "model_name": folder.as_posix()}], ner_model_configuration=settings)
    engine.load()
    recogniser = SpacyRecognizer(supported_language=language, supported_entities=list(REPLACEMENTS))
    registry = RecognizerRegistry(recognizers=[recogniser], supported_languages=[language])
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[language])


def _transformers_engine(folder: Path, language: str) -> AnalyzerEngine:
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine
    from presidio_analyzer.predefined_recognizers.ner import HuggingFaceNerRecognizer

    recogniser = HuggingFaceNerRecognizer(
        model_name=folder.as_posix(),
        supported_language=language,
        label_mapping=LABELS,
        threshold=THRESHOLD,
        supported_entities=list(REPLACEMENTS),
        device="cpu",
    )
    engine = NoOpNlpEngine(models=[{"lang_code": language, "model_name": "none"}])
    engine.load()
    registry = RecognizerRegistry(recognizers=[recogniser], supported_languages=[language])
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[language])
