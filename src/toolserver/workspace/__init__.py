"""The root and its trees, confined paths, the atomic writer, media, state files."""
