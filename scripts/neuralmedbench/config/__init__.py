"""The configuration: typed once, read once, refused when it is wrong."""
