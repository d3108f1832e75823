"""De-identification: the gate between the private and the shareable zone."""
