"""Unified diffs: their headers, their parts, and staging them for the writer."""
