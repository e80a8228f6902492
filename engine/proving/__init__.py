"""Proving: a log is found, judged and walked again."""
