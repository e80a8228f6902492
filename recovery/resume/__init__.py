"""looplatch.recovery.resume: what a log says of its run, folded into where the run stands.

`fold.py` reads the records once and asks the rooms beside it.
"""
