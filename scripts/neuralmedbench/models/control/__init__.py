"""What bounds the calls of a run: money, rates, retries, and a person who asks it to end."""
