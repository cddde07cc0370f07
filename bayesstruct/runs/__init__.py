"""A checkpointed pm.sample that continues after an interruption."""
