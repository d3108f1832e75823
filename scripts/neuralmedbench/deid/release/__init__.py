"""De-identification of a folder of scans without the workflow."""
