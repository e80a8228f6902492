"""How a run keeps going: pure decisions, which the table allows, the engine carries out and the log holds.

Compression has four levels (`snip`, `micro`, `collapse`, `compact`); `levels` has their order, `compression` their
settings. `strategies` has the six ways out of trouble and the retry of a request. `resume` says where a run stood. The
README beside this file has the tables.
"""
