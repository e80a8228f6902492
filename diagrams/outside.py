"""Text from outside (a file's name, a tool's, a guard's) as a label can hold it."""

CUT = "..."


def shown(text: str, most: int) -> str:
    """`text` without what is not printed, what steers a terminal or what changes the direction; `most` characters."""
    cut = text if len(text) <= most else text[: most - len(CUT)] + CUT
    return "".join(char if char.isprintable() else "\ufffd" for char in cut)
