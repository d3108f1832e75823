"""What clinicians said: their ratings, how far they agree, and readers who answered themselves."""
