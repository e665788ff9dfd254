"""Unified diffs: reading them into parts, and staging these for the writer."""
