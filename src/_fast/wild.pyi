"""Wildcard patterns over paths, compiled to ask many of them about one name at once: for `ignore` and `globs` alone."""
