"""looplatch.recovery.compression: four levels that bring a history under the model's window, as pure edits of it.

`levels.py` says which comes next; `snip.py`, `micro.py`, `collapse.py` and `compact.py` are they.
"""
