"""Wildcard patterns over paths, compiled to ask many of them about one name at once. Shared by `ignore` and `globs`.

A pattern is a list of components that end at slashes. It is built piece by piece and then belongs to a set; the set is
frozen once and is read-only from then on, so that any number of threads may ask it.
"""
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    WILD_NEGATED = 1    # kept for the caller: the rule re-includes
    WILD_DIR_ONLY = 2   # fits directories alone
    WILD_ANYWHERE = 4   # the base name alone decides: the pattern holds no slash

cdef struct wild_t      # a set of patterns, opaque

# An empty set; NULL = out of memory. The caller frees it with wild_free. With `utf8`, `?` and classes stand for one
# character (a byte that belongs to none counts as one), else for one byte.
cdef wild_t* wild_new(bint utf8) noexcept nogil

# Frees a set and all it holds; NULL is allowed.
cdef void wild_free(wild_t* w) noexcept nogil

# Pieces of the pattern under construction. Out of memory is remembered and told by wild_freeze.

# One literal byte, never a slash.
cdef void wild_byte(wild_t* w, uint8_t byte) noexcept nogil

# `?`: one character or byte.
cdef void wild_any(wild_t* w) noexcept nogil

# `*`: any text within one component.
cdef void wild_star(wild_t* w) noexcept nogil

# Begins a class, empty so far.
cdef void wild_class(wild_t* w, bint negated) noexcept nogil

# Adds a range of bytes or code points, ends included, to the class begun last.
cdef void wild_range(wild_t* w, uint32_t low, uint32_t high) noexcept nogil

# Ends a component. An empty one makes the pattern match nothing.
cdef void wild_slash(wild_t* w) noexcept nogil

# `**` as a whole component together with its slash: any number of directories, also none. At the end: all below.
cdef void wild_deep(wild_t* w) noexcept nogil

# 1 = the component under construction has no piece yet.
cdef bint wild_at_start(const wild_t* w) noexcept nogil

# Forgets the pattern under construction.
cdef void wild_drop(wild_t* w) noexcept nogil

# Adds the pattern to the set, behind those before; one that can match nothing is dropped.
cdef void wild_finish(wild_t* w, uint8_t flags) noexcept nogil

# Makes the set ready to be asked. 0, or -1 = out of memory, now or in a piece before.
cdef int wild_freeze(wild_t* w) noexcept nogil

# The last 8 bytes of a name, zeros in front of a shorter one.
cdef inline uint64_t wild_end(const char* s, size_t n) noexcept nogil:
    cdef uint64_t word = 0
    cdef char* to = <char*>&word
    cdef size_t i
    if n >= 8:
        memcpy(&word, s + n - 8, 8)
    else:
        for i in range(n):
            to[8 - n + i] = s[i]
    return word

# What every name that any pattern of the set fits ends with, as wild_end loads it; `mask`: which bits of it are known.
cdef void wild_common_end(const wild_t* w, uint64_t* end, uint64_t* mask) noexcept nogil

# The number of patterns in the set.
cdef uint32_t wild_count(const wild_t* w) noexcept nogil

# The flags of the last pattern that fits `dir_path`/`name`, or -1 for none. Borrowed pointers, no allocation. `hash`
# is 0 at first, and handed on when another set is asked about the same name.
cdef int wild_last(
    const wild_t* w, const char* dir_path, size_t dir_len, const char* name, size_t name_len,
    uint64_t* hash, bint is_dir
) noexcept nogil

# 0 = no pattern fits anything below that directory.
cdef bint wild_below(const wild_t* w, const char* dir_path, size_t dir_len) noexcept nogil
