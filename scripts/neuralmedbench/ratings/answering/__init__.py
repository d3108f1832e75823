"""Rounds of the second kind: clinicians answer the questions themselves, blind, and become models whose answers are imported."""
