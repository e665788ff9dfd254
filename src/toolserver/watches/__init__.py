"""Watches: of paths, of a command's lines, and of a command that runs after each batch of changes."""
