"""Headers of DICOM files and JSON sidecars: the elements that are kept, changed and removed, and by which rule."""
