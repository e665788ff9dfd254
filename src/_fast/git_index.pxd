"""The paths of an index, for a walk without the GIL.

Read-only once made, for any number of threads. Paths are those of `ignore`: an entry is named by the path of its
directory and its own name.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef enum:
    BROKEN = -1
    NO_MEMORY = -2

cdef struct path_t:
    uint32_t at         # where it begins in the text
    uint32_t entry      # where its entry begins in the file
    uint16_t size
    bint kept           # a file or link

cdef struct index_t:    # the entries of one index file, in its order
    path_t* paths
    size_t count
    char* text
    size_t used, room
    size_t end          # where the extensions begin

# Read the entries of an index file; 0, BROKEN or NO_MEMORY. The caller zeroes `x` before, and frees `paths` and `text`
# in any case.
cdef int read_index(index_t* x, const uint8_t* data, size_t n, size_t hash_size) noexcept nogil

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
