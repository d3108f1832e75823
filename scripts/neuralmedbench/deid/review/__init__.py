"""The review before signing: pictures and counts, sheets, first page, signature."""
