"""Whether a model knows when it is wrong: confidence, reliability, risk and coverage."""
