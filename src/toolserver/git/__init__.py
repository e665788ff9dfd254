"""Git's own files, read as they are: configuration, rule files, index."""
