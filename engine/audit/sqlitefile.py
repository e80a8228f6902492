"""The file of a log in SQLite: written by one process alone, and read by any."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from looplatch.audit.disk import DISK, Disk, Syncing
from looplatch.audit.errors import LogDamaged, LogFailed
from looplatch.audit.linefile import LineFile
from looplatch.states.errors import UsageError

_APPLICATION: Final = 0x6C6F6F70  # "loop": what the file is
_TABLES: Final = (
    "CREATE TABLE records (place INTEGER PRIMARY KEY, line BLOB NOT NULL)",
    "CREATE TABLE payloads (commitment TEXT PRIMARY KEY, salt BLOB NOT NULL, payload BLOB NOT NULL) WITHOUT ROWID",
)
_WAIT_S: Final = 10.0  # for a reader that is in the way
_WAIT_AT_END_MS: Final = 250  # for one that is in the way of putting all into one file
_PRIMARY: Final = 0xFF  # of an error's code: its kind
_OF_THE_DISK: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_LIKE_READING: Final = (sqlite3.OperationalError, sqlite3.InternalError)


class SqliteFile:
    """A database that belongs to one writer, and to its owner only; readers are not in its way.

    Every write is a transaction: a crash leaves it whole, or not there. Raises UsageError where the file cannot be had
    or is no log, LogInUse where another writer has it, LogFailed where its disk fails. found: whether it
    holds anything.
    """

    def __init__(self, path: Path, disk: Disk = DISK) -> None:
        self.path = path
        self._disk = disk
        self._file = LineFile(path, disk)  # the lock: what SQLite itself locks would let a second writer in
        self._written = self._synced = 0
        self._syncing = threading.Lock()  # what is written ahead is gone once the file is closed
        self._open = True
        try:
            self._db = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
            try:
                self.found = self._prepare()
            except BaseException:
                self._db.close()
                raise
        except sqlite3.Error as error:
            self._file.discard()
            if error.sqlite_errorcode & _PRIMARY in _OF_THE_DISK:
                raise LogFailed(path, "writing", error) from error
            raise UsageError(
                "log", f"{path} is no log ({error})", "Give the path of a log, or of a new file"
            ) from error
        except BaseException:
            self._file.discard()
            raise

    def _prepare(self) -> bool:
        db = self._db
        db.execute("PRAGMA journal_mode=WAL").fetchall()
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA secure_delete=ON").fetchall()
        if self._file.found and _has_begun(db):
            return any(db.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() for name in ("records", "payloads"))
        db.execute("BEGIN")
        db.execute(f"PRAGMA application_id={_APPLICATION}")
        for table in _TABLES:
            db.execute(table)
        db.execute("COMMIT")
        return False

    def write(self, line: bytes) -> None:
        """Append a record's line. Raises LogFailed."""
        self._perform("writing", "INSERT INTO records (line) VALUES (?)", (line,))

    def store(self, kept: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Keep payloads, each given by its commitment, its salt and itself: all of them or none. Raises LogFailed."""
        insert = "INSERT INTO payloads VALUES (?, ?, ?)"
        if len(kept) == 1:
            self._perform("writing", insert, kept[0])
            return
        try:
            self._db.execute("BEGIN")
            try:
                self._db.executemany(insert, kept)
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise LogFailed(self.path, "writing", error) from error
        self._written += 1

    def erase(self, commitments: Sequence[str]) -> None:
        """Delete payloads; their bytes are overwritten, in what was written ahead too. Raises LogFailed."""
        for one in commitments:
            self._perform("deleting", "DELETE FROM payloads WHERE commitment = ?", (one,))
        self._perform("deleting", "PRAGMA wal_checkpoint(TRUNCATE)", ())

    def _perform(self, action: str, statement: str, values: Sequence[object]) -> None:
        try:
            self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise LogFailed(self.path, action, error) from error
        self._written += 1

    @property
    def is_synced(self) -> bool:
        """Whether all that was written is on the disk itself."""
        return self._synced == self._written

    def syncing(self) -> Syncing:
        """What is to be synced so that all that was written before is on the disk itself. Raises LogFailed."""
        with self._syncing:
            written = self._written
            if not self._open or written == self._synced:
                return
            ahead = self.path.with_name(f"{self.path.name}-wal")  # all else is synced by SQLite, as it moves it over
            try:
                fd = self._disk.open(ahead, os.O_RDONLY)
                try:
                    yield fd
                finally:
                    self._disk.close(fd)
            except OSError as error:
                raise LogFailed(ahead, "fsync", error) from error
            self._synced = written

    def check_place(self) -> None:
        """Raise LogFailed where the file was removed or replaced meanwhile."""
        self._file.check_place()

    def close(self) -> None:
        """Close the file and give up its lock; a second call does nothing. Raises LogFailed."""
        with self._syncing:
            self._open = False
            self._close()

    def _close(self) -> None:
        _let_go(self.path)
        try:
            with suppress(sqlite3.Error):  # it has failed; else the file is whole by itself, whoever reads it
                self._db.execute(f"PRAGMA busy_timeout={_WAIT_AT_END_MS}").fetchall()
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            with suppress(sqlite3.Error):  # another process reads it, or it has failed; else one file is left
                self._db.execute("PRAGMA journal_mode=DELETE").fetchall()
            self._db.close()
        except sqlite3.Error as error:
            raise LogFailed(self.path, "closing", error) from error
        finally:
            self._file.close()

    def discard(self) -> None:
        """Close the file that nothing was written to, and remove it if it was made here."""
        self._db.close()
        self._file.discard()


class SqlitePayloads:
    """The payloads in the database at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.absolute()
        self._db: sqlite3.Connection | None = None
        self._turn = threading.Lock()
        with _READERS_TURN:
            _READERS.add(self)

    def find(self, commitment: str) -> tuple[bytes, bytes] | None:
        """The salt and the payload that `commitment` stands for, or None. Raises UsageError for an unreadable file."""
        rows = self._ask("SELECT salt, payload FROM payloads WHERE commitment = ?", commitment)
        return (rows[0][0], rows[0][1]) if rows else None

    def commitments(self) -> list[str]:
        """The commitments of all payloads that are kept. Raises UsageError for an unreadable file."""
        return [str(one) for (one,) in self._ask("SELECT commitment FROM payloads")]

    def _ask(self, query: str, *values: str) -> list[Any]:
        try:
            with self._turn:
                if self._db is None:
                    db = _reader(self.path)
                    if not _has_begun(db):
                        db.close()
                        return []
                    self._db = db
                    self._end = weakref.finalize(self, self._db.close)
                return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise _unreadable(self.path, error, 1) from error

    def let_go(self, file: Path) -> None:
        """Close the file, if it is this one, until it is asked for again."""
        with self._turn:
            if self._db is not None and self._file == file:
                self._db = None
                self._end()


# A reader keeps its connection, and a connection keeps SQLite from putting all that was written into one file.
_READERS: Final[weakref.WeakSet[SqlitePayloads]] = weakref.WeakSet()
_READERS_TURN: Final = threading.Lock()


def _let_go(path: Path) -> None:
    """Close what this process reads the payloads at `path` with."""
    with _READERS_TURN:
        readers = tuple(_READERS)
    for reader in readers:
        reader.let_go(path.absolute())


def stored_lines(path: Path, count: int = -1, *, after: int = 0) -> Iterator[bytes]:
    """The lines of the records in the database at `path`, at most `count` of them, after the first `after`.

    Raises UsageError where it cannot be read, LogDamaged where it is no whole database of a log.
    """
    number = after
    try:
        with closing(_reader(path)) as db:
            if not _has_begun(db):
                return
            for (line,) in db.execute("SELECT line FROM records ORDER BY place LIMIT ? OFFSET ?", (count, after)):
                number += 1
                yield line if isinstance(line, bytes) else str(line).encode()
    except sqlite3.Error as error:
        raise _unreadable(path, error, number + 1) from error


def _has_begun(db: sqlite3.Connection) -> bool:
    """Whether there is anything in it: a process may die before its tables are there, and that is an empty log."""
    return bool(db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall())


def _reader(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        why = "Is a directory" if path.is_dir() else "No such file or directory"
        raise UsageError("log", f"{path} cannot be read ({why})", "Give the path of a log")
    if path.with_name(f"{path.name}-journal").exists() and os.access(path, os.W_OK):
        # A write of the database's head was broken off; that is taken back by whoever opens the file to write.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=_WAIT_S)) as db:
            db.execute("SELECT 1 FROM sqlite_schema").fetchall()
    whole = not path.with_name(f"{path.name}-wal").exists()
    # A log at rest is read as it is, also where no other file may be made beside it.
    mode = "immutable=1" if whole and not os.access(path.parent, os.W_OK) else "mode=ro"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_WAIT_S, check_same_thread=False)


def _unreadable(path: Path, error: sqlite3.Error, line: int) -> Exception:
    if isinstance(error, _LIKE_READING) and "no such table" not in str(error):
        return UsageError("log", f"{path} cannot be read ({error})", "Give the path of a log")
    return LogDamaged(path, line, f"the database is not whole ({error})")
