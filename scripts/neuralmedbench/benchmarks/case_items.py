"""Items of local cases: one per case and family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from neuralmedbench.benchmarks.answers_table import AnswerRow, read_answers
from neuralmedbench.benchmarks.gold import add_findings_of_others, check_findings, disclosure, gold_of, is_normal, lesion_of, unknown_terms
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.shown_lesions import lesion_shown, picture_lesions, with_place
from neuralmedbench.benchmarks.sources import CaseSource
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import DataError
from neuralmedbench.files.cases import read_case_table
from neuralmedbench.files.known_lesions import read_lesion_mask
from neuralmedbench.records.items import NO_LESION, Disclosure, Family, Gold, Item, Level, Runner, ShownLesion, Turn
from neuralmedbench.records.vocabulary import Vocabulary

QUESTIONS = {
    Family.DIFFERENTIAL_DIAGNOSIS: "What is the most likely diagnosis? Rank up to five diagnoses.",
    Family.LESION_RECOGNITION: "Is there a lesion? If so, what type of lesion is it, and where does it lie?",
    Family.RATIONALE_GENERATION: (
        "Which diagnosis would you defend in a case conference? Name the findings that speak for it and what speaks against the"
        " alternatives."
    ),
}
ORACLE_SLICES = "oracle_slices"
"""Tag of an item whose slices were chosen using the answer."""
FIRST_TURN = "What do you consider at this point? Rank up to five diagnoses."
NEXT_TURN = "Revise your differential in the light of what is new. Rank up to five diagnoses."


def build_cases(
    benchmark: str, config: BenchmarkConfig, sources: Sequence[CaseSource], answers: Mapping[str, AnswerRow], vocabulary: Vocabulary
) -> BenchmarkItems:
    """Build the items of a benchmark of cases: scans, or pictures of patients.

    Parameters
    ----------
    benchmark : str
        Its name.
    config : BenchmarkConfig
        Its yaml.
    sources : sequence of CaseSource
        The cases.
    answers : mapping of str to AnswerRow
        The answers table; a case without a row gets its item on the diagnosis and no gold.
    vocabulary : Vocabulary
        By which a diagnosis and a place are known.

    Returns
    -------
    BenchmarkItems
        Items, gold and disclosures.

    Raises
    ------
    DataError
        If a dialogue has no note or a wrong number of turn leaders, a finding names the diagnosis, or a lesion mask cannot be read.
    """
    items: list[Item] = []
    gold: list[Gold] = []
    shown: list[Disclosure] = []
    lesions: list[ShownLesion] = []
    for source in sources:
        answer = answers.get(source.case.case_id)
        masks = config.lesion_masks if answer else None
        mask = read_lesion_mask(Path(masks), source.case.case_id, config.voxel_sizes) if masks else None
        lesion = lesion_of(answer, vocabulary) if answer else None
        on_pictures = picture_lesions(lesion, source.images, mask)
        # the position of a picture that was not cut from a scan is unknown
        seen = lesion_shown(lesion, mask, on_pictures) if source.images else None
        asked = _items(benchmark, config, source, answer, vocabulary, seen=seen)
        items += asked
        if answer is None:
            continue
        lesions += on_pictures
        if source.oracle:
            # the spacing of a scan's slices is better known from all of them
            beside = {row.image_id for row in source.oracle}
            lesions += [row for row in picture_lesions(lesion, (*source.images, *source.oracle), mask) if row.image_id in beside]
        placed = with_place(lesion, mask)
        for item in asked:
            gold.append(replace(_gold(item, answer, vocabulary), lesion=placed))
            if answer.findings and item.family is not Family.LESION_RECOGNITION:  # findings would contain its answer
                if not is_normal(answer, vocabulary):  # normal findings can hardly be written without the word
                    check_findings(gold[-1], vocabulary)
                shown.append(disclosure(gold[-1]))
    oracle = tuple(row for source in sources for row in source.oracle)
    built = BenchmarkItems(tuple(items), tuple(gold), tuple(shown), tuple(lesions), oracle=oracle)
    return add_findings_of_others(built, config.arms, vocabulary).checked(benchmark)


def _items(
    benchmark: str,
    config: BenchmarkConfig,
    source: CaseSource,
    answer: AnswerRow | None,
    vocabulary: Vocabulary,
    *,
    seen: bool | None,
) -> list[Item]:
    base = Item(
        item_id="",
        case_id=source.case.case_id,
        patient_id=source.case.patient_id,
        benchmark=benchmark,
        axis=config.axis,
        family=Family.DIFFERENTIAL_DIAGNOSIS,
        level=answer.level if answer else Level.NONE,
        runner=Runner.OPEN,
        question="",
        images=source.shown,
        label_policy=config.label_policy,
        notes="\n\n".join(source.notes),
        record=source.record,
        tags=(ORACLE_SLICES,) if any(row.oracle for row in source.images) else (),
    )
    if answer:
        base = replace(base, lesion_shown=seen, tags=(*base.tags, *unknown_terms(answer, vocabulary)))
    # lesion items need a location, or a complete normal reading, whose answer is that there is none
    families = [Family.DIFFERENTIAL_DIAGNOSIS]
    if answer and (answer.lesion_location or (answer.findings_complete and is_normal(answer, vocabulary))):
        families.append(Family.LESION_RECOGNITION)
    if answer and answer.rationale and answer.level is not Level.DIALOGUE:
        families.append(Family.RATIONALE_GENERATION)
    items = [
        replace(base, item_id=f"{benchmark}/{base.case_id}/{family}", family=family, question=QUESTIONS[family]) for family in families
    ]
    if answer and answer.rivals:
        items[0] = replace(items[0], rivals=tuple(sorted({answer.diagnosis, *answer.rivals})))
    if base.level is Level.DIALOGUE:
        items[0] = _dialogue(items[0], source)
    return items


def _dialogue(item: Item, source: CaseSource) -> Item:
    """Reveal one note per turn, in chronological order; the last turn shows record and pictures."""
    if not source.notes:
        message = f"case {item.case_id}: a case of level dialogue needs at least one note; give it another level"
        raise DataError(message)
    questions = [FIRST_TURN, *[NEXT_TURN] * len(source.notes)]
    image_ids = tuple(image.image_id for image in item.images)
    turns = [Turn(reveal=note, question=question) for note, question in zip(source.notes, questions, strict=False)]
    turns.append(Turn(reveal=source.record, question=NEXT_TURN, image_ids=image_ids))
    return replace(item, runner=Runner.DIALOGUE, turns=tuple(turns), notes="", record="")


def _gold(item: Item, answer: AnswerRow, vocabulary: Vocabulary) -> Gold:
    gold = gold_of(item, answer, vocabulary)
    if item.family is Family.LESION_RECOGNITION and gold.lesion is None:
        gold = replace(gold, answer=NO_LESION, aliases=("normal",), icd10="", differentials=())
    if item.runner is not Runner.DIALOGUE:
        return replace(gold, turn_leaders=())
    if answer.turn_leaders and len(answer.turn_leaders) != len(item.turns):
        message = (
            f"case {item.case_id}, column turn_leaders: expected {len(item.turns)} diagnoses (one for each of"
            f" {len(item.turns) - 1} notes and one for the pictures), found {len(answer.turn_leaders)}"
        )
        raise DataError(message)
    return gold


def answers_of(config: BenchmarkConfig, table: Path) -> dict[str, AnswerRow]:
    """Read the answers of a benchmark with the case table `table`; empty if its YAML names none. Errors as in `read_answers` and `check_known`."""
    answers = read_answers(Path(config.answers)) if config.answers else {}
    check_known(answers, table)
    return answers


def check_known(answers: Mapping[str, AnswerRow], table: Path) -> None:
    """Reject answers for cases that the case table does not list: such a row would silently leave a case without gold."""
    listed = {row.case_id for row in read_case_table(table)}
    if unknown := [number for number, case_id in enumerate(answers, start=1) if case_id not in listed]:
        numbers = ", ".join(str(number) for number in unknown[:10])
        message = (
            f"the answers table has {len(unknown)} rows whose case is not in {table.as_posix()}: rows {numbers} below the first line;"
            " correct their case_id"
        )
        raise DataError(message)
