"""Evidence of families, draws of their parameters, and Markov chains over graphs."""
