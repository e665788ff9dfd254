"""The bytes of an optional Python object, for use without the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE


# The bytes of `text`, which the caller keeps alive, and their number; NULL and 0 for None.
cdef inline const char* borrow(bytes text, size_t* size) noexcept:
    if text is None:
        size[0] = 0
        return NULL
    size[0] = PyBytes_GET_SIZE(text)
    return PyBytes_AS_STRING(text)
