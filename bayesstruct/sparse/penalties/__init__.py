"""One class for each penalty, shared by solvers, operations and priors."""
