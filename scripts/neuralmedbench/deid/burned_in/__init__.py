"""Text burned into the pixels: found by what stays the same over slices, read by strokes and OCR, hidden."""
