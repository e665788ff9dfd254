"""Which paths git's index holds.

Paths are bytes, relative to the tree's root, `/`-separated, without a slash at either end; the root itself is empty.
A walk without the GIL uses the pxd; these classes are for Python.
"""

class Tracked:
    """The paths of an index: of files and links, unmerged and intent-to-add ones too, each once, sorted.

    Reads versions 2, 3 and 4, with object names of `hash_size` bytes (20 or 32). Of a split index `shared` is the file
    that `shared_index` names. Submodules and folded directories (sparse index) are no files and left out. Without an
    index nothing is tracked. Raises ValueError for one that is broken; the checksum is not checked, as in git.
    """

    def __init__(self, index: bytes | None = None, shared: bytes | None = None, hash_size: int = 20) -> None: ...
    def __len__(self) -> int: ...
    def paths(self) -> list[bytes]: ...
    def file(self, directory: bytes, name: bytes) -> bool:
        """Whether that very path is in the index."""

    def below(self, directory: bytes, name: bytes) -> bool:
        """Whether something below that directory is in the index; an empty name means `directory` itself."""

def shared_index(index: bytes, hash_size: int = 20) -> bytes | None:
    """Return the name, in hexadecimal digits, of what a split index builds on; None for a whole index.

    All zeros: split, but nothing is shared yet. Raises ValueError for a broken index.
    """
