"""Tables and figures of Markov random fields."""
