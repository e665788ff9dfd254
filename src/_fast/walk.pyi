"""One walk of a tree, shared by several threads: directories and runs of files in path order."""

from toolserver._fast.git_index import Tracked
from toolserver._fast.globs import Glob
from toolserver._fast.ignore import BaseRules

class Moved(Exception):
    """A directory was moved while the walk was below it: what was found may lie outside of the tree."""

class Walk:
    """A walk; searches and listings are made of it.

    * `root`: descriptor of the tree's root, which is duplicated; `cwd`: the directory to walk, relative to it, without
      links. Ignore files from the root down to `cwd` are read here.
    * `rules`, `tracked`: what git says of the tree; `glob`: which files count, relative to `cwd`.
    * `file`: only this name in `cwd`, no rule and no glob holds.
    * `leave_agents`: `.agents` at the root is left out. `width`: how many workers there are.
    * `from_root`: open every directory by its path from the root. This costs the square of the depth, but never follows
      a directory that is moved out of the tree; without it, a walk that has followed one raises Moved.
    * `run`: files of one directory that are one worker's piece of work.
    """

    width: int
    def __init__(
        self,
        root: int,
        cwd: bytes,
        rules: BaseRules,
        tracked: Tracked | None = None,
        glob: Glob | None = None,
        *,
        file: bytes | None = None,
        leave_agents: bool = False,
        from_root: bool = False,
        width: int = 1,
        run: int = 256,
    ) -> None: ...
    def stop(self) -> None:
        """Have all workers end soon; from any thread, at any time."""
    @property
    def stopped(self) -> bool:
        """Whether it was stopped, or ran out of memory."""
    @property
    def opened(self) -> tuple[int, int]:
        """How often the kernel was asked to open a directory, and the bytes of path that it was given for that."""
