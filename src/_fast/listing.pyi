"""The newest files of a walk; the answer as JSON."""

from toolserver._fast.git_index import Tracked
from toolserver._fast.globs import Glob
from toolserver._fast.ignore import BaseRules
from toolserver._fast.walk import Walk

class Listing(Walk):
    """A listing under way of at most `most` files, the newest; see `Walk` for what it walks."""

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
        most: int = 5000,
    ) -> None: ...
    def work(self, index: int, seconds: float) -> bool:
        """Work as worker `index`, from 0, for about `seconds`; answer whether there is more to do for it.

        Each worker is driven by one thread at a time. Raises MemoryError; the listing is then over.
        """
    def answer(self) -> tuple[bytes, bool]:
        """Return the paths as a JSON list, newest first, equally old ones in path order; and whether there are more.

        Only after every worker has answered that there is no more to do.
        """
