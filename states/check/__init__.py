"""looplatch.states.check: what a table must keep, shown from its rows, and by walking all that can be reached."""
