"""Rates, differences and tests over arrays of item values; none of them knows a benchmark or a model."""
