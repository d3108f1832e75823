"""The average brain, and where it lies in a scan: what defacing and normalisation share."""
