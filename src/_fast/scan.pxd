# Finding any of a few byte strings in a buffer, for other kernels; inline C++, nothing needs the GIL.

from libc.stdint cimport uint8_t

cdef extern from "scan.h" namespace "scan" nogil:
    cppclass CNeedles "scan::Needles":
        # A set of strings, read-only once made.
        pass
    ctypedef size_t (*Find)(
        const CNeedles& set, const uint8_t* data, size_t start, size_t size, size_t* length
    ) noexcept
    # How far past the end of the data the loops may read: the buffer must go on for so long.
    const size_t SLACK
    const size_t MAX_NEEDLES
    # What a search answers that found nothing.
    const size_t NONE
    bint available(int kind) noexcept
    # The search of one kind: 1 plain, 2 SSE2, 3 AVX2. It tells where one of the strings begins in [start, size), and
    # its length; of several in one line not always the first, but no line that holds one is passed over.
    Find chosen(int kind) noexcept
    int best() noexcept
    # The leftmost string, of those that begin there the one given first; slow.
    size_t leftmost(const CNeedles& set, const uint8_t* data, size_t start, size_t size, size_t* length) noexcept

cdef class Needles:
    # Owns a set; `p` lives as long as the object and is NULL for an empty set, which nothing fits.
    cdef CNeedles* p
    cdef Find find
    cdef readonly bint fold
