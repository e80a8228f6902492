"""The six strategies of `recover`, and the retry of a request: one module each.

It names the strategy and its guards, and has what is to be decided or said for its action. Who carries it out is the
performer, by the commands of the strategy's rows.
"""
