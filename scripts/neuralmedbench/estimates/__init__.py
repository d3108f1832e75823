"""Estimates over arrays of item values that respect patients: rates, differences, tests, agreement, calibration, suppression sets.

The functions know no benchmark and no model, and import numpy and scipy alone.
To use it with your own numbers, begin with `intervals.ByPatient` (patient of each item, `IntervalSettings`), `intervals.rate_interval` and
`contrasts.paired_difference`. Item values lie between 0 and 1, with NaN for an item without a value.

Doors
-----
agreement: RaterTerms, pair_coefficients, pair_terms
calibration: auroc, auroc_interval, brier, calibration_error, kept_parts, linspace_bins, mass_bins, overconfidence, risk_coverage_area, width_bins
contrasts: ALIKE, DIFFERENT, Difference, INCONCLUSIVE, Parts, Ratio, largest_difference, paired_difference, paired_parts, patients_to_show, ratio_difference, smallest_difference, square_and_add, unpaired_difference
concordance: COEFFICIENTS, Level, MOST_UNDEFINED, Pairs, concordance
exact: ShareTest, clopper_pearson, holm_known, share_bounds, share_tests
intervals: ByPatient, Floats, Interval, IntervalSettings, Ints, codes_of, item_weights, patients_rate, rate_interval, repaired_share
noninferiority: Changes, MOST_PATIENTS, gap_bounds, gaps_of, margin_test, patients_needed
over_models: FEWEST_MODELS, Discrimination, guessing_p, is_shared, item_discriminations
prediction_powered: FEWEST_RATERS, RatedAnswers, calibrated_rate, correct_rate
ranks: rank_ranges, tiers
repeats: AnswerChange, compare_answers, pass_at_k
step_down: FEWEST_DIFFERING, corrected_together
suppression: CellSize, Label, Mask, mask_of, suppressed_cells, two_weights_tell
"""
