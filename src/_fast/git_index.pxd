"""The paths of an index, for a walk without the GIL.

Read-only once made, for any number of threads. Paths are those of `ignore`: an entry is named by the path of its
directory and its own name.
"""

# The paths of files and links in an index, sorted.
cdef struct tracked_t

# 1 = that very path is in the index as a file or link. NULL = an empty index.
cdef int tracked_file(
    const tracked_t* tracked, const char* dir_path, size_t dir_len, const char* name, size_t name_len
) noexcept nogil

# 1 = something below that directory is in the index, so a walk enters it though it is ignored. An empty name means
# the directory itself. NULL = an empty index.
cdef int tracked_below(
    const tracked_t* tracked, const char* dir_path, size_t dir_len, const char* name, size_t name_len
) noexcept nogil

cdef class Tracked:
    # Owns the paths of an index; `p` lives as long as the object and is NULL where nothing is tracked.
    cdef tracked_t* p
