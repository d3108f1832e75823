"""The tables of results: `results/tables/<name>.csv` and their columns, in order."""

from __future__ import annotations

COLUMNS = {
    "leaderboard": "benchmark axis model title revision baseline open_weights rank rank_low rank_high tier pass1 pass1_low pass1_high"
    " interval pass5 pass5_low pass5_high candidates5 candidates5_low candidates5_high all_right main_condition core_diagnosis rubric"
    " n_items n_patients expected missing missing_fraction best_case worst_case refused truncated unparsable abstained brier note",
    "rates": "benchmark axis model arm strategy slice value_of_slice metric value low high interval n_items n_patients expected missing",
    "arms": "benchmark model arm reference_arm difference low high p_value n_items n_patients",
    "decomposition": "benchmark model f f_low f_high d d_low d_high perception perception_low perception_high reasoning reasoning_low"
    " reasoning_high drawn note n_items n_patients",
    "pairwise": "benchmark model_a model_b difference low high p_value p_holm mcnemar_p n_items n_patients",
    "axes": "model title breadth_benchmark breadth breadth_low breadth_high breadth_prior depth_benchmark depth depth_low depth_high"
    " depth_prior gap gap_low gap_high",
    "similarity": "benchmark model metric mean n auc_vs_vocabulary auc_low auc_high note",
    "fields": "benchmark model field accuracy low high macro_f1 abstained n_items n_patients",
    "graders": "benchmark model grader ok failed skipped mean_core_diagnosis mean_main_condition agreement_with_first note",
    "case_flow": "benchmark step reason n",
    "file_flow": "benchmark unit step reason n cases",
    "cases": "benchmark case_id patient_id state quarantined_by reason sequences n_items",
    "deid_audit": "benchmark profile kind state check value",
    "deidentification": "benchmark place action category required right share patients patients_right patients_low patients_high",
    "cohort": "benchmark variable value n",
    "efficiency": "benchmark model requests answered prompt_tokens completion_tokens latency_median_s latency_p90_s cost_usd attempts"
    " first_called_on last_called_on",
    "destinations": "benchmark model destination requests pictures",
    "ratings": "round_id model axis n mean stale simulated",
    "revisions": "benchmark model metric earlier_revision revision earlier_value value difference low high p_difference disagreement"
    " noise_floor excess p_value same_text n_items n_patients n_repeated gained lost",
    "flips": "benchmark model item_id case_id family level change earlier_passes earlier_samples passes samples p_value p_holm",
}
"""Every table; an empty cell means not available."""
