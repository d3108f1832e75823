"""Figures of the report, each drawn from one table.

Doors
-----
gallery: FIGURES, draw_figures
style: INK, Look, looks
table: GREY, Row, groups, in_order, model_order
"""
