"""What several families share and no family owns."""
