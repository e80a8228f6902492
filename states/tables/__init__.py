"""Every table that judged runs, as data, in the file of its fingerprint; none is ever changed."""
