"""Figures: each is drawn from one table.

Doors
-----
gallery: FIGURES, draw_figures
style: INK, Look, looks
table: Row, groups
"""
