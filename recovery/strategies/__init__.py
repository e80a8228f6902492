"""The six strategies of `recover`, and the retry of a request: one module each, with its guard and its action."""
