"""Git's configuration files: their syntax, their includes and what a path in them means."""

from __future__ import annotations

import functools
import itertools
import os
import pwd
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from toolserver._fast.ignore import BaseRules

MAX_DEPTH = 10
"""How deep includes may nest; git's own limit."""
MAX_INCLUDES = 1000
"""Includes that are followed and conditions that are judged, in all; later ones are left out."""
MAX_ENTRIES = 100_000
"""Variables of all files together; later ones are left out. Files that include themselves would give any number."""
MAX_REMOTES = 100
"""Addresses that a condition is asked about."""
MAX_TEXT = 4096
"""Bytes of a condition's pattern, and of what it is compared with; longer ones never match."""

_ESCAPES = {ord("t"): 9, ord("b"): 8, ord("n"): 10, ord("\\"): ord("\\"), ord('"'): ord('"')}
_SPACE = b" \t\r"


class Entry(NamedTuple):
    """One variable: section and key in lower case, the value None where there is no `=`."""

    section: bytes
    subsection: bytes
    key: bytes
    value: bytes | None
    confined: bool = False
    """Whether it comes from the repository: a file that it names counts only inside the tree."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the conditions of `includeIf` ask about."""

    root: bytes
    """The absolute path that relative ones of files are counted from."""
    directories: tuple[bytes, ...] = ()
    """The absolute paths of the git directory, the one with links resolved first; none outside a repository."""
    branch: bytes = b""
    """The branch checked out, without `refs/heads/`."""


Read = Callable[[bytes, bool], tuple[Entry, ...]]
"""Returns the entries of a file, none where it cannot be read, or lies outside the tree and is to be inside."""


class File(NamedTuple):
    """A configuration file to begin with."""

    path: bytes
    of_repository: bool = False
    """Whether a command may write it: the files that it names, and those that these name, are read only inside the
    tree."""


def parse(text: bytes) -> tuple[Entry, ...]:
    """Read a configuration file's own variables, in order; from a fault of syntax on nothing is read."""
    return tuple(_entries(_Source(text.removeprefix(b"\xef\xbb\xbf"))))


class _Source:
    """Bytes to read one by one, CR before LF left out; LF at the end, once, then None."""

    def __init__(self, text: bytes) -> None:
        self._text = text.replace(b"\r\n", b"\n") + b"\n"
        self._at = 0

    def peek(self) -> int | None:
        return self._text[self._at] if self._at < len(self._text) else None

    def next(self) -> int | None:
        byte = self.peek()
        self._at += 1
        return byte

    def rest_of_line(self) -> bytes:
        end = self._text.find(b"\n", self._at)
        line = self._text[self._at : end]
        self._at = end + 1
        return line


def _entries(source: _Source) -> Iterator[Entry]:
    section: tuple[bytes, bytes] | None = None
    while (byte := source.peek()) is not None:
        if byte in b" \t\n\r":
            source.next()
        elif byte in b"#;":
            source.rest_of_line()
        elif byte == ord("["):
            source.next()
            section = _section(source)
            if section is None:
                return
        else:
            entry = _variable(source, section)
            if entry is None:
                return
            yield entry


def _section(source: _Source) -> tuple[bytes, bytes] | None:
    """Read `name]`, `name.sub]` or `name "sub"]`; None for a fault."""
    name = bytearray()
    while (byte := source.next()) is not None:
        if byte == ord("]"):
            section, _, subsection = bytes(name).lower().partition(b".")
            return section, subsection
        if byte in b" \t":
            return _quoted_section(source, bytes(name).lower())
        if not (chr(byte).isalnum() and byte < 128) and byte not in b"-.":
            return None
        name.append(byte)
    return None


def _quoted_section(source: _Source, section: bytes) -> tuple[bytes, bytes] | None:
    while (byte := source.next()) is not None and byte in b" \t":
        pass
    if byte != ord('"'):
        return None
    name = bytearray()
    while (byte := source.next()) is not None and byte != ord("\n"):
        if byte == ord('"'):
            return (section, bytes(name)) if source.next() == ord("]") else None
        if byte == ord("\\"):
            byte = source.next()
            if byte is None or byte == ord("\n"):
                return None
        name.append(byte)
    return None


def _variable(source: _Source, section: tuple[bytes, bytes] | None) -> Entry | None:
    key = bytearray()
    while (byte := source.peek()) is not None and byte < 128 and (chr(byte).isalnum() or byte == ord("-")):
        key.append(byte)
        source.next()
    while source.peek() in (32, 9):
        source.next()
    if section is None or not key[:1].isalpha():
        return None
    byte = source.next()
    if byte == ord("\n"):
        return Entry(*section, bytes(key).lower(), None)
    value = _value(source) if byte == ord("=") else None
    return None if value is None else Entry(*section, bytes(key).lower(), value)


def _value(source: _Source) -> bytes | None:
    """Read a value to the end of its line: quotes, escapes, continued lines, comments; None for a fault."""
    value = bytearray()
    kept = 0
    quoted = False
    while (byte := source.next()) is not None:
        if byte == ord("\n"):
            return None if quoted else bytes(value[:kept])
        if not quoted and byte in _SPACE:
            if value:
                value.append(byte)
            continue
        if not quoted and byte in b"#;":
            source.rest_of_line()
            return bytes(value[:kept])
        if byte == ord('"'):
            quoted = not quoted
        elif byte != ord("\\"):
            value.append(byte)
        else:
            byte = source.next()
            if byte == ord("\n"):
                continue
            if byte not in _ESCAPES:
                return None
            value.append(_ESCAPES[byte])
        kept = len(value)
    return None


# ------------------------------------------------------------------------------------------------------------- meaning


def expand(path: bytes, home: bytes | None) -> bytes | None:
    """Return a path of a configuration with `~` and `~user` expanded; None where there is no such home."""
    if not path.startswith(b"~"):
        return path
    user, slash, rest = path[1:].partition(b"/")
    if not user:
        return None if home is None else home + slash + rest
    try:
        return os.fsencode(pwd.getpwnam(os.fsdecode(user)).pw_dir) + slash + rest
    except KeyError:
        return None


def last(entries: Sequence[Entry], section: bytes, key: bytes) -> Entry | None:
    """Return the entry that counts for a variable of a section without a name of its own."""
    for entry in reversed(entries):
        if (entry.section, entry.subsection, entry.key) == (section, b"", key):
            return entry
    return None


def is_true(value: bytes | None) -> bool:
    """Read a value as git reads a boolean; a variable without `=` is true."""
    return value is None or value.lower() in (b"true", b"yes", b"on") or (bool(value.strip(b"0 ")) and value.isdigit())


def collect(files: list[File], read: Read, facts: Callable[[], Facts], home: bytes | None) -> list[Entry]:
    """Return the variables of these files, weakest first, each include in the place where it stands.

    `facts` is asked only where a condition needs it.
    """
    includes = _Includes(read, facts, home)
    found = includes.all(files)
    if includes.asks_for_remotes:
        includes.remotes = [e.value or b"" for e in found if (e.section, e.key) == (b"remote", b"url")][:MAX_REMOTES]
        found = includes.all(files)
    return found


class _Includes:
    """Follows `include.path` and `includeIf.<condition>.path`."""

    def __init__(self, read: Read, facts: Callable[[], Facts], home: bytes | None) -> None:
        self._read = read
        self._facts = functools.cache(facts)
        self._home = home
        self.remotes: list[bytes] = []
        """The addresses that `hasconfig:remote.*.url:` asks about; git takes none from files that it includes so."""
        self.asks_for_remotes = False
        self._includes_left = 0

    def all(self, files: list[File]) -> list[Entry]:
        """Return the entries of these files and of those that they include."""
        self._includes_left = MAX_INCLUDES
        return list(itertools.islice((entry for file in files for entry in self._of(file, 0)), MAX_ENTRIES))

    def _of(self, file: File, depth: int) -> Iterator[Entry]:
        for found in self._read(file.path, file.of_repository and depth > 0):
            entry = found._replace(confined=file.of_repository)
            yield entry
            if entry.section not in (b"include", b"includeif") or entry.key != b"path" or not entry.value:
                continue
            if depth == MAX_DEPTH or self._includes_left == 0:
                continue
            self._includes_left -= 1
            base = os.path.dirname(file.path)
            if entry.section == b"include" or self._holds(entry.subsection, base):
                path = expand(entry.value, self._home)
                if path is not None:
                    yield from self._of(File(os.path.join(base, path), file.of_repository), depth + 1)

    def _holds(self, condition: bytes, base: bytes) -> bool:
        kind, _, pattern = condition.partition(b":")
        if kind in (b"gitdir", b"gitdir/i"):
            return self._in_directory(pattern, base, fold=kind == b"gitdir/i")
        if kind == b"onbranch":
            return bool(self._facts().branch) and _fits(pattern, self._facts().branch)
        if kind == b"hasconfig" and pattern.startswith(b"remote.*.url:"):
            self.asks_for_remotes = True
            return any(_fits(pattern.removeprefix(b"remote.*.url:"), url) for url in self.remotes)
        return False

    def _in_directory(self, pattern: bytes, base: bytes, *, fold: bool) -> bool:
        if pattern.startswith(b"./"):
            pattern = os.path.realpath(os.path.join(self._facts().root, base)) + pattern[1:]
        else:
            pattern = expand(pattern, self._home) or b""
        if not pattern:
            return False
        if not pattern.startswith(b"/"):
            pattern = b"**/" + pattern
        directories = self._facts().directories
        return any(_fits(pattern.lower(), d.lower()) if fold else _fits(pattern, d) for d in directories)


def _fits(pattern: bytes, text: bytes) -> bool:
    """Match a pattern of a condition; it is one of an ignore file, but for its ends and for doubled slashes."""
    if len(pattern) > MAX_TEXT or len(text) > MAX_TEXT:
        return False
    if pattern.endswith(b"/"):
        pattern += b"**"
    pattern, text = (part.removeprefix(b"/").replace(b"//", b"/\x01/") for part in (pattern, text))
    rule = b"/" + (pattern[:-1] + b"\\ " if pattern.endswith(b" ") else pattern)
    directory, _, name = text.rpartition(b"/")
    return b"\n" not in pattern and BaseRules().push(b"", rule).ignored(directory, name, False)
