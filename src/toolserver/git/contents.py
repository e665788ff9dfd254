"""What a path holds in HEAD, in the index and in the work tree, as git would store it."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass

import pygit2

from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver.git.repository import Repository

LARGEST = 64 << 20
"""Bytes of a content that is compared; a larger one counts as binary."""
BINARY_HEAD = 8000
"""Bytes in which git looks for a NUL."""
LINK = 0o120000
GITLINK = 0o160000
EXECUTABLE = 0o100755
REGULAR = 0o100644


@dataclass(frozen=True, slots=True)
class Content:
    """A content with its mode; `data` is None where it is too large to be compared."""

    mode: int
    data: bytes | None
    binary: bool
    oid: str
    """The object's name in hexadecimal digits; zeros where it is not known without work."""
    proof: tuple[object, ...]
    """Equal for equal contents, as far as is known without reading them."""


NO_OID = "0" * 40


def of_blob(repository: Repository, path: bytes, oid: pygit2.Oid, mode: int) -> Content:
    """Return what an object of the repository holds, or the commit that a submodule stands for."""
    if mode == GITLINK:
        data = b"Subproject commit %b\n" % str(oid).encode()
        return Content(mode, data, False, str(oid), ("blob", oid))
    held = repository.blob(oid, LARGEST)
    if held is None:
        return Content(mode, None, True, str(oid), ("blob", oid))
    return Content(mode, held, _is_binary(repository, path, held, mode), str(oid), ("blob", oid))


def of_work_tree(repository: Repository, root: int, path: bytes, before: pygit2.Oid | None) -> Content | None:
    """Return what stands at a path below the descriptor `root`, links not followed; None: nothing that git can hold.

    `before` is the blob that the index has there. Raises OSError where descriptors or memory run out.
    """
    above, _, name = path.rpartition(b"/")
    try:
        directory = open_beneath(root, above, os.O_PATH | os.O_DIRECTORY, resolve=NO_SYMLINKS)
    except OSError as error:
        _raise_shortage(error)
        return None
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=directory)
            return Content(LINK, target, False, NO_OID, ("link", target))
        if stat.S_ISDIR(status.st_mode):
            return _of_submodule(repository, path)
        if not stat.S_ISREG(status.st_mode):
            return None
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        _raise_shortage(error)
        return None
    finally:
        os.close(directory)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        mode = EXECUTABLE if status.st_mode & 0o100 else REGULAR
        proof = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if not stat.S_ISREG(status.st_mode):
            return None
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        return Content(mode, None, True, NO_OID, proof)
    data = repository.stored(path, data, before)
    return Content(mode, data, _is_binary(repository, path, data, mode), NO_OID, proof)


def _raise_shortage(error: OSError) -> None:
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        raise error


def _of_submodule(repository: Repository, path: bytes) -> Content | None:
    inner = Repository.open(os.path.join(repository.root, path))
    if inner is None or inner.head is None:
        return None
    oid = inner.head.id
    return Content(GITLINK, b"Subproject commit %b\n" % str(oid).encode(), False, str(oid), ("blob", oid))


def _is_binary(repository: Repository, path: bytes, data: bytes, mode: int) -> bool:
    if mode == LINK:
        return False
    attribute = repository.attribute(path, "diff")
    if attribute is False:
        return True
    return attribute is None and b"\0" in data[:BINARY_HEAD]
