"""Parts that models with a Markov random field share."""
