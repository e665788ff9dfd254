"""The server a coding agent works through on a repository."""

__version__ = "0.1.0"
