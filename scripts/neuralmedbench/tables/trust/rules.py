"""The rules by which clinicians correct a score and are held against graders, in words."""

from __future__ import annotations

from neuralmedbench.tables.rows import Cells
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.trust.calibrated import FEWEST_ANSWERS, FEWEST_PATIENTS
from neuralmedbench.tables.trust.table import FEWEST_UNITS

ENOUGH = f"{FEWEST_ANSWERS} answers of {FEWEST_PATIENTS} patients"


def ratings_badge(study: Study) -> Cells:
    """Say how many ratings of clinicians there are; simulated ones are none."""
    clinical = [row for row in study.sampled_ratings if not row.simulated and not row.adjudicated]
    if clinical:
        text = f"{len(clinical)} by {len({row.rater_id for row in clinical})} raters"
    else:
        text = "none yet: grader only" + (" (simulated ones stand apart)" if study.sampled_ratings else "")
    return {"name": "Clinician ratings", "state": "ok" if clinical else "none", "text": text}


def trust_statements(study: Study) -> list[str]:
    """Give the rules by which clinicians correct a score and are held against graders."""
    passes = study.form.passes
    if passes is None:
        return ["A clinician's pass is not defined: `config/rating.yaml` has no `passes`, so no score is corrected by clinicians."]
    return [
        (
            f"A clinician's pass: {passes.from_} or more on the axis {passes.axis}, of the mean over the raters of an answer, or of the adjudicated "
            "value where there is one. (Our rule.)"
        ),
        (
            "Calibrated score: the graders' pass rate over all answers, plus the mean of clinician minus grader over the rated ones, each weighted "
            "with the inverse of the probability with which it was drawn (a prediction-powered mean). Answers that nobody could judge are left "
            "out; calibrated.csv says what the score would be if all of them had failed or passed. Refused and truncated answers are wrong "
            "without a clinician. Patients are resampled, and half a patient who contradicts the grader is added on each side, so that few "
            f"ratings without a contradiction do not look like certainty. Shown beside a score from {ENOUGH} of a model on. (Our rules.)"
        ),
        (
            "Graders against clinicians: a grader's value and one clinician's, before anything was adjudicated; every rated answer weighs the "
            f"same, and coefficients are given from {FEWEST_UNITS} answers, items or models on. (Our rule.) Beside it one clinician against "
            "another, the most that can be asked of a grader. Simulated raters stand apart and never correct a score."
        ),
    ]
