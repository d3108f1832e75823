"""What an answer is worth: parsing, matching, graders, similarity, scores."""
