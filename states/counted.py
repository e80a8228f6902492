"""So many of something, in words."""


def counted(count: int, noun: str) -> str:
    """`count`, with the noun in the number that goes with it: "1 row", "2,000 rows"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
