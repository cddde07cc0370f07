"""What a person runs: the catalogue of models, the command line, and its reports."""
