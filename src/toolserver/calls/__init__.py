"""What every tool shares: typed arguments with their schema, the call and its client, the dispatch."""
