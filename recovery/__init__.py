"""looplatch."""
