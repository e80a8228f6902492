"""looplatch.states.verify: a second implementation of the table's rules, which checks a log from its lines alone.

`log.py` reads the lines and asks the modules beside it; `invariants.py` says what each finding's id means.
"""
