"""Linear structural equations: directed graphs with a linear regression and a noise distribution for each column."""
