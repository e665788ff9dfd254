"""The names in a workspace that mean something to the server.

The kernels have the same in `_fast/names.h`; a unit test compares the two.
"""

from toolserver._fast import ignore

MAIN = "main"
"""The tree that is the root itself."""
GIT = b".git"
"""A repository, or a file that names one: never shown in a walk."""
KD = b".kd"
"""The server's own directory in a tree."""
AGENTS = b".agents"
"""The directory of main that holds the other trees."""
IGNORE_FILES = ignore.IGNORE_FILES
"""Files of ignore rules, weakest first. A further one is a line in `_fast/names.h`."""
