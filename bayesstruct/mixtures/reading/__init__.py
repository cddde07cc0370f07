"""Tables and predictions of mixtures."""
