"""What was asked of whom: calls, their price, and the model that answered."""
