"""Docstrings in the styles in use give a summary and a text for each parameter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.tools.docstrings import DocText, read_docstring

GOOGLE = """Read a file.

    It must exist.

    Args:
        path: Where it is,
            from the root.
        limit (int, optional): How many lines.
        *rest: More of them.

    Returns:
        path: no parameter, this one.

    Args are not repeated here.
    """

NUMPY = """Read a file.

    It must exist.

    Parameters
    ----------
    path : str
        Where it is,
        from the root.
    limit, offset : int
        In lines.
    bare

    Returns
    -------
    text : str
        No parameter.
    """

SPHINX = """Read a file.

    It must exist.

    :param path: Where it is,
        from the root.
    :param int limit: How many lines.
    :type path: str
    :returns: the text
    """


@pytest.mark.parametrize(
    ("doc", "params"),
    [
        (GOOGLE, {"path": "Where it is, from the root.", "limit": "How many lines.", "rest": "More of them."}),
        (NUMPY, {"path": "Where it is, from the root.", "limit": "In lines.", "offset": "In lines."}),
        (SPHINX, {"path": "Where it is, from the root.", "limit": "How many lines."}),
    ],
)
def test_each_style_is_read(doc: str, params: dict[str, str]) -> None:
    assert read_docstring(doc) == DocText(summary="Read a file.\n\nIt must exist.", params=params)


@pytest.mark.parametrize(
    ("doc", "summary"),
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        ("Warning: hot.\n\nNote that it is.", "Warning: hot.\n\nNote that it is."),
        ("Intro.\n\nLists:\n    - one\n    - two\n\nEnd.", "Intro.\n\nLists:\n    - one\n    - two\n\nEnd."),
    ],
)
def test_what_follows_no_style_is_all_summary(doc: str | None, summary: str) -> None:
    assert read_docstring(doc) == DocText(summary=summary)


@given(st.lists(st.sampled_from([*GOOGLE.splitlines(), *NUMPY.splitlines(), *SPHINX.splitlines()])) | st.text())
def test_no_docstring_raises_or_hangs(parts: list[str] | str) -> None:
    read_docstring(parts if isinstance(parts, str) else "\n".join(parts))
