"""Fills a temp: its content, and the mode, owner and attributes that it takes over from its target."""

from __future__ import annotations

import contextlib
import os
import stat

from toolserver.writing.batch import NEW_MODE, File


def write_all(fd: int, content: bytes | memoryview) -> None:
    """Write all of a content."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def dress(fd: int, file: File, umask: int) -> None:
    """Give a temp the mode and owner of its target; without the owner it gets no set-id bits either."""
    kept = file.kept
    owner = file.owner or (None if kept is None else (kept.st_uid, kept.st_gid))
    if file.mode_given is not None:
        mode = file.mode_given & ~umask if file.masked else file.mode_given
    else:
        mode = NEW_MODE & ~umask if kept is None else stat.S_IMODE(kept.st_mode)
    mine = os.fstat(fd)
    if owner is not None and owner != (mine.st_uid, mine.st_gid):
        for wanted in (owner, (-1, owner[1])):
            try:
                os.fchown(fd, *wanted)
                break
            except PermissionError:
                mode &= ~(stat.S_ISUID | stat.S_ISGID)
    os.fchmod(fd, mode)
    if kept is not None:
        copy_attributes(b"/proc/self/fd/%d/%s" % (file.folder.fd, file.name), fd)


def copy_attributes(source: bytes, target: int) -> None:
    """Copy the access list, the label and the user's own attributes of a file, as far as permitted.

    Capabilities and integrity marks belong to the old content and stay behind, as a write in place drops them too.
    """
    try:
        names = os.listxattr(source, follow_symlinks=False)
    except OSError:
        return  # the file system has none, or tells nobody
    for name in names:
        if name.startswith("user.") or name in ("system.posix_acl_access", "security.selinux"):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name, follow_symlinks=False))
