"""Reading a file from its descriptor: at once from the page cache, or whole without the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.errno cimport EINTR, EOPNOTSUPP, errno
from libc.stdint cimport uint8_t

import os

cdef extern from "lines.h" namespace "lines" nogil:
    void prefer_huge_pages(uint8_t* data, size_t size) noexcept

cdef extern from "unistd.h" nogil:
    Py_ssize_t pread(int fd, void* into, size_t size, long long offset)

cdef extern from "sys/uio.h" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len
    Py_ssize_t preadv2(int fd, const iovec* into, int count, long long offset, int flags)
    enum:
        RWF_NOWAIT

cdef extern from "sys/vfs.h" nogil:
    struct statfs_t "statfs":
        long f_type
    int fstatfs(int fd, statfs_t* out)

cdef extern from "linux/magic.h":
    enum:
        TMPFS_MAGIC
        RAMFS_MAGIC

cdef extern from "Python.h":
    # as pointers: resizing needs the only reference
    PyObject* PyBytes_FromStringAndSize(const char* data, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject** made, Py_ssize_t size) except -1


cpdef bint in_memory(int fd) noexcept:
    cdef statfs_t system
    return fstatfs(fd, &system) == 0 and (system.f_type == TMPFS_MAGIC or system.f_type == RAMFS_MAGIC)


def read_cached(int fd, Py_ssize_t size):
    cdef iovec into
    cdef Py_ssize_t got
    cdef PyObject* made = PyBytes_FromStringAndSize(NULL, size + 1)
    into.iov_base = PyBytes_AS_STRING(<object>made)
    into.iov_len = size + 1
    # The GIL is held: the call never waits, and releasing it would take longer than the copy from the cache.
    got = preadv2(fd, &into, 1, 0, RWF_NOWAIT)
    if got < 0 and errno == EOPNOTSUPP and in_memory(fd):
        got = pread(fd, into.iov_base, size + 1, 0)
    if got != size:
        got = -1
    return finished(made, got) if got >= 0 else dropped(made)


def read_whole(int fd, Py_ssize_t most, Py_ssize_t expected):
    cdef Py_ssize_t room = min(most, max(expected, 0) + 1), used = 0, got = 0
    cdef PyObject* made = PyBytes_FromStringAndSize(NULL, room)
    cdef uint8_t* data
    cdef int failure = 0
    while True:
        data = <uint8_t*>PyBytes_AS_STRING(<object>made)
        with nogil:
            if used == 0:
                prefer_huge_pages(data, room)
            while used < room:
                got = pread(fd, data + used, room - used, used)
                if got < 0 and errno == EINTR:
                    continue
                if got <= 0:
                    failure = errno if got < 0 else 0
                    break
                used += got
        if failure:
            dropped(made)
            raise OSError(failure, os.strerror(failure))
        if used < room or room == most:
            return finished(made, used)
        # it grew while it was read
        room = min(most, room + room // 2 + 65536)
        _PyBytes_Resize(&made, room)


cdef bytes finished(PyObject* made, Py_ssize_t size):
    """Shrink `made` to `size` and return it; steals the reference."""
    _PyBytes_Resize(&made, size)
    answer = <bytes>made
    Py_DECREF(answer)
    return answer


cdef object dropped(PyObject* made):
    """Free `made` and return None; steals the reference."""
    Py_DECREF(<object>made)
    return None
