"""The built-in cohort: phantoms with planted identities."""
