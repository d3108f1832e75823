"""What an answer must do to pass, by family and runner: the definition behind every pass@1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neuralmedbench.records.items import Family, Item, Runner
from neuralmedbench.records.results import FAMILY_TITLES
from neuralmedbench.records.value_rules import fields_of
from neuralmedbench.tables.study import Study

PASS_RULES = {
    Family.DIFFERENTIAL_DIAGNOSIS: "names the reference diagnosis first",
    Family.LESION_RECOGNITION: "names the place and side of the lesion, or says that there is none",
    Family.RATIONALE_GENERATION: "names the final diagnosis first; its reasons are not graded",
    Family.CLASSIFICATION: "names the reference class first",
    Family.QUESTION_ANSWERING: "gives the reference answer",
}
"""What a free answer, or the last one of a dialogue, must do to pass, by family."""

CHOICE_RULE, CLASS_RULE, VALUES_RULE = "chooses the right option", "gives the class of the picture", "gives the reference values"
STAGES_RULE = "gives the reference values of every stage"
"""The same for items with options, and for structured answers of labels, of values and in stages, whatever their family."""


def pass_rule(item: Item) -> str:
    """Return what an answer to an item must do to pass."""
    if item.runner is Runner.CHOICE:
        return CHOICE_RULE
    if item.runner is Runner.STRUCTURED:
        return STAGES_RULE if item.turns else VALUES_RULE if fields_of(item.answer_schema) else CLASS_RULE
    return PASS_RULES[item.family]


def pass_rules(items: Iterable[Item]) -> dict[str, list[Family]]:
    """Return the rules by which any of the items passes, each with its families, in the order of `Family`."""
    pairs = {(pass_rule(item), item.family) for item in items}
    rules: dict[str, list[Family]] = {}
    for family in Family:
        for rule in sorted(rule for rule, own in pairs if own is family):
            rules.setdefault(rule, []).append(family)
    return rules


def pass_definition(items: Sequence[Item]) -> str:
    """State what an answer must do to pass, with the families where rules differ: the definition behind every pass@1 of the page.

    Examples
    --------
    >>> pass_definition([])
    'No item has a reference that an answer can meet.'
    """
    rules = pass_rules(items)
    if not rules:
        return "No item has a reference that an answer can meet."
    if len(rules) == 1:
        whole = f"An answer passes if it {next(iter(rules))}."
    else:
        parts = [f"{', '.join(FAMILY_TITLES[family] for family in own)}: it {rule}." for rule, own in rules.items()]
        whole = f"An answer passes by the rule of its task. {' '.join(parts)}"
    last = " The last answer of a dialogue counts." if any(item.runner is Runner.DIALOGUE for item in items) else ""
    return f"{whole}{last}"


def definitions(study: Study) -> dict[str, str]:
    """State by benchmark what an answer must do to pass: the page shows it wherever it shows pass@1."""
    return {name: pass_definition(benchmark.outcomes.items) for name, benchmark in study.benchmarks.items()}
