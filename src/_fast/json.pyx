"""Counting the values of a JSON text before anybody parses it, without the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.string cimport memchr


cdef const char* _string_end(const char* at, const char* end) noexcept nogil:
    """Return the position after the string whose opening quote is before `at`; `end` where it is not closed."""
    cdef const char* start = at
    cdef const char* quote
    cdef const char* slash
    while True:
        quote = <const char*>memchr(at, c'"', end - at)
        if quote == NULL:
            return end
        slash = quote
        while slash > start and (slash - 1)[0] == c"\\":
            slash -= 1
        if (quote - slash) % 2 == 0:
            return quote + 1
        at = start = quote + 1


cdef Py_ssize_t _count(const char* at, const char* end, Py_ssize_t most) noexcept nogil:
    """Count values up to `most` + 1. A text is one value; an array or object that is not empty has one value more
    than commas."""
    cdef Py_ssize_t count = 1
    cdef bint opened = False  # the last byte that was not blank opened an array or an object
    cdef char byte
    while at < end and count <= most:
        byte = at[0]
        at += 1
        if byte == c" " or byte == c"\n" or byte == c"\r" or byte == c"\t":
            continue
        if opened and byte != c"]" and byte != c"}":
            count += 1
        opened = byte == c"[" or byte == c"{"
        if byte == c",":
            count += 1
        elif byte == c'"':
            at = _string_end(at, end)
    return count


def count_values(text not None, Py_ssize_t most):
    """Return how many values a JSON text holds, or `most` + 1 for more than `most`."""
    cdef const char* data
    cdef Py_ssize_t size = 0, count
    if isinstance(text, bytes):
        data = PyBytes_AS_STRING(text)
        size = PyBytes_GET_SIZE(text)
    else:
        data = PyUnicode_AsUTF8AndSize(text, &size)
    with nogil:
        count = _count(data, data + size, most)
    return count
