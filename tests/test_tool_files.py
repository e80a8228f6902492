"""A folder that no path leads out of: what is listed, read, written and refused in it."""

import os
import shutil
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch.states.errors import UsageError
from looplatch.tools.files import Folder, LinePattern, PathRefused, PatternRefused, fits, read_lines, read_text
from looplatch.tools.files.folder import State
from looplatch.tools.files.handles import entered


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the one that is used, with a secret."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret.txt").write_text("secret")
    return place


@pytest.fixture
def inside(tmp_path: Path, outside: Path) -> Path:
    """The folder that is used: files, folders, and links of every kind."""
    place = tmp_path / "inside"
    (place / "sub" / "deep").mkdir(parents=True)
    (place / "a.txt").write_text("a")
    (place / "sub" / "b.txt").write_text("b")
    (place / "sub" / "deep" / "c.py").write_text("c")
    (place / "good_link").symlink_to("sub")
    (place / "good_file").symlink_to("sub/b.txt")
    (place / "bad_link").symlink_to(outside)
    (place / "bad_file").symlink_to(outside / "secret.txt")
    (place / "relative_link").symlink_to("../outside")
    (place / "dangling").symlink_to(outside / "new.txt")
    (place / "loop").symlink_to("loop")
    os.mkfifo(place / "pipe")
    return place


LEADING_OUT = [
    "../outside/secret.txt",
    "sub/../../outside/secret.txt",
    "bad_link/secret.txt",
    "bad_file",
    "relative_link/secret.txt",
    "good_link/../../outside/secret.txt",
    "/etc/passwd",
    "dangling",
]


def text_of(folder: Folder, path: str) -> str | None:
    return read_text(folder.open(path))[0]


def tree(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "sub/../a.txt", "good_link/../a.txt"])
def test_a_path_that_stays_inside_is_read(inside: Path, path: str) -> None:
    assert text_of(Folder(inside), path) == "a"


def test_links_and_absolute_paths_that_lead_inside_are_read(inside: Path) -> None:
    folder = Folder(inside)
    for path in ("good_link/b.txt", "good_file", str(inside / "sub" / "b.txt")):
        assert text_of(folder, path) == "b"


@pytest.mark.parametrize("path", LEADING_OUT)
def test_a_path_that_leads_out_is_refused(inside: Path, outside: Path, path: str) -> None:
    folder = Folder(inside)
    before = tree(outside)
    for use in (folder.open, folder.files, folder.is_folder, partial(folder.write, data=b"x")):
        with pytest.raises(PathRefused) as caught:
            use(path)
        assert caught.value.path == path
        assert "leads out of the folder" in str(caught.value)
    assert tree(outside) == before
    assert not (outside / "new.txt").exists()


@pytest.mark.parametrize("path", ["missing", "sub", "loop", "pipe", "", ".", "a.txt/x", "nul\0", "x" * 5_000])
def test_what_is_no_file_cannot_be_read(inside: Path, path: str) -> None:
    with pytest.raises(PathRefused):
        Folder(inside).open(path)


@pytest.mark.parametrize("path", ["sub", "loop/x", "pipe", "", ".", "a.txt/x", "nul\0", "x" * 5_000])
def test_what_is_no_file_cannot_be_written(inside: Path, path: str) -> None:
    before = tree(inside)
    with pytest.raises(PathRefused):
        Folder(inside).write(path, b"x")
    assert tree(inside) == before


def test_a_file_is_written_with_the_folders_on_the_way_to_it(inside: Path) -> None:
    folder = Folder(inside)
    folder.write("new/er/file.txt", b"1")
    folder.write("good_link/linked.txt", b"2")
    assert (inside / "new" / "er" / "file.txt").read_bytes() == b"1"
    assert (inside / "sub" / "linked.txt").read_bytes() == b"2"


def test_a_written_file_keeps_its_mode_and_leaves_nothing_beside_it(inside: Path) -> None:
    (inside / "a.txt").chmod(0o751)
    before = set(os.listdir(inside))
    Folder(inside).write("a.txt", b"new")
    assert (inside / "a.txt").read_bytes() == b"new"
    assert (inside / "a.txt").stat().st_mode & 0o777 == 0o751
    assert set(os.listdir(inside)) == before


def test_a_write_protected_file_stays(inside: Path) -> None:
    (inside / "a.txt").chmod(0o444)
    with pytest.raises(PathRefused, match="it is write-protected"):
        Folder(inside).write("a.txt", b"new")
    assert (inside / "a.txt").read_bytes() == b"a"


def test_another_name_of_a_file_outside_keeps_its_content(inside: Path, outside: Path) -> None:
    os.link(outside / "secret.txt", inside / "hard.txt")
    Folder(inside).write("hard.txt", b"changed")
    assert (outside / "secret.txt").read_text() == "secret"
    assert (inside / "hard.txt").read_text() == "changed"


def test_a_file_that_someone_else_changed_meanwhile_stays(inside: Path) -> None:
    folder = Folder(inside)
    with folder.open("a.txt") as file:
        state = State.of(os.fstat(file.fileno()))
    (inside / "a.txt").write_text("theirs")
    with pytest.raises(PathRefused, match="changed by someone else"):
        folder.write("a.txt", b"ours", unless_changed=state)
    assert (inside / "a.txt").read_text() == "theirs"
    assert not [name for name in os.listdir(inside) if name.startswith(".a.txt")]


def test_a_link_that_is_put_there_after_the_path_was_looked_at_is_not_followed(inside: Path, outside: Path) -> None:
    for name in ("bad_link", "good_link"):
        with pytest.raises(OSError), entered(inside, [name]):  # noqa: PT011 -- ELOOP or ENOTDIR, as the system likes
            pass
    with entered(inside, []) as place, pytest.raises(OSError):  # noqa: PT011 -- the same
        place.opened("bad_file")


def test_whoever_swaps_a_folder_for_a_link_gets_nothing_out_and_nothing_in(inside: Path, outside: Path) -> None:
    """A folder turns into a link to the outside and back, as fast as it can, while its files are read and written."""
    (outside / "b.txt").write_text("secret")
    real, swapped, link = inside / "real", inside / "swap", inside / "link"
    (inside / "sub").rename(real)
    link.symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for source in (real, link):
                try:
                    source.rename(swapped)
                    swapped.rename(source)
                except OSError:  # a folder that was made to write in, while there was none
                    shutil.rmtree(swapped, ignore_errors=True)

    swapper = threading.Thread(target=swap)
    swapper.start()
    folder = Folder(inside)
    read: set[str | None] = set()
    try:
        for _ in range(400):
            with suppress(PathRefused):
                read.add(text_of(folder, "swap/b.txt"))
            with suppress(PathRefused):
                folder.write("swap/new.txt", b"new")
            assert all("secret" not in entry.path for entry in folder.files().entries)
    finally:
        stop.set()
        swapper.join()
    assert read <= {"b"}
    assert set(os.listdir(outside)) == {"secret.txt", "b.txt"}
    assert (outside / "b.txt").read_text() == "secret"


def test_files_are_listed_newest_first_without_links_and_caches(inside: Path) -> None:
    for number, name in enumerate(["a.txt", "sub/b.txt", "sub/deep/c.py"]):
        os.utime(inside / name, (number, number))
    for name in (".git", "node_modules", "__pycache__", ".venv", "product.egg-info"):
        (inside / name).mkdir()
        (inside / name / "x").write_text("x")
    listing = Folder(inside).files()
    assert [entry.path for entry in listing.entries] == ["sub/deep/c.py", "sub/b.txt", "a.txt"]
    assert listing.complete
    assert [entry.size for entry in listing.entries] == [1, 1, 1]
    assert [entry.path for entry in Folder(inside).files("good_link").entries] == ["sub/deep/c.py", "sub/b.txt"]
    everything = Folder(inside).files(skips=lambda name: name == "sub")
    assert {entry.path for entry in everything.entries} == {
        "a.txt",
        ".git/x",
        "node_modules/x",
        "__pycache__/x",
        ".venv/x",
        "product.egg-info/x",
    }


def test_a_listing_of_no_folder_is_refused(inside: Path) -> None:
    with pytest.raises(PathRefused, match="cannot be listed"):
        Folder(inside).files("a.txt")


def test_a_folder_that_is_too_deep_is_not_listed_whole(tmp_path: Path) -> None:
    (tmp_path / Path(*["d"] * 45)).mkdir(parents=True)
    assert not Folder(tmp_path).files().complete


def test_what_is_no_folder_is_refused(inside: Path) -> None:
    for place in (inside / "a.txt", inside / "missing", inside / "loop"):
        with pytest.raises(UsageError, match="cannot be read as one"):
            Folder(place)


@given(st.text(max_size=30))
def test_no_path_whatever_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    folder = Folder(tmp_path_factory.getbasetemp())
    for use in (folder.open, folder.files):
        try:
            opened: Any = use(path)
        except PathRefused:
            continue
        if hasattr(opened, "close"):
            opened.close()


def test_text_is_read_whatever_its_encoding(inside: Path) -> None:
    (inside / "bom.txt").write_bytes("\ufeffä".encode())
    (inside / "wide.txt").write_bytes("ä".encode("utf-16"))
    (inside / "latin.txt").write_bytes(b"\xe4")
    (inside / "binary").write_bytes(b"a\0b")
    folder = Folder(inside)
    names = ("bom.txt", "wide.txt", "latin.txt", "binary")
    assert [text_of(folder, name) for name in names] == ["ä", "ä", "\ufffd", None]
    assert [read_lines(folder.open(name), 1, None)[0] for name in names] == ["ä", "ä", "\ufffd", None]


def test_of_a_long_text_the_ends_are_read(inside: Path) -> None:
    (inside / "long.txt").write_bytes(b"a" * (5 * 1024 * 1024) + b"end")
    text, complete = read_text(Folder(inside).open("long.txt"))
    assert text is not None
    assert (complete, text[:3], text[-3:]) == (False, "aaa", "end")
    assert "the middle of the file is not shown" in text


@pytest.mark.parametrize(
    ("first", "last", "lines"),
    [(1, 1, "1\n"), (2, 3, "2\n3\n"), (4, None, "4\n5"), (5, 9, "5"), (6, None, ""), (3, 2, "")],
)
def test_lines_are_read_by_their_numbers(inside: Path, first: int, last: int | None, lines: str) -> None:
    (inside / "lines.txt").write_text("1\n2\n3\n4\n5")
    assert read_lines(Folder(inside).open("lines.txt"), first, last) == (lines, True)


def test_lines_far_into_a_long_file_are_read(inside: Path) -> None:
    (inside / "lines.txt").write_text("".join(f"line {number}\n" for number in range(1, 600_001)))
    assert read_lines(Folder(inside).open("lines.txt"), 600_000, None) == ("line 600000\n", True)
    text, complete = read_lines(Folder(inside).open("lines.txt"), 1, None)
    assert text is not None
    assert (complete, len(text) <= 4 * 1024 * 1024) == (False, True)


def test_an_expression_finds_lines_as_usual() -> None:
    assert LinePattern(r"def \w+\(").found_in("  def name(self):")
    assert not LinePattern(r"^def").found_in("  def name(self):")
    assert LinePattern("(?i)TODO|fixme").found_in("# FixMe")
    assert LinePattern("").found_in("")


def test_no_expression_takes_for_ever() -> None:
    """Python's own engine would still be at it when the sun goes out."""
    assert not LinePattern("(a+)+$").found_in("a" * 50_000 + "!")
    assert not LinePattern("(.*)*(.*)*x").found_in("a" * 50_000)


@pytest.mark.parametrize("pattern", ["(", "*", "a(?=b)", r"(a)\1", "[", "a{1,100000}{1,100000}"])
def test_an_expression_that_is_not_known_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused) as caught:
        LinePattern(pattern)
    assert caught.value.pattern == pattern


@pytest.mark.parametrize(
    ("path", "pattern", "wanted"),
    [
        ("a.py", "*.py", True),
        ("d/a.py", "*.py", True),
        ("d/a.py", "./*.py", False),
        ("a.py", "./*.py", True),
        ("d/e/a.py", "**/a.py", True),
        ("a.py", "**/a.py", True),
        ("d/e/a.py", "d/**", True),
        ("d/a.py", "e/**", False),
        ("d/a.py", "d/?.py", True),
        ("d/ab.py", "d/?.py", False),
    ],
)
def test_patterns_of_paths_fit_as_in_a_shell(path: str, pattern: str, wanted: bool) -> None:
    assert fits(path, pattern) is wanted
