"""The tables of results: `results/tables/<name>.csv` and their columns, in order."""

from __future__ import annotations

import re
from collections.abc import Mapping

COLUMNS = {
    "leaderboard": "benchmark axis model in_reference_pool title revision baseline reader open_weights rank rank_low rank_high tier pass1 pass1_low"
    " pass1_high interval calibrated calibrated_low calibrated_high pass5 pass5_low pass5_high candidates5 candidates5_low candidates5_high"
    " all_right main_condition core_diagnosis"
    " rubric rubric_low rubric_high n_items n_patients expected missing missing_fraction best_case worst_case refused truncated unparsable abstained brier note",
    "rates": "benchmark axis model in_reference_pool arm strategy slice value_of_slice metric value low high interval n_items n_patients"
    " expected missing",
    "arms": "benchmark model in_reference_pool arm reference_arm difference low high p_value n_items n_patients",
    "decomposition": "benchmark model in_reference_pool f f_low f_high d d_low d_high perception perception_low perception_high"
    " reasoning reasoning_low reasoning_high drawn note n_items n_patients",
    "turns": "benchmark model in_reference_pool measure turn value low high n_items n_patients samples",
    "differential": "benchmark model in_reference_pool family level top1 top1_low top1_high top3 top3_low top3_high top5 top5_low top5_high"
    " mrr mrr_low mrr_high mean_candidates full_lists n_items n_patients answers without_list missing",
    "confidence": "benchmark model in_reference_pool arm source n_items n_patients answers with_confidence without_confidence refused truncated"
    " abstained unparsable unstated missing mean_confidence accuracy overconfidence overconfidence_low overconfidence_high ece ece_low"
    " ece_high ece_by_chance ece_equal_mass ece_pessimistic brier brier_low brier_high brier_pessimistic auroc auroc_low auroc_high"
    " shift shift_low shift_high note",
    "reliability": "benchmark model in_reference_pool arm source bin from_confidence to_confidence mean_confidence share_right low high"
    " interval n n_patients",
    "risk_coverage": "benchmark model in_reference_pool source measure coverage value low high interval threshold n n_patients",
    "pairwise": "benchmark model_a a_in_reference_pool model_b b_in_reference_pool difference low high p_value p_holm mcnemar_p n_items"
    " n_patients",
    "axes": "model title breadth_benchmark breadth_in_reference_pool breadth breadth_low breadth_high breadth_prior"
    " depth_benchmark depth_in_reference_pool depth depth_low depth_high depth_prior gap gap_low gap_high",
    "contamination": "benchmark model in_reference_pool cutoff metric before before_low before_high after after_low after_high difference low"
    " high p_value p_holm beyond_others beyond_low beyond_high others n_items_before n_patients_before n_items_after n_patients_after"
    " n_items_left_out note",
    "similarity": "benchmark model in_reference_pool level metric mean n auc_vs_vocabulary auc_low auc_high auc_n auc_vs_clinicians"
    " auc_vs_clinicians_low auc_vs_clinicians_high n_rated note",
    "fields": "benchmark model in_reference_pool field accuracy low high macro_f1 coverage selective_accuracy answered out_of_vocabulary"
    " abstained n_items n_patients",
    "validity": "benchmark model in_reference_pool runner step share count n",
    "graders": "benchmark model in_reference_pool grader ok failed skipped mean_core_diagnosis mean_main_condition agreement_with_first note",
    "calibrated": "benchmark model in_reference_pool grader raw raw_low raw_high calibrated calibrated_low calibrated_high if_unjudged_failed"
    " if_unjudged_passed n_rated n_patients_rated n_unjudged n_answers n_patients simulated note",
    "grader_vs_clinician": "benchmark judge kind level model in_reference_pool pearson pearson_low pearson_high spearman spearman_low"
    " spearman_high icc icc_low icc_high kappa kappa_low kappa_high auc auc_low auc_high bias bias_low bias_high same_maker n n_patients"
    " simulated",
    "errors": "benchmark model in_reference_pool source kind simulated level code group paper_class labels per_response low high n n_patients"
    " per_wrong wrong_low wrong_high n_wrong share_of_labels significant failed",
    "reasoning": "benchmark model in_reference_pool grader measure value low high n n_patients failed",
    "juries": "benchmark model in_reference_pool jury rule criterion dropped members voted n n_patients missing mean low high unanimous spread"
    " member_mean difference changed",
    "case_flow": "benchmark unit step reason n",
    "file_flow": "benchmark unit step reason n cases",
    "cases": "benchmark case_id patient_id state quarantined_by reason sequences n_items",
    "deid_audit": "benchmark profile kind state check value",
    "deidentification": "benchmark place action category required right share patients patients_right patients_low patients_high",
    "cohort": "benchmark variable value n",
    "efficiency": "benchmark model in_reference_pool requests answered prompt_tokens completion_tokens latency_median_s latency_p90_s cost_usd"
    " attempts first_called_on last_called_on served_models fingerprints",
    "cost": "benchmark model in_reference_pool title pass1 pass1_low pass1_high n_items n_patients answers prompt_tokens completion_tokens cost_usd"
    " usd_per_item usd_per_right_answer priced_on on_frontier note",
    "destinations": "benchmark model in_reference_pool destination requests calls pictures characters first_called_on last_called_on",
    "readers": "benchmark reader title simulated model in_reference_pool slice value_of_slice reader_pass1 reader_pass1_low reader_pass1_high"
    " model_pass1 model_pass1_low model_pass1_high difference low high p_value seconds_median n_items n_patients",
    "ratings": "round_id model in_reference_pool axis n responses mean adjudicated stale simulated",
    "agreement": "round_id simulated axis between rater_a rater_b measure value low high n_responses n_patients n_raters undefined note",
    "raters": "round_id simulated rater_id axis n cannot_judge shared severity severity_low severity_high repeats repeats_same"
    " repeats_within_one repeats_kappa controls_right controls_right_n controls_wrong controls_wrong_n median_seconds below_floor too_fast",
    "readiness": "benchmark model in_reference_pool use group condition limit stated value low high bound n_patients p_met p_not_met"
    " verdict failing cases",
    "revisions": "benchmark model in_reference_pool metric earlier_revision revision earlier_value value difference low high p_difference"
    " disagreement noise_floor excess p_value same_text n_items n_patients n_repeated gained lost",
    "flips": "benchmark model in_reference_pool item_id case_id family level change earlier_passes earlier_samples passes samples"
    " p_value p_holm",
}
"""Every table; an empty cell means not available."""

POOL_MARKS = {
    "in_reference_pool": ("benchmark", "model"),
    "a_in_reference_pool": ("benchmark", "model_a"),
    "b_in_reference_pool": ("benchmark", "model_b"),
    "breadth_in_reference_pool": ("breadth_benchmark", "model"),
    "depth_in_reference_pool": ("depth_benchmark", "model"),
}
"""Columns that mark a model by whose answers the items of a benchmark were chosen, with the columns that name the two."""

HIDDEN, NOT_SHOWN = "(hidden)", "not shown"
"""In the cell that counts the patients of a row that a public run hides beside a small one; and in a cell of words of such a row."""

MARK = re.compile(r"<\d+( patients)?|\(hidden\)")
"""What stands in that cell: `<10` where few patients are behind the row (`docs/metrics.md`)."""


def mark_of(row: Mapping[str, str]) -> str:
    """Say why the empty cells of a row are not shown; empty when nothing of it is hidden."""
    return next((cell for cell in row.values() if MARK.fullmatch(cell)), "")
