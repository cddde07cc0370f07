"""PyMC step methods of Markov random fields."""
