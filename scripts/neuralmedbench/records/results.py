"""The tables of results: `results/tables/<name>.csv` and their columns, in order."""

from __future__ import annotations

COLUMNS = {
    "leaderboard": "benchmark axis model in_reference_pool title revision baseline open_weights rank rank_low rank_high tier pass1 pass1_low"
    " pass1_high interval pass5 pass5_low pass5_high candidates5 candidates5_low candidates5_high all_right main_condition core_diagnosis"
    " rubric rubric_low rubric_high n_items n_patients expected missing missing_fraction best_case worst_case refused truncated unparsable abstained brier note",
    "rates": "benchmark axis model in_reference_pool arm strategy slice value_of_slice metric value low high interval n_items n_patients"
    " expected missing",
    "arms": "benchmark model in_reference_pool arm reference_arm difference low high p_value n_items n_patients",
    "decomposition": "benchmark model in_reference_pool f f_low f_high d d_low d_high perception perception_low perception_high"
    " reasoning reasoning_low reasoning_high drawn note n_items n_patients",
    "turns": "benchmark model in_reference_pool measure turn value low high n_items n_patients samples",
    "pairwise": "benchmark model_a a_in_reference_pool model_b b_in_reference_pool difference low high p_value p_holm mcnemar_p n_items"
    " n_patients",
    "axes": "model title breadth_benchmark breadth_in_reference_pool breadth breadth_low breadth_high breadth_prior"
    " depth_benchmark depth_in_reference_pool depth depth_low depth_high depth_prior gap gap_low gap_high",
    "similarity": "benchmark model in_reference_pool metric mean n auc_vs_vocabulary auc_low auc_high note",
    "fields": "benchmark model in_reference_pool field accuracy low high macro_f1 abstained n_items n_patients",
    "graders": "benchmark model in_reference_pool grader ok failed skipped mean_core_diagnosis mean_main_condition agreement_with_first note",
    "case_flow": "benchmark unit step reason n",
    "file_flow": "benchmark unit step reason n cases",
    "cases": "benchmark case_id patient_id state quarantined_by reason sequences n_items",
    "deid_audit": "benchmark profile kind state check value",
    "deidentification": "benchmark place action category required right share patients patients_right patients_low patients_high",
    "cohort": "benchmark variable value n",
    "efficiency": "benchmark model in_reference_pool requests answered prompt_tokens completion_tokens latency_median_s latency_p90_s cost_usd"
    " attempts first_called_on last_called_on served_models fingerprints",
    "destinations": "benchmark model in_reference_pool destination requests calls pictures characters first_called_on last_called_on",
    "ratings": "round_id model in_reference_pool axis n mean stale simulated",
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
