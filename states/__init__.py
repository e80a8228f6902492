"""looplatch.states: what is legal, as data and pure functions."""
