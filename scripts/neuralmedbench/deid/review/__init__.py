"""What a person looks at before signing: pieces, sheets, first page, signature."""
