"""Burned-in text: detected by constancy over slices, by colour, strokes and OCR, and hidden."""
