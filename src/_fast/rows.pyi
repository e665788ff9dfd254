"""The results of a search, for `grep` alone."""
