"""Recognise Markov random fields in models, for step methods and modes."""
