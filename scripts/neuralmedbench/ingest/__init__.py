"""Raw files: what they are, which of them are used, and under which neutral name they go on."""
