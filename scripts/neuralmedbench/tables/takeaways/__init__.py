"""One sentence and one `n =` line for every block of the report, made where the numbers are made."""
