"""The atomic writer: what a call changes, staged, flushed to temporary files and renamed, all or nothing."""
