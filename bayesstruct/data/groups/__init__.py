"""Tables and covariance matrices of several groups of rows."""
