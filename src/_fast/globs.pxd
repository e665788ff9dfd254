"""The glob dialect (specification, section 5), compiled. Read-only once made; any number of threads may ask."""

from libc.stdint cimport uint64_t

from toolserver._fast.wild cimport wild_end, wild_t

# One compiled pattern. Every name it matches ends with the bytes of `end` that `mask` tells, see wild_end.
cdef struct glob_t:
    wild_t* w
    uint64_t end
    uint64_t mask

# 0 = the name alone shows that it does not match, which costs less than to ask.
cdef inline bint glob_may_match(const glob_t* glob, const char* name, size_t name_len) noexcept nogil:
    return (wild_end(name, name_len) ^ glob.end) & glob.mask == 0

# 1 = the file `name` in the directory `dir_path`, relative to cwd (empty = cwd itself), matches. NULL matches all.
cdef int glob_match(
    const glob_t* glob, const char* dir_path, size_t dir_len, const char* name, size_t name_len
) noexcept nogil

# 0 = nothing below that directory, relative to cwd, can match, so a walk leaves it out. NULL: always 1.
cdef int glob_may_match_below(const glob_t* glob, const char* dir_path, size_t dir_len) noexcept nogil

cdef class Glob:
    # Owns a compiled pattern; `p` is never NULL and lives as long as the object.
    cdef glob_t* p
