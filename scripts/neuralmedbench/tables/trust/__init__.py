"""Which grader to trust: graders against clinicians, and pass rates corrected by them."""
