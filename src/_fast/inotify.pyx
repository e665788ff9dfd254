"""What the kernel tells of changes: inotify's events as plain tuples, and when an entry was made."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport INT64_MAX, int64_t, uint32_t
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

cdef extern from "sys/stat.h" nogil:
    struct statx_timestamp:
        int64_t tv_sec
        uint32_t tv_nsec
    struct statx_t "statx":
        uint32_t stx_mask
        statx_timestamp stx_btime
    int c_statx "statx" (int directory, const char* path, int flags, unsigned int mask, statx_t* out)
    enum:
        STATX_BTIME

cdef extern from "fcntl.h" nogil:
    enum:
        AT_SYMLINK_NOFOLLOW

cdef enum:
    # bytes read at once: at least 50 events with the longest names, about 500 with usual ones
    BUFFER = 16384


cdef class Inotify:
    """One inotify instance, non-blocking. Raises OSError EMFILE where the user has no instance left."""

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
        """Return the descriptor to wait on until it is readable; -1 once closed."""
        return self._fd

    def close(self):
        """Close it and drop all watches; again is no error."""
        if self._fd >= 0:
            c_close(self._fd)
            self._fd = -1

    def add(self, int directory, uint32_t mask):
        """Watch the open file or directory `directory` (O_PATH will do) and return the watch's number.

        Raises OSError: ENOSPC where the user's watches are used up, ENOENT, ENOTDIR (with ONLYDIR).
        """
        # its name in /proc leads to the very file that is open, whatever its path is now
        cdef char path[32]
        cdef int wd
        snprintf(path, sizeof(path), "/proc/self/fd/%d", directory)
        wd = inotify_add_watch(self._fd, path, mask)
        if wd < 0:
            raise OSError(errno, os.strerror(errno))
        return wd

    def remove(self, int wd):
        """Drop a watch; one that is gone already is no error."""
        inotify_rm_watch(self._fd, wd)

    def read(self):
        """Return waiting events as (watch, mask, name), at most 16 KiB of them; empty when none wait."""
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


def birth_ns(int directory, bytes name):
    """Return when an entry of an open directory was made, in nanoseconds; a link is not followed.

    The latest time there is where the file system does not tell, or the entry is gone.
    """
    cdef statx_t status
    cdef const char* entry = name
    cdef int rc
    with nogil:
        rc = c_statx(directory, entry, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &status)
    if rc < 0 or not status.stx_mask & STATX_BTIME:
        return INT64_MAX
    return status.stx_btime.tv_sec * 1_000_000_000 + status.stx_btime.tv_nsec
