"""Time series that switch among shared behaviours."""
