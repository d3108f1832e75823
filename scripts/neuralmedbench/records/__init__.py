"""What the stages hand each other: one frozen dataclass a record."""
