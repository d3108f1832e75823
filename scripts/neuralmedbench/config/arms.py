"""Keys of `config/arms/<arm>.yaml`: one arm, or a family of arms whose names end in parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from neuralmedbench.config.layouts import Layout, load_layout
from neuralmedbench.config.load import check, nearest, read_yaml
from neuralmedbench.config.section import Section
from neuralmedbench.errors import ConfigError
from neuralmedbench.records.arm_changes import CHOICE, NONE_ARM, SHUFFLED
from neuralmedbench.records.items import FIRST_PART, Arm
from neuralmedbench.records.words import plural

ALTERED = frozenset({"blank", "degraded", "mirrored"})
"""Changes of pictures that make new pictures, by the rule `alter_pictures`."""

AT_LESION = "at_lesion"
"""Change of pictures to oracle slices, which are cut at the known lesion for this arm alone."""

CHOSEN = frozenset({"another", "without_lesion", AT_LESION})
"""Changes of pictures that need the answer: `build_items` chooses what is shown."""

SUFFIX = r"[a-z0-9_.]+"

OPTIONS_BY_NAME = {"shuffle": SHUFFLED, "none_of_the_above": re.compile(NONE_ARM), "rivals": CHOICE}
"""Names of the arms that change the options."""

NEEDED = {
    ("pictures", "degraded"): ("operator", "level"),
    ("options", "shuffle"): ("seed",),
    ("options", "rivals"): ("rotation",),
    ("adds", "suggestion"): ("direction",),
    ("adds", "own_answer"): ("stance",),
    ("wording", "paraphrase"): ("paraphrase",),
    ("evidence", "ordered"): ("order",),
}
"""Parameters that a change needs."""


class ArmConfig(Section):
    """`config/arms/<arm>.yaml`: what an arm changes; everything else is as in the arm `full`."""

    title: str = Field(description="Name shown in the report.")
    group: Literal["grounding", "pressure", "wording", "degradation", "layout", "evidence", "oracle", "title"] = Field(
        description="What the arm tests."
    )
    description: str = Field(description="What the arm shows, in a sentence.")
    parameters: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Parts of the arm's name that follow the name of the file, each after a hyphen, in this order, with their allowed values.",
    )
    pictures: Literal["keep", "none", "blank", "degraded", "mirrored", "another", "without_lesion", "at_lesion"] = Field(
        "keep",
        description="The pictures of the case: `keep`, `none`, `blank` (black pictures of the same size), `degraded` (by the artefact"
        " of the parameter `operator`, at the parameter `level`), `mirrored` (left and right exchanged; only"
        " slices that were cut here, whose orientation is known), `another` (those of a patient with a disease of another family),"
        " `without_lesion` (without those that show the known lesion), or `at_lesion` (oracle slices, cut at the known lesion).",
    )
    labels: Literal["keep", "number"] = Field(
        "keep", description="Labels of the pictures: `keep` those of the benchmark, or the `number` alone."
    )
    text: Literal["keep", "none"] = Field("keep", description="Notes and record: `keep`, or `none`.")
    layout: str | None = Field(
        None,
        min_length=1,
        description="Input layout, a file of `config/layouts/`; `<name>` is the value of the parameter of that name. Only models whose yaml names the"
        " layout are asked. Absent: `common`.",
    )
    options: Literal["keep", "shuffle", "none_of_the_above", "rivals"] = Field(
        "keep",
        description="The options of a choice item: `keep`, `shuffle` (in an order by item and the parameter `seed`), or `none_of_the_above`"
        ' ("None of the above" in the place of the right one). An item whose options speak of each other is not asked.'
        " `rivals`: an open question for a diagnosis as a choice among the references of five cases, in the order of the parameter `rotation`.",
    )
    adds: Literal["nothing", "suggestion", "own_answer"] = Field(
        "nothing",
        description="What is added to the request, by the template of this name: a `suggestion` of the parameter `direction` (`wrong`, `right`),"
        " or the model's `own_answer` to the arm `full` (the parameter `stance` says whether a colleague suggests or doubts it).",
    )
    evidence: Literal["asked", "ordered"] = Field(
        "asked",
        description="In a work-up (strategy `workup`, to which such an arm applies alone, or `ask` of questions with options and facts): `asked`, or `ordered` by the parameter `order`: `history` alone,"
        " all `together`, one examination a turn in `random` order or in that of the `author`, or the `findings` in words in place of the pictures.",
    )
    wording: Literal["keep", "paraphrase"] = Field(
        "keep", description="The words of the request: `keep`, or those of `config/prompts/paraphrases/<paraphrase>/` (a parameter)."
    )

    @field_validator("parameters", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        # levels and seeds are numbers in YAML, and parts of a name here
        if not isinstance(value, Mapping):
            return value
        return {name: tuple(map(str, allowed)) if isinstance(allowed, list) else allowed for name, allowed in value.items()}

    @model_validator(mode="after")
    def _has_parameters(self) -> Self:
        for (key, value), names in NEEDED.items():
            if getattr(self, key) == value and not set(names) <= set(self.parameters):
                message = f"`{key}: {value}` needs the {plural(len(names), 'parameter')} {' and '.join(f'`{name}`' for name in names)}"
                raise ValueError(message)
        if self.layout and self.layout.startswith("<") and self.layout.strip("<>") not in self.parameters:
            message = f"layout: {self.layout} is none of the `parameters` ({', '.join(self.parameters) or 'there are none'})"
            raise ValueError(message)
        if self.layout and self.pictures == AT_LESION:
            message = f"`pictures: {AT_LESION}` is shown in the layout `common` alone; take `layout` out"
            raise ValueError(message)
        return self


@dataclass(frozen=True)
class ArmVariant:
    """An arm as a benchmark names it: its file, and the values of its parameters.

    Attributes
    ----------
    name : str
        `blank_image`, or with parameters `degraded-ghosting-2`.
    path : Path
        Its file.
    config : ArmConfig
        What it changes.
    values : mapping of str to str
        Values of its parameters by name.
    layout : Layout or None
        Its input layout; None: `common`.
    """

    name: str
    path: Path
    config: ArmConfig
    values: Mapping[str, str] = field(default_factory=dict)
    layout: Layout | None = None

    @property
    def alters(self) -> bool:
        """True if the arm shows new pictures, made from those of the items."""
        return self.config.pictures in ALTERED or (self.layout is not None and self.layout.alters)

    @property
    def files(self) -> tuple[Path, ...]:
        """The file of the arm, and that of its layout."""
        return (self.path, self.layout.path) if self.layout else (self.path,)

    @property
    def shows_all(self) -> bool:
        """True if the arm shows the pictures, labels and text of `full`, at most in another layout."""
        return (self.config.pictures, self.config.labels, self.config.text) == ("keep", "keep", "keep")

    @property
    def degradation(self) -> tuple[str, int] | None:
        """Artefact and level of an arm that shows nothing else than `full` but degraded pictures."""
        if self.config.pictures != "degraded" or not self._changes_pictures_alone:
            return None
        return self.values["operator"], int(self.values["level"])

    @property
    def is_oracle(self) -> bool:
        """True if the arm shows nothing else than `full` but oracle slices."""
        return self.config.pictures == AT_LESION and self._changes_pictures_alone

    @property
    def _changes_pictures_alone(self) -> bool:
        config = self.config
        rest = (config.labels, config.text, config.options, config.wording, config.adds)
        return self.layout is None and rest == ("keep", "keep", "keep", "keep", "nothing")

    @property
    def chosen(self) -> bool:
        """True if the pictures that the arm shows were chosen with the answer (`Disclosure.images`)."""
        return self.config.pictures in CHOSEN


def _is_built_in(arm: str) -> bool:
    """Return True for an arm that the code knows by name, without a file."""
    return arm in tuple(Arm) or FIRST_PART.fullmatch(arm) is not None


def load_arms(folder: Path, arms: Iterable[str], name: str) -> dict[str, ArmVariant]:
    """Read the files of the arms that are not built in.

    Parameters
    ----------
    folder : Path
        The folder `config/`.
    arms : iterable of str
        Arms, as a benchmark or grader names them.
    name : str
        Name of that benchmark or grader, for messages.

    Returns
    -------
    dict of str to ArmVariant
        By arm, in the order given.

    Raises
    ------
    ConfigError
        If an arm has no file or a parameter has another value than those allowed; as in `check`, `read_yaml` and `load_layout`. All of them.
    """
    found: dict[str, ArmVariant] = {}
    mistakes: list[object] = []
    for arm in arms:
        if _is_built_in(arm):
            continue
        try:
            found[arm] = _variant(folder / "arms", arm, name)
        except ConfigError as error:
            mistakes += error.args
    if mistakes:
        raise ConfigError(*dict.fromkeys(mistakes))
    return found


def known_arms(folder: Path) -> list[str]:
    """Return the names of all arms, `first_<x>_percent` excepted; ConfigError as in `load_arms`."""
    names: list[str] = [arm.value for arm in Arm]
    for path in sorted((folder / "arms").glob("*.yaml")):
        allowed = check(ArmConfig, read_yaml(path), path.as_posix()).parameters.values()
        names += ["-".join((path.stem, *values)) for values in product(*(choice or ("<name>",) for choice in allowed))]
    return names


def _variant(folder: Path, arm: str, name: str) -> ArmVariant:
    stem, *values = arm.split("-")
    path = folder / f"{stem}.yaml"
    if not re.fullmatch(rf"{SUFFIX}(-{SUFFIX})*", arm) or not path.is_file():
        message = f"{name}: arms: there is no arm {arm!r}{nearest(arm, known_arms(folder.parent))}"
        raise ConfigError(message)
    config = check(ArmConfig, read_yaml(path), path.as_posix())
    parameters = dict(zip(config.parameters, values, strict=False))
    fits = len(values) == len(config.parameters) and all(
        parameters[key] in allowed for key, allowed in config.parameters.items() if allowed
    )
    if not fits:
        form = "-".join((stem, *(f"<{key}>" for key in config.parameters)))
        message = f"{name}: arms: expected {form}, found {arm!r}{nearest(arm, known_arms(folder.parent))}"
        raise ConfigError(message)
    # answers are read by the name of their arm
    if (called := OPTIONS_BY_NAME.get(config.options)) and not called.fullmatch(arm):
        message = f"{path.as_posix()}: `options: {config.options}` belongs to the arm {called.pattern} alone, found {arm!r}"
        raise ConfigError(message)
    if config.layout is None:
        return ArmVariant(arm, path, config, parameters)
    family = parameters.get(config.layout.strip("<>"), config.layout)
    return ArmVariant(arm, path, config, parameters, load_layout(folder.parent, family, f"{name}: arms: {arm}"))
