"""Finding many texts in one: each by a short piece of it that is rare, in a few passes for all of them."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

cdef extern from "anchors.h" namespace "anchors" nogil:
    cppclass Entry:
        uint64_t piece
        uint32_t count
        int32_t id
    cppclass Table:
        int width
        size_t used
        Entry* entries
    const int32_t NONE
    uint64_t piece(const uint8_t* at, int width) noexcept
    Entry* find(const Table* table, uint64_t value) noexcept
    int prepare(Table* table, int width, size_t pieces) noexcept
    void release(Table* table) noexcept
    void add(Table* table, uint64_t value) noexcept
    void count(Table* table, const uint8_t* text, size_t size) noexcept
    int32_t next(const Table* table, const uint8_t* text, size_t size, size_t* at) noexcept

cdef enum:
    WIDTHS = 4
    SAMPLES = 16

cdef int[WIDTHS] _WIDTH = [8, 4, 2, 1]


cdef int _kind(Py_ssize_t length) noexcept:
    """Return which width a text of this length (at least 1) is looked for by."""
    return 0 if length >= 8 else 1 if length >= 4 else 2 if length >= 2 else 3


cdef Py_ssize_t _sample(Py_ssize_t length, int width, int number) noexcept:
    """Return the offset of a sample: they are spread from the text's start to its end."""
    return (length - width) * number // (SAMPLES - 1)


cdef class Anchors:
    cdef Table[WIDTHS] _tables
    cdef dict _chosen
    cdef list _places
    cdef readonly Py_ssize_t scanned

    def __dealloc__(self):
        cdef int kind
        for kind in range(WIDTHS):
            release(&self._tables[kind])

    def __init__(self, patterns not None, bytes text not None, Py_ssize_t most):
        cdef int kind
        cdef size_t[WIDTHS] sizes
        patterns = set(patterns)
        self._chosen = {}
        self._places = []
        for kind in range(WIDTHS):
            if self._tables[kind].entries != NULL:
                raise ValueError("made already")
            sizes[kind] = 0
        for pattern in patterns:
            if not pattern:
                raise ValueError("nothing to look for")
            sizes[_kind(len(pattern))] += SAMPLES
        for kind in range(WIDTHS):
            if prepare(&self._tables[kind], _WIDTH[kind], sizes[kind]):
                raise MemoryError
        for pattern in patterns:
            self._add(pattern)
        for kind in range(WIDTHS):
            self._count(kind, text)
        for pattern in patterns:
            self._choose(pattern, most)
        for kind in range(WIDTHS):
            self._locate(kind, text)

    cdef int _add(self, bytes pattern) except -1:
        cdef Py_ssize_t length = PyBytes_GET_SIZE(pattern)
        cdef int kind = _kind(length), number
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(pattern)
        for number in range(SAMPLES):
            add(&self._tables[kind], piece(start + _sample(length, _WIDTH[kind], number), _WIDTH[kind]))
        return 0

    cdef int _count(self, int kind, bytes text) except -1:
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(text)
        cdef size_t size = PyBytes_GET_SIZE(text)
        if self._tables[kind].used:
            self.scanned += size
            with nogil:
                count(&self._tables[kind], start, size)
        return 0

    cdef int _choose(self, bytes pattern, Py_ssize_t most) except -1:
        """Choose the sample that is rarest in the text, unless even that is there more than `most` times."""
        cdef Py_ssize_t length = PyBytes_GET_SIZE(pattern), offset, chosen = 0
        cdef int kind = _kind(length), number
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(pattern)
        cdef Entry* entry
        cdef Entry* best = NULL
        for number in range(SAMPLES):
            offset = _sample(length, _WIDTH[kind], number)
            entry = find(&self._tables[kind], piece(start + offset, _WIDTH[kind]))
            if best == NULL or entry.count < best.count:
                best, chosen = entry, offset
        if <Py_ssize_t>best.count - 1 > most:
            return 0
        if best.id == NONE:
            best.id = <int32_t>len(self._places)
            self._places.append([])
        self._chosen[pattern] = (best.id, chosen)
        return 0

    cdef int _locate(self, int kind, bytes text) except -1:
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(text)
        cdef size_t size = PyBytes_GET_SIZE(text), at = 0
        cdef int32_t found
        if not self._tables[kind].used:
            return 0
        self.scanned += size
        while True:
            with nogil:
                found = next(&self._tables[kind], start, size, &at)
            if found == NONE:
                return 0
            (<list>self._places[found]).append(at - 1)

    def anchor(self, bytes pattern not None):
        return self._chosen.get(pattern)

    def places(self, Py_ssize_t number):
        return self._places[number]

    def scan(self, bytes text not None):
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(text)
        cdef size_t size = PyBytes_GET_SIZE(text), at
        cdef int32_t found
        cdef int kind
        out = []
        self.scanned += size
        for kind in range(WIDTHS):
            at = 0
            while self._tables[kind].used:
                found = next(&self._tables[kind], start, size, &at)
                if found == NONE:
                    break
                out.append((at - 1, _WIDTH[kind], found))
        return out
