"""Finding and replacing byte strings, without the GIL and without decoding."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcpy

cdef extern from "string.h" nogil:
    void* memmem(const void* data, size_t size, const void* old, size_t length)

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    MOST = 64


cdef class _Utf8:
    """A string's own bytes of UTF-8, read-only; they live as long as the string."""

    cdef str _text

    def __cinit__(self, str text not None):
        self._text = text

    def __getbuffer__(self, Py_buffer* out, int flags):
        cdef Py_ssize_t size
        cdef const char* data = PyUnicode_AsUTF8AndSize(self._text, &size)
        PyBuffer_FillInfo(out, self, <void*>data, size, 1, flags)


def utf8(str text not None):
    return memoryview(_Utf8(text))


cdef inline bint _blank(char c) noexcept nogil:
    return c == c" " or (c >= 9 and c <= 13)


cdef Py_ssize_t _find(
    const char* data, Py_ssize_t size, const char* old, Py_ssize_t length, Py_ssize_t* at, int most
) noexcept nogil:
    """Count the occurrences and put the first `most` offsets in `at`."""
    cdef const char* place = data
    cdef const char* end = data + size
    cdef Py_ssize_t count = 0
    while True:
        place = <const char*>memmem(place, end - place, old, length)
        if place == NULL:
            return count
        if count < most:
            at[count] = place - data
        count += 1
        place += length


cdef int _checked(Py_ssize_t length, int most) except -1:
    if length == 0:
        raise ValueError("nothing to look for")
    if most < 0 or most > MOST:
        raise ValueError(f"most: {most}")
    return 0


def occurrences(bytes data not None, bytes old not None, int most):
    cdef const char* text = PyBytes_AS_STRING(data)
    cdef const char* wanted = PyBytes_AS_STRING(old)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data), length = PyBytes_GET_SIZE(old), count
    cdef Py_ssize_t[MOST] at
    _checked(length, most)
    with nogil:
        count = _find(text, size, wanted, length, at, most)
    return count, [at[index] for index in range(min(count, most))]


def replace_all(bytes data not None, bytes old not None, bytes new not None, Py_ssize_t count):
    cdef const char* text = PyBytes_AS_STRING(data)
    cdef const char* end = text + PyBytes_GET_SIZE(data)
    cdef const char* wanted = PyBytes_AS_STRING(old)
    cdef const char* other = PyBytes_AS_STRING(new)
    cdef Py_ssize_t length = PyBytes_GET_SIZE(old), room = PyBytes_GET_SIZE(new), left = count
    cdef const char* place
    cdef char* out
    _checked(length, 0)
    if count < 0 or count > PyBytes_GET_SIZE(data) // length:
        raise ValueError(f"count: {count}")
    whole = len(data) + int(count) * (len(new) - len(old))
    answer = PyBytes_FromStringAndSize(NULL, whole)
    out = PyBytes_AS_STRING(answer)
    with nogil:
        while left > 0:
            place = <const char*>memmem(text, end - text, wanted, length)
            if place == NULL:
                break
            memcpy(out, text, place - text)
            out += place - text
            memcpy(out, other, room)
            out += room
            text = place + length
            left -= 1
        if left == 0:
            memcpy(out, text, end - text)
    if left:
        raise ValueError(f"count: {count}")
    return answer


def all_crlf(bytes data not None):
    cdef const char* start = PyBytes_AS_STRING(data)
    cdef const char* end = start + PyBytes_GET_SIZE(data)
    cdef const char* place = start
    cdef bint some = False, all = True
    with nogil:
        while True:
            place = <const char*>memchr(place, c"\n", end - place)
            if place == NULL:
                break
            some = True
            if place == start or (place - 1)[0] != c"\r":
                all = False
                break
            place += 1
    return some and all


cdef Py_ssize_t _collapse(const char* data, Py_ssize_t size, char* out) noexcept nogil:
    """Write one blank a run of white space, one before and one after all; return the size, at most size + 2."""
    cdef Py_ssize_t at, used = 1
    out[0] = c" "
    for at in range(size):
        if not _blank(data[at]):
            out[used] = data[at]
            used += 1
        elif out[used - 1] != c" ":
            out[used] = c" "
            used += 1
    if out[used - 1] != c" ":
        out[used] = c" "
        used += 1
    return used


cdef void _spread(
    const char* data, Py_ssize_t size, const Py_ssize_t* hits, Py_ssize_t length, Py_ssize_t* spans, int count
) noexcept nogil:
    """Turn offsets of words in the collapsed text (in rising order) into spans of offsets in the text itself."""
    cdef Py_ssize_t at, used = 1
    cdef int start = 0, end = 0
    cdef bint before = True
    for at in range(size):
        if _blank(data[at]):
            if not before:
                used += 1
            before = True
            continue
        before = False
        if start < count and used == hits[start]:
            spans[2 * start] = at
            start += 1
        used += 1
        if end < count and used == hits[end] + length:
            spans[2 * end + 1] = at + 1
            end += 1
            if end == count:
                return


def nearly(bytes data not None, bytes old not None, int most):
    cdef const char* text = PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data), length = PyBytes_GET_SIZE(old), total, wanted, count, inner
    cdef Py_ssize_t[MOST] hits
    cdef Py_ssize_t[2 * MOST] spans
    cdef Py_ssize_t index
    cdef char* flat = NULL
    cdef char* word = NULL
    cdef const char* sought = PyBytes_AS_STRING(old)
    cdef bint open_start, open_end
    _checked(length, most)
    open_start = not _blank(sought[0])
    open_end = not _blank(sought[length - 1])
    flat = <char*>malloc(size + 2)
    word = <char*>malloc(length + 2)
    try:
        if flat == NULL or word == NULL:
            raise MemoryError
        with nogil:
            total = _collapse(text, size, flat)
            wanted = _collapse(sought, length, word)
            count = 0
            if wanted > 2:
                inner = wanted - 2
                count = _find(flat, total, word + open_start, wanted - open_start - open_end, hits, most)
                if count > most:
                    count = most
                for index in range(count):
                    hits[index] += not open_start
                _spread(text, size, hits, inner, spans, <int>count)
        return [(spans[2 * index], spans[2 * index + 1]) for index in range(count)]
    finally:
        free(flat)
        free(word)
