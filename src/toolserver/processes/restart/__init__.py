"""Across runs of the server: the record of processes, the end of orphans, starting again."""
