"""Answering: a model call and the answer to it, with the tools that it calls."""
