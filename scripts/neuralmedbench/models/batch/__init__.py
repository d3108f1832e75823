"""Provider batch: requests handed in together, at about half the price, and collected when the provider has answered them."""
