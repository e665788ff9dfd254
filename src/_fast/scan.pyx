"""Finding any of a few byte strings, the case of ASCII letters ignored on demand."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from toolserver._fast.scan cimport MAX_NEEDLES, NONE, SLACK, CNeedles, Needles, available, best, chosen, leftmost

cdef extern from "scan.h" namespace "scan" nogil:
    CNeedles* make(const uint8_t** texts, const size_t* sizes, size_t count, bint fold) noexcept

cdef extern from *:
    """
    static inline void scan_destroy(scan::Needles *set) { delete set; }
    """
    void scan_destroy(CNeedles* set) noexcept nogil

MOST = MAX_NEEDLES
_KINDS = {"plain": 1, "sse2": 2, "avx2": 3}


cdef class Needles:
    """See the stub."""

    def __cinit__(self, tuple texts not None, *, bint fold=False, str kind=None):
        cdef const uint8_t* at[64]
        cdef size_t sizes[64]
        cdef size_t count = len(texts), i
        cdef int used = best() if kind is None else _KINDS[kind]
        if count > MAX_NEEDLES:
            raise ValueError("too many strings")
        if not available(used):
            raise ValueError("not on this processor")
        for i in range(count):
            at[i] = <const uint8_t*>PyBytes_AS_STRING(<bytes?>texts[i])
            sizes[i] = PyBytes_GET_SIZE(texts[i])
            if sizes[i] == 0:
                raise ValueError("an empty string")
        self.fold = fold
        self.find = chosen(used)
        if count:
            self.p = make(at, sizes, count, fold)
            if self.p == NULL:
                raise MemoryError

    def __dealloc__(self):
        scan_destroy(self.p)

    def search(self, bytes data not None, Py_ssize_t start=0):
        """See the stub."""
        return ask(self, data, start, False)

    def leftmost(self, bytes data not None, Py_ssize_t start=0):
        """See the stub."""
        return ask(self, data, start, True)


cdef object ask(Needles needles, bytes data, Py_ssize_t start, bint first):
    """Search bytes, copied so that they go on for long enough."""
    cdef size_t size = PyBytes_GET_SIZE(data), length = 0, at
    cdef bytes padded = PyBytes_FromStringAndSize(NULL, size + SLACK)
    cdef uint8_t* begin = <uint8_t*>PyBytes_AS_STRING(padded)
    if start < 0:
        raise ValueError("a negative start")
    memcpy(begin, PyBytes_AS_STRING(data), size)
    memset(begin + size, 0, SLACK)
    if needles.p == NULL or <size_t>start > size:
        return None
    with nogil:
        if first:
            at = leftmost(needles.p[0], begin, start, size, &length)
        else:
            at = needles.find(needles.p[0], begin, start, size, &length)
    return None if at == NONE else (at, at + length)
