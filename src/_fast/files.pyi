"""Reading a file from its descriptor: at once from the page cache, or whole without the GIL."""

def keep_large_buffers_apart() -> bool:
    """Have buffers of 4 MiB and more mapped alone, for the whole process, so that their memory goes back when freed.

    By itself glibc raises that bound to 32 MiB with the first large buffer that is freed; the later ones come from
    heaps, of which only the end goes back. False: the C library knows no such bound.
    """

def in_memory(fd: int) -> bool:
    """Whether a descriptor's file system is tmpfs or ramfs, which wait for no disk."""

def read_cached(fd: int, size: int) -> bytes | None:
    """Return the `size` bytes of a file if they are its whole and reading them waits for nothing.

    None: not all of it is in the page cache, its size is another one by now, reading failed, or its file system cannot
    tell (preadv2 with RWF_NOWAIT; tmpfs and ramfs always can). Then read it where waiting is allowed.
    """

def read_whole(fd: int, most: int, expected: int) -> bytes:
    """Return a file from its begin to its end, at most `most` bytes, waiting without the GIL.

    `expected` is its size as last seen; it may have grown or shrunk since. Raises OSError.
    """
