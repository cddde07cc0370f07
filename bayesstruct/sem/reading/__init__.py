"""What results of linear structural equations say of rows whose noise is not normal."""
