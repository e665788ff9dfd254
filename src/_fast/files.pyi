"""Reading a file from its descriptor: at once from the page cache, or whole without the GIL."""

def in_memory(fd: int) -> bool:
    """Whether a descriptor's file system is tmpfs or ramfs, which wait for no disk."""

def read_cached(fd: int, size: int) -> bytes | None:
    """Return a file of `size` bytes if it can be read without waiting for the disk.

    None: not all of it is in the page cache, its size has changed, reading failed, or its file system does not support
    preadv2 with RWF_NOWAIT (tmpfs and ramfs are read without it). Then read it in a thread.
    """

def read_whole(fd: int, most: int, expected: int) -> bytes:
    """Return a file from its start, at most `most` bytes, blocking without the GIL.

    `expected` is its size as last seen; it may have grown or shrunk since. Raises OSError.
    """
