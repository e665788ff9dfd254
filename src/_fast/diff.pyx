"""Differences between two texts by lines, without the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libcpp.string cimport string

cdef extern from "diff.h" namespace "diff" nogil:
    cdef cppclass Result:
        size_t additions, deletions
        string hunks

    int compare_texts "diff::compare"(
        const char* old_text, size_t n, const char* new_text, size_t m, size_t context, size_t most, Result* result
    )


def compare(bytes old not None, bytes new not None, *, size_t context=3, size_t most=0):
    cdef const char* old_text = PyBytes_AS_STRING(old)
    cdef const char* new_text = PyBytes_AS_STRING(new)
    cdef size_t n = PyBytes_GET_SIZE(old), m = PyBytes_GET_SIZE(new)
    cdef Result result
    cdef int rc
    with nogil:
        rc = compare_texts(old_text, n, new_text, m, context, most, &result)
    if rc < 0:
        raise MemoryError
    return result.additions, result.deletions, <bytes>result.hunks
