"""Requests: the history of a run as the bytes that are sent, and what goes around it."""
