"""Confidence of answers: calibration, risk and coverage."""
