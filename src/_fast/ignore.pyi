"""Git's ignore rules.

Paths are bytes, relative to the tree's root, `/`-separated, without a slash at either end; the root itself is empty.
A walk without the GIL uses the pxd; these classes are for Python.
"""

IGNORE_FILES: tuple[bytes, ...]
"""The names of files of ignore rules, weakest first."""

class Rules:
    """The ignore rules that hold in one directory; immutable, any number of threads may ask."""

    def push(self, directory: bytes, *contents: bytes | None) -> Rules:
        """Return the rules of a directory below: these, and those of its ignore files.

        `contents` are theirs in the order of IGNORE_FILES, None for one that is not there.
        """

    def enter(self, directory: bytes, fd: int, *, git_only: bool = False) -> Rules:
        """Return the rules of the directory below that is open as `fd`: these, and those of its ignore files, or of
        its `.gitignore` alone.

        Only regular files of at most 100 MiB hold rules. Raises OSError or MemoryError where the server lacks a
        descriptor or memory: without the file's rules too much would be shown.
        """

    def ignored(self, directory: bytes, name: bytes, is_dir: bool) -> bool:
        """Whether the last rule that fits an entry of `directory` ignores it (specification, section 5, for the rank).

        `directory` is that of these rules or one below it. Do not ask about what lies below an ignored directory.
        """

class BaseRules(Rules):
    """The weakest rules, of a tree's top: contents of the excludes file and of info/exclude, None = no such file."""

    def __init__(self, excludes: bytes | None = None, info_exclude: bytes | None = None) -> None: ...

def decide(gitignore: bytes, dotignore: bytes, paths: bytes) -> bytes:
    """Judge paths, one a line and a directory's with a slash after it, by the two files of the top: a `1` or `0` each.

    Each path is judged alone, whatever holds for the directories above it. Made for a fuzzer.
    """
