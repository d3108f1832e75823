"""What others published, beside ours."""
