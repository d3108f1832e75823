"""Figures of the report, each drawn from one table.

Doors
-----
gallery: FIGURES, RUN_DIFFERENCES, draw_figures
style: INK, Look, looks
table: Row, groups, in_order, model_order, with_titles
"""
