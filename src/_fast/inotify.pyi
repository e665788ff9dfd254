"""What the kernel tells of changes: inotify's events as plain tuples, and when an entry was made."""

MODIFY: int
ATTRIB: int
CLOSE_WRITE: int
MOVED_FROM: int
MOVED_TO: int
CREATE: int
DELETE: int
DELETE_SELF: int
MOVE_SELF: int
UNMOUNT: int
OVERFLOW: int
IGNORED: int
ONLYDIR: int
EXCL_UNLINK: int
ISDIR: int

class Inotify:
    """One inotify instance, non-blocking. Raises OSError EMFILE where the user has no instance left."""

    def __init__(self) -> None: ...
    def fileno(self) -> int:
        """Return the descriptor to wait on until it is readable; -1 once closed."""

    def close(self) -> None:
        """Close it and drop all watches; again is no error."""

    def add(self, directory: int, mask: int) -> int:
        """Watch the open file or directory `directory` (O_PATH will do) and return the watch's number.

        Raises OSError: ENOSPC where the user's watches are used up, ENOENT, ENOTDIR (with ONLYDIR).
        """

    def remove(self, wd: int) -> None:
        """Drop a watch; one that is gone already is no error."""

    def read(self) -> list[tuple[int, int, bytes]]:
        """Return waiting events as (watch, mask, name), at most 16 KiB of them; empty when none wait."""

def birth_ns(directory: int, name: bytes) -> int:
    """Return when an entry of an open directory was made, in nanoseconds; a link is not followed.

    The latest time there is where the file system does not tell, or the entry is gone.
    """
