"""The small parts that every SVG picture is made of."""

from xml.sax.saxutils import escape

FONT = "'IBM Plex Mono','DejaVu Sans Mono','Liberation Mono',Menlo,Consolas,monospace"
NAMESPACE = "http://www.w3.org/2000/svg"


def opening(width: float, height: float, what: str) -> str:
    """The tag that opens a picture of `width` by `height` pixels; `what` tells who cannot see it what it is."""
    w, h = number(width), number(height)
    return (
        f'<svg xmlns="{NAMESPACE}" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" '
        f'aria-label="{escaped(what)}" font-family="{FONT}">'
    )


def escaped(text: str) -> str:
    """`text` as XML may hold it, also between double quotes."""
    printed = "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)
    return escape(printed, {'"': "&quot;"})


def box(x: float, y: float, width: float, height: float) -> str:
    """The place and the size of a rectangle, as attributes."""
    return f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'


def number(value: float) -> str:
    """A length with a digit behind the point at most."""
    return f"{value:.1f}".removesuffix(".0")
