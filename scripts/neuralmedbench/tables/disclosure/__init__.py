"""Statistical disclosure control: what a public page may not say of a few patients."""
