"""Where nodes, their names and the lines between them go."""
