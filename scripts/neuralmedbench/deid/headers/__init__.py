"""Headers of DICOM files and their sidecars: what is kept, changed and removed, and by which rule."""
