"""Fills a temporary file: the content, and the mode, owner and extended attributes of the file it replaces."""

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


def copy_metadata(fd: int, file: File, umask: int) -> None:
    """Copy mode, owner and attributes to a temporary file. Where the owner cannot be set, set-id bits are dropped."""
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
    """Copy the ACL, the SELinux label and the user attributes of a file, as far as permitted.

    Capabilities and integrity marks describe the old content and are not copied; a write in place drops them too.
    """
    try:
        names = os.listxattr(source, follow_symlinks=False)
    except OSError:
        return  # the file system has no attributes, or they may not be listed
    for name in names:
        if name.startswith("user.") or name in ("system.posix_acl_access", "security.selinux"):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name, follow_symlinks=False))
