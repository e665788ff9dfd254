"""Paths as bytes: collapsed by name, and opened beneath a directory descriptor (openat2)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport errno
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcpy

import os

cdef extern from "beneath.h" nogil:
    enum:
        RESOLVE_NO_SYMLINKS

cdef extern from "beneath.h" namespace "beneath" nogil:
    int c_open_beneath "beneath::open_beneath"(
        int directory, const char* path, int flags, int mode, uint64_t resolve
    ) noexcept

NO_SYMLINKS = RESOLVE_NO_SYMLINKS


def collapse(bytes path not None):
    cdef const char* data = PyBytes_AS_STRING(path)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(path)
    cdef char* out = <char*>malloc(size + 1)
    cdef Py_ssize_t used = 0, start = 0, end
    cdef const char* slash
    if out == NULL:
        raise MemoryError
    try:
        while start <= size:
            slash = <const char*>memchr(data + start, c"/", size - start)
            end = slash - data if slash != NULL else size
            if end == start or (end - start == 1 and data[start] == c"."):
                pass
            elif end - start == 2 and data[start] == c"." and data[start + 1] == c".":
                if used == 0:
                    return None
                used -= 1
                while used > 0 and out[used] != c"/":
                    used -= 1
            else:
                if used:
                    out[used] = c"/"
                    used += 1
                memcpy(out + used, data + start, end - start)
                used += end - start
            start = end + 1
        return PyBytes_FromStringAndSize(out, used)
    finally:
        free(out)


def open_beneath(int directory, bytes path not None, int flags, int mode=0, int resolve=0):
    cdef const char* name = PyBytes_AS_STRING(path)
    cdef int fd, failed = 0
    if PyBytes_GET_SIZE(path) == 0:
        name = "."
    with nogil:
        fd = c_open_beneath(directory, name, flags, mode, <uint64_t>resolve)
        if fd < 0:
            failed = errno
    if fd < 0:
        raise OSError(failed, os.strerror(failed), os.fsdecode(path))
    return fd
