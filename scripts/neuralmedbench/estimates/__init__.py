"""Estimates over arrays of item values that respect patients: rates, differences, tests, agreement, calibration, suppression sets.

Nothing here knows a benchmark or a model, and nothing of ours is imported: numpy and scipy alone.
Whoever brings numbers of their own begins with `intervals.rate_interval` and `pairs.paired_difference`: item values from 0 to 1 with NaN for
an item without a value, `intervals.codes_of` of the patients, and `intervals.IntervalSettings`.

Doors
-----
agreement: ac2, coincidences, complete_rows, icc, ordinal_alpha, paired, pairs_of, quadratic_kappa, shares_of_pairs, weighted_shares
calibration: MASS_BINS, WIDTH_BINS, area_under_risk, auroc, best_area, brier, calibration_error, linspace_bins, mass_bins, pessimistic, risk_coverage_area, selective_accuracy, width_bins
comparisons: Difference, Estimate, paired_difference, paired_differences, rank_ranges, shuffle_p, smallest_difference, square_and_add, tiers
concordance: COEFFICIENTS, Pairs, concordance, concordance_of_units, means_of_units, separation
exact: clopper_pearson, effective_size, holm, holm_levels, mcnemar_exact, one_sided_bounds, p_at_least, p_at_most, share_bounds
intervals: Floats, Interval, IntervalSettings, Ints, NOTHING, cluster_sums, codes_of, exact_interval, percentile_interval, rate_interval, rate_intervals, resampled_means, resampling_weights
label_averages: average, tally
prediction_powered: RatedAnswers, bounds_of_unjudged, calibrated_rate
repeats: compare_answers, pass_at_k
suppression: CellSize, Label, Mask, mask_of, suppressed_cells
"""
