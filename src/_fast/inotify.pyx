"""The kernel's inotify: watches on open directories, events as plain tuples."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint32_t
from libc.stdio cimport snprintf
from libc.string cimport strlen

import os

cdef extern from "unistd.h" nogil:
    ssize_t c_read "read" (int fd, void* buffer, size_t count)
    int c_close "close" (int fd)

cdef extern from "sys/inotify.h" nogil:
    struct inotify_event:
        int wd
        uint32_t mask
        uint32_t cookie
        uint32_t len
        char name[]
    int inotify_init1(int flags)
    int inotify_add_watch(int fd, const char* path, uint32_t mask)
    int inotify_rm_watch(int fd, int wd)
    enum:
        IN_NONBLOCK
        IN_CLOEXEC
        IN_MODIFY
        IN_ATTRIB
        IN_CLOSE_WRITE
        IN_MOVED_FROM
        IN_MOVED_TO
        IN_CREATE
        IN_DELETE
        IN_DELETE_SELF
        IN_MOVE_SELF
        IN_UNMOUNT
        IN_Q_OVERFLOW
        IN_IGNORED
        IN_ONLYDIR
        IN_EXCL_UNLINK
        IN_ISDIR

MODIFY = IN_MODIFY
ATTRIB = IN_ATTRIB
CLOSE_WRITE = IN_CLOSE_WRITE
MOVED_FROM = IN_MOVED_FROM
MOVED_TO = IN_MOVED_TO
CREATE = IN_CREATE
DELETE = IN_DELETE
DELETE_SELF = IN_DELETE_SELF
MOVE_SELF = IN_MOVE_SELF
UNMOUNT = IN_UNMOUNT
OVERFLOW = IN_Q_OVERFLOW
IGNORED = IN_IGNORED
ONLYDIR = IN_ONLYDIR
EXCL_UNLINK = IN_EXCL_UNLINK
ISDIR = IN_ISDIR

cdef enum:
    BUFFER = 16384  # bytes read at once: at least 50 events with the longest names, about 500 with usual ones


cdef class Inotify:
    """See the stub."""

    cdef int _fd
    cdef char _buffer[BUFFER]

    def __cinit__(self):
        self._fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)
        if self._fd < 0:
            raise OSError(errno, os.strerror(errno))

    def __dealloc__(self):
        if self._fd >= 0:
            c_close(self._fd)

    def fileno(self):
        """See the stub."""
        return self._fd

    def close(self):
        """See the stub."""
        if self._fd >= 0:
            c_close(self._fd)
            self._fd = -1

    def add(self, int directory, uint32_t mask):
        """See the stub."""
        # The descriptor is already proven to lie inside; its name in /proc leads to just that file.
        cdef char path[32]
        cdef int wd
        snprintf(path, sizeof(path), "/proc/self/fd/%d", directory)
        wd = inotify_add_watch(self._fd, path, mask)
        if wd < 0:
            raise OSError(errno, os.strerror(errno))
        return wd

    def remove(self, int wd):
        """See the stub."""
        inotify_rm_watch(self._fd, wd)

    def read(self):
        """See the stub."""
        cdef ssize_t got
        cdef Py_ssize_t at = 0
        cdef inotify_event* event
        cdef list out = []
        while True:
            got = c_read(self._fd, self._buffer, BUFFER)
            if got >= 0:
                break
            if errno == EAGAIN:
                return out
            if errno != EINTR:
                raise OSError(errno, os.strerror(errno))
        while at < got:
            event = <inotify_event*>(self._buffer + at)
            name = PyBytes_FromStringAndSize(event.name, strlen(event.name)) if event.len else b""
            out.append((event.wd, event.mask, name))
            at += sizeof(inotify_event) + event.len
        return out
