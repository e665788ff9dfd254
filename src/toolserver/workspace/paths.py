"""Confined paths: from the text of a call to a descriptor that provably lies inside a tree."""

from __future__ import annotations

import base64
import binascii
import errno
import os
import stat
from dataclasses import dataclass

from toolserver._fast.paths import NO_SYMLINKS, collapse, open_beneath
from toolserver.errors import BadArgument, NotThere, OutsideTree, ToolError

MAX_NAME = 255
"""Bytes of one name, Linux's NAME_MAX."""
MAX_PATH = 4096
"""Bytes of a path as given, Linux's PATH_MAX."""
SWAPS = 8
"""How often a path is resolved again when links change between resolving and opening."""


@dataclass(frozen=True, slots=True)
class Place:
    """A checked path of a call: `given` as it was written, `path` collapsed by name and relative to the tree's root."""

    given: str
    path: bytes
    names_directory: bool = False
    """The path as given ends in `/` or `/.`, so that no file can be meant."""

    def shown(self) -> dict[str, str]:
        """Return what goes out for this place: `path`, and `path_b64` where the name is not UTF-8."""
        return shown(self.path)


def shown(path: bytes) -> dict[str, str]:
    """Return `{path}` of a root-relative path, with `path_b64` beside a name that is not UTF-8; the root is `.`."""
    try:
        return {"path": path.decode() or "."}
    except UnicodeDecodeError:
        return {"path": path.decode(errors="replace"), "path_b64": base64.b64encode(path).decode()}


def decode_base64(text: str, field: str) -> bytes:
    """Decode RFC 4648's standard alphabet, padded, the unused bits zero; else raise BadArgument naming `field`."""
    try:
        raw = text.encode("ascii")
        data = base64.b64decode(raw, validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise BadArgument(f"{field}: expected a string of standard, padded base64") from None
    last = raw[-4:]
    if base64.b64encode(base64.b64decode(last)) != last:
        raise BadArgument(f"{field}: expected a string of standard base64, the unused bits of its last character zero")
    return data


class Tree:
    """A working directory: its name, its absolute root and a descriptor that every path is opened beneath.

    Use it as a context manager for the time of one call; `fd` is closed at its end, unless it belongs to `owner`.
    """

    __slots__ = ("_owner", "fd", "name", "root", "spellings")

    def __init__(
        self, name: str, root: bytes, fd: int, spellings: tuple[bytes, ...], owner: object | None = None
    ) -> None:
        self.name = name
        self.root = root
        """Absolute, all links resolved."""
        self.fd = fd
        self.spellings = spellings
        """The absolute paths that mean the root, the resolved one first."""
        self._owner = owner

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        if self._owner is None:
            os.close(self.fd)

    # ------------------------------------------------------------------------------------------------ text to place

    def place(self, given: str | bytes, field: str = "path") -> Place:
        """Check a path of a call and resolve it by name.

        Raises BadArgument for an empty, over-long or NUL-holding path and for an absolute one outside this tree, and
        OutsideTree where `..` leads out.
        """
        try:
            raw = given.encode() if isinstance(given, str) else given
        except UnicodeEncodeError:
            raise BadArgument(f"{field}: expected a string without lone surrogates") from None
        text = raw.decode(errors="replace")
        if not raw:
            raise BadArgument(f"{field}: expected a path, not an empty string")
        if b"\0" in raw:
            raise BadArgument(f"{field}: a path holds no NUL byte")
        if len(raw) > MAX_PATH:
            raise BadArgument(f"{field}: a path has at most {MAX_PATH} bytes, this one has {len(raw)}")
        if len(raw) > MAX_NAME and max(map(len, raw.split(b"/"))) > MAX_NAME:
            raise BadArgument(f"{field}: a name in a path has at most {MAX_NAME} bytes")
        inner = self._below(raw) if raw.startswith(b"/") else raw
        if inner is None:
            root = self.root.decode(errors="replace")
            raise BadArgument(f"{field}: {text} is an absolute path outside the working directory {root}")
        path = collapse(inner)
        if path is None:
            raise self.outside(text)
        return Place(text, path, raw.endswith((b"/", b"/.")))

    def _below(self, raw: bytes) -> bytes | None:
        """Return what follows the root in an absolute path, None when it is elsewhere."""
        whole = b"/" + (collapse(raw) or b"")
        for root in self.spellings:
            if whole == root:
                return b"."
            if whole.startswith(root if root.endswith(b"/") else root + b"/"):
                return whole[len(root) :].lstrip(b"/")
        return None

    @staticmethod
    def outside(given: str) -> OutsideTree:
        return OutsideTree(f"{given} lies outside the working directory")

    # ------------------------------------------------------------------------------------------- place to descriptor

    def open(self, place: Place, flags: int, mode: int = 0) -> int:
        """Open a place, links followed as long as they stay inside; O_CLOEXEC is added. The caller closes it.

        Raises OutsideTree where a link leads out, and a ToolError with the path for any error of the system.
        Opening never waits on a FIFO when `flags` hold O_NONBLOCK; give it unless the kind is known.
        """
        try:
            return self._open(place, flags, mode)
        except OSError as error:
            raise failure(place.given, error) from error

    def _open(self, place: Place, flags: int, mode: int) -> int:
        try:
            return open_beneath(self.fd, place.path, flags, mode)
        except OSError as error:
            # EXDEV: an absolute link, or one that leaves and comes back; both may still end inside
            if error.errno not in (errno.EXDEV, errno.ENOSYS):
                raise
        for _ in range(SWAPS):
            path = self.real(place)
            try:
                return self.open_real(path, flags, mode)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def open_real(self, path: bytes, flags: int, mode: int = 0) -> int:
        """Open a link-free path as `real` returns it. Raises OSError ELOOP where a link is on the way by now."""
        try:
            return open_beneath(self.fd, path, flags, mode, NO_SYMLINKS)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
        return self._open_stepwise(path, flags, mode)

    def _open_stepwise(self, path: bytes, flags: int, mode: int) -> int:
        """Do what RESOLVE_NO_SYMLINKS does, a component at a time, for kernels before 5.6."""
        at = os.dup(self.fd)
        try:
            *above, last = path.split(b"/") if path else [b"."]
            for name in above:
                step = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
                os.close(at)
                at = step
            return os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=at)
        finally:
            os.close(at)

    def real(self, place: Place) -> bytes:
        """Return the root-relative path of a place with all links of its longest existing prefix resolved.

        Raises OutsideTree when it ends outside, OSError ELOOP for a loop. Use the path with `open_real`
        alone: what is there can be replaced meanwhile, which `open_real` notices.
        """
        try:
            os.close(open_beneath(self.fd, place.path, os.O_PATH, resolve=NO_SYMLINKS))
            return place.path
        except OSError:
            pass  # a link is on the way, or something is missing
        whole = os.path.join(self.root, place.path)
        try:
            found = os.path.realpath(whole, strict=True)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise
            found = os.path.realpath(whole)
        return self._inside(found, place)

    def _inside(self, found: bytes, place: Place) -> bytes:
        """Return an absolute link-free path relative to the root. Raises OutsideTree where it lies elsewhere."""
        if found == self.root:
            return b""
        prefix = self.root if self.root.endswith(b"/") else self.root + b"/"
        if not found.startswith(prefix):
            raise self.outside(place.given)
        return found[len(prefix) :]

    def open_regular(self, place: Place, flags: int = os.O_RDONLY) -> tuple[int, os.stat_result]:
        """Open a regular file and return it with its stat; a directory or a special file is a clear ToolError."""
        fd = self.open(place, flags | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{place.given} is {kind(status.st_mode)}, not a regular file")
            if place.names_directory:
                raise not_a_directory(place.given)
        except BaseException:
            os.close(fd)
            raise
        return fd, status

    def directory(self, given: str | bytes | None, field: str = "cwd") -> tuple[int, bytes]:
        """Open the `cwd` of a call (None: the root); return the descriptor and its link-free root-relative path."""
        if given is None:
            return os.dup(self.fd), b""
        place = self.place(given, field)
        fd, path = self.locate(place, os.O_PATH)
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                raise no_directory(place.given)
        except BaseException:
            os.close(fd)
            raise
        return fd, path

    def directory_path(self, given: str | bytes | None, field: str = "cwd") -> bytes:
        """Return the link-free root-relative path of the `cwd` of a call (None: the root), which is a directory."""
        if given is None:
            return b""
        fd, path = self.directory(given, field)
        os.close(fd)
        return path

    def directory_or_file(self, given: str | bytes | None, field: str = "cwd") -> tuple[bytes, bytes | None]:
        """Return where a search begins: the link-free root-relative path of a directory, and the name of a file in it.

        The name is None where `given` is a directory (None: the root); else `given` must be a regular file.
        """
        if given is None:
            return b"", None
        place = self.place(given, field)
        fd, path = self.locate(place, os.O_PATH)
        try:
            mode = os.fstat(fd).st_mode
        finally:
            os.close(fd)
        if stat.S_ISDIR(mode):
            return path, None
        if not stat.S_ISREG(mode):
            raise no_directory(place.given)
        above, _, name = path.rpartition(b"/")
        return above, name

    def locate(self, place: Place, flags: int) -> tuple[int, bytes]:
        """Open a place as `open` does; return the descriptor and its link-free root-relative path."""
        try:
            return self.open_real(place.path, flags), place.path
        except OSError as error:
            if error.errno != errno.ELOOP:  # no link is on the way
                raise failure(place.given, error) from error
        fd = self.open(place, flags)
        try:
            return fd, self.path_of(fd, place)
        except BaseException:
            os.close(fd)
            raise

    def path_of(self, fd: int, place: Place) -> bytes:
        """Return where an open descriptor lies below the root, as the kernel names it. ToolError: it cannot be told."""
        try:
            found = os.readlink(b"/proc/self/fd/%d" % fd)
        except OSError as error:
            raise failure(place.given, error) from error
        return self._inside(found, place)


def kind(mode: int) -> str:
    """Name the kind of a file in words."""
    names = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
        stat.S_IFLNK: "a symlink",
    }
    return names.get(stat.S_IFMT(mode), "a file of an unknown kind")


def no_directory(given: str) -> ToolError:
    """Return the error for a `cwd` that is anything but a directory, a special file too."""
    return ToolError(f"{given} is a file, not a directory")


def not_a_directory(given: str) -> ToolError:
    """Return the error for a path that names a directory, given where a file is meant."""
    return ToolError(f"{given}: a path that ends in / names a directory, not a file")


_SENTENCES = {
    errno.ENOENT: "no such file or directory",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EISDIR: "is a directory",
    errno.EACCES: "permission denied",
    errno.EPERM: "operation not permitted",
    errno.ELOOP: "too many levels of symbolic links",
    errno.ENXIO: "is a special file that cannot be opened",
    errno.ENOSPC: "no space left on device",
    errno.EROFS: "the file system is read-only",
}


def failure(given: str, error: OSError) -> ToolError:
    """Turn an error of the system into the sentence that a caller sees."""
    if error.errno == errno.EXDEV:
        return Tree.outside(given)
    if error.errno == errno.ENAMETOOLONG:
        return BadArgument(f"{given}: the path is too long")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotThere(f"{given}: {_SENTENCES[error.errno]}")
    text = _SENTENCES.get(error.errno or 0) or (error.strerror or "input/output error").lower()
    return ToolError(f"{given}: {text}")
