"""What differs between git's index and the files of a tree, told by stat alone, and what the index does not hold."""

from toolserver._fast.ignore import BaseRules

CHANGED: int
"""The stat is not the index's, or too young to be trusted: the content may differ."""
MODE: int
"""The file may be executed and was not, or the other way round; its content may differ, too."""
TYPE: int
"""A link where the index has a file, or a file where it has a link."""
DELETED: int
UNMERGED: int
"""One stage of a conflict; nothing is said of the file."""
SUBMODULE: int
"""The directory of a submodule is there; nothing is said of what is in it."""
INTENDED: int
"""The entry was made by `git add --intent-to-add`, and something is at its place."""
UNTRACKED: int
REPOSITORY: int
"""A directory with a repository of its own, of which nothing is in the index; its path ends in a slash."""

class Index:
    """The entries of an index file with object names of 20 bytes, in its order.

    Raises ValueError for one that is broken. A split index has its own entries only.
    """

    def __init__(self, data: bytes) -> None: ...
    def __len__(self) -> int: ...
    def entry(self, i: int) -> tuple[bytes, int, bytes, int, int]:
        """Return path, mode, object name, size (of the file, as far as 32 bits hold it) and stage of an entry."""

    def intended(self, i: int) -> bool:
        """Whether an entry was made by `git add --intent-to-add`: it has no content yet."""

    def find(self, path: bytes) -> int:
        """Return the place of the first entry whose path is not less than this one."""

    def extensions(self) -> bytes:
        """Return what follows the entries, without the checksum."""

    def compare(
        self,
        root: int,
        rules: BaseRules,
        *,
        racy: int,
        leave_agents: bool = False,
        trust_mode: bool = True,
        threads: int = 1,
    ) -> list[tuple[int, int, bytes | None]]:
        """Compare with the tree below the descriptor `root`; return (verdict, place of the entry, None) of what
        differs, and (UNTRACKED or REPOSITORY, -1, path) of what is not in the index and not ignored, in no order.

        `racy` is the index's mtime in nanoseconds: entries as young as that are CHANGED. `leave_agents` leaves out
        `.agents` at the top. `.git` and `.kd` are never among what is not in the index. Raises OSError where memory or
        descriptors run out; a directory that cannot be read counts as unchanged.
        """
