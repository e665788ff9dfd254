"""Errors that a caller sees: one sentence and a status (specification, section 2)."""


class ToolError(Exception):
    """The tool ran and failed: 500. The text is one plain sentence that holds the path or id it is about."""

    status = 500


class BadArgument(ToolError):
    """The call itself is wrong: 400. The text names the field and what was expected."""

    status = 400


class NotThere(ToolError):
    """Nothing stands at a path: 500 from a tool, 404 from `/fs`. The text holds the path as given."""


class Conflict(ToolError):
    """What is there is not what the call builds on: 409."""

    status = 409


class OverLimit(ToolError):
    """More than is taken or shown: 413."""

    status = 413


class OutsideTree(ToolError):
    """A path leads outside the working directory, symlinks followed: 403. The text holds the path as given."""

    status = 403
