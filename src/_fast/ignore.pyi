"""Git's ignore rules.

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
