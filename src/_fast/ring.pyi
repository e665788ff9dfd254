"""A byte ring with absolute offsets: the newest bytes of a stream, filled straight from a descriptor."""

RING_SIZE: int
"""Bytes that are kept of each output stream of a command, the newest ones: the size of its ring."""

class Ring:
    """Keeps the last `limit` bytes that were put into it; every byte has its offset from the first one ever.

    Memory is taken on demand, up to the limit and 256 KiB that a read needs. Any number of readers slice by offset.
    One thread at a time fills it (RuntimeError otherwise); others may slice meanwhile.
    """

    def __init__(self, limit: int) -> None: ...
    @property
    def limit(self) -> int: ...
    @property
    def start(self) -> int:
        """The offset of the oldest byte that is held."""
    @property
    def total(self) -> int:
        """How many bytes were ever put in: the offset after the newest."""
    @property
    def allocated(self) -> int:
        """Bytes of memory taken."""
    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Put bytes in."""
    def read_from(self, fd: int, most: int = 262144, follow_ns: int = 0) -> int:
        """Read once from a descriptor, at most 256 KiB; return how many bytes came.

        With `follow_ns`, reads on while more arrives, at most `most` bytes and for about so many nanoseconds: the
        writer then never waits, and its bytes are read while the caches still hold them. Returns 0 at the end (also of
        a terminal without users), -1 when nothing is there yet; the descriptor must not block. Raises OSError else.
        """
    def slice(self, since: int, until: int) -> bytes:
        """Return what is held of the bytes from `since` to before `until`."""
    def boundary(self, until: int) -> int:
        """Return the last offset up to `until` (or `total`) with no unfinished UTF-8 character before it.

        That is at most 3 bytes earlier. Ill-formed bytes are not unfinished: they belong to what is before.
        """
    def after_lines(self, lines: int) -> int:
        """Return the offset after the first `lines` lines held, their ends included; `total` if there are fewer."""
    def last_lines(self, lines: int) -> int:
        """Return the offset where the last `lines` lines begin; `start` if no more are held. A last LF ends a line."""
    def shrink(self) -> None:
        """Give back memory that nothing was put into."""
    def release(self) -> None:
        """Give back all memory; every byte counts as dropped."""
