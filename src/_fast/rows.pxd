# The results of grep: rows on the runs of a walk, and the answer that is written from them.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memchr

from toolserver._fast.lines cimport Text
from toolserver._fast.walk cimport item_t, walk_t

cdef extern from "<string.h>" nogil:
    void* memrchr(const void* data, int byte, size_t size)

cdef enum:
    # Bytes of a line that are shown.
    LONG = 4096

cdef struct held_t:
    # A file that lies in the buffer at [at, at + size). `plain`: no CR belongs to a line end any more.
    item_t* item
    const char* name
    uint8_t name_size
    bint plain
    bint told
    size_t at
    size_t size
    size_t line
    size_t counted
    uint64_t count

# Add the line [start, stop) as a result, with so many `lines` around it; its first match is [first, last). -1: no
# memory.
cdef int add_line(
    held_t* file, const uint8_t* data, size_t start, size_t stop, size_t first, size_t last, size_t lines
) noexcept nogil
# Add a file's path as a result. -1: no memory.
cdef int add_file(held_t* file) noexcept nogil
# Add a file's count as a result. -1: no memory.
cdef int add_count(held_t* file) noexcept nogil
# Write the list of results, at most `most` entries and `limit` bytes; they are paths alone, where `files`. `path` is
# used on the way. -1: no memory.
cdef int write_answer(
    const walk_t* walk, Text* to, Text* path, bint files, size_t most, size_t limit, bint* truncated
) noexcept nogil


cdef inline size_t line_start(const uint8_t* data, size_t low, size_t at) noexcept nogil:
    """Where the line begins that holds `at`, at `low` at the earliest."""
    cdef const uint8_t* found = <const uint8_t*>memrchr(data + low, c"\n", at - low)
    return low if found == NULL else found - data + 1


cdef inline size_t line_end(const uint8_t* data, size_t at, size_t end) noexcept nogil:
    """Where the LF is that ends the line of `at`, or `end`."""
    cdef const uint8_t* found = <const uint8_t*>memchr(data + at, c"\n", end - at)
    return end if found == NULL else found - data


cdef inline size_t text_end(const uint8_t* data, size_t start, size_t stop, size_t end, bint plain) noexcept nogil:
    """Where the text of the line [start, stop) ends: before the CR of a CRLF."""
    if not plain and stop < end and stop > start and data[stop - 1] == c"\r":
        return stop - 1
    return stop


cdef inline bint is_full(const walk_t* walk, const item_t* item) noexcept nogil:
    """Whether a run holds all that an answer takes."""
    return item.entries >= walk.most_entries or item.weight >= walk.most_weight
