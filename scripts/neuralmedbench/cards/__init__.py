"""Documentation of a benchmark other than its numbers: cards, reporting checklists, Croissant metadata.

Doors
-----
card: CardConfig, CardForm, CroissantConfig, read_card
croissant: describe, missing_properties
"""
