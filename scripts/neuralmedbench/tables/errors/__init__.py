"""What is wrong with wrong answers, in the words of graders and clinicians."""
