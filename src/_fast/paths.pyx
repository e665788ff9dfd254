"""Paths as bytes: collapsed by name, and opened beneath a directory descriptor (openat2)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcpy, memset

import os

cdef extern from "fcntl.h" nogil:
    enum:
        O_CLOEXEC

cdef extern from "unistd.h" nogil:
    long syscall(long number, ...)

cdef extern from *:
    """
    #include <linux/openat2.h>
    #include <sys/syscall.h>
    #ifndef SYS_openat2
    #define SYS_openat2 437
    #endif
    """
    struct open_how:
        uint64_t flags
        uint64_t mode
        uint64_t resolve
    enum:
        SYS_openat2
        RESOLVE_NO_XDEV
        RESOLVE_NO_MAGICLINKS
        RESOLVE_NO_SYMLINKS
        RESOLVE_BENEATH

NO_SYMLINKS = RESOLVE_NO_SYMLINKS


def collapse(bytes path not None):
    """See the stub."""
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
    """See the stub."""
    cdef open_how how
    cdef const char* name = PyBytes_AS_STRING(path)
    cdef long fd
    cdef int tries = 0
    if PyBytes_GET_SIZE(path) == 0:
        name = "."
    memset(&how, 0, sizeof(how))
    how.flags = <uint64_t>(flags | O_CLOEXEC)
    how.mode = <uint64_t>mode
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | <uint64_t>resolve
    while True:
        with nogil:
            fd = syscall(SYS_openat2, directory, name, &how, sizeof(how))
        if fd >= 0:
            return fd
        if errno == EINTR:
            continue
        # EAGAIN: the kernel could not prove that `..` of a link stayed below, since something was renamed meanwhile
        if errno == EAGAIN and tries < 128:
            tries += 1
            continue
        raise OSError(errno, os.strerror(errno), os.fsdecode(path))
