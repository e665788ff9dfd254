"""Git's ignore rules, and which paths an index holds.

Paths are bytes, relative to the tree's root, `/`-separated, without a slash at either end; the root itself is empty.
A walk without the GIL uses the pxd; these objects are the same thing for everyone else.
"""

class Rules:
    """The ignore rules that hold in one directory; immutable, any number of threads may ask."""

    def push(self, directory: bytes, gitignore: bytes | None = None, dotignore: bytes | None = None) -> Rules:
        """Return the rules of a directory below: these, and those of its own `.gitignore` and `.ignore` (contents)."""

    def ignored(self, directory: bytes, name: bytes, is_dir: bool) -> bool:
        """Whether the last rule that fits an entry of `directory` ignores it (specification, section 5, for the rank).

        `directory` is that of these rules or one below it. What lies below an ignored directory is not to be asked.
        """

class BaseRules(Rules):
    """The weakest rules, of a tree's top: contents of the excludes file and of info/exclude, None = no such file."""

    def __init__(self, excludes: bytes | None = None, info_exclude: bytes | None = None) -> None: ...

def decide(gitignore: bytes, dotignore: bytes, paths: bytes) -> bytes:
    """Judge paths, one a line and a directory's with a slash behind it, by the two files of the top: a `1` or `0` each.

    Each path is judged alone, whatever holds for the directories above it. Made for a fuzzer.
    """

class Tracked:
    """The paths of an index: of files and links, unmerged and intent-to-add ones too, each once, sorted.

    Reads versions 2, 3 and 4, with object names of `hash_size` bytes (20 or 32). Of a split index `shared` is the file
    that `shared_index` names. Submodules and folded directories (sparse index) are no files and left out. Without an
    index nothing is tracked. Raises ValueError for one that is broken; the checksum is not looked at, as in git.
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
