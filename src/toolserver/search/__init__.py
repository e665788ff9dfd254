"""Pattern analysis, globs and the Python side of the search engine."""
