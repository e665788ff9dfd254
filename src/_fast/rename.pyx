"""Giving files their names: the steps of a write that the standard library lacks."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.errno cimport EINTR, EINVAL, ENOSYS, errno
from libc.stdio cimport snprintf

import os

cdef extern from "fcntl.h" nogil:
    enum:
        AT_FDCWD
        AT_SYMLINK_FOLLOW

cdef extern from "unistd.h" nogil:
    long syscall(long number, ...)
    int linkat(int source, const char* old, int directory, const char* new, int flags)
    int unlinkat(int directory, const char* name, int flags)

cdef extern from "stdio.h" nogil:
    int renameat(int source, const char* old, int directory, const char* new)

cdef extern from *:
    """
    #include <sys/syscall.h>
    #ifndef RENAME_NOREPLACE
    #define RENAME_NOREPLACE 1
    #endif
    #ifndef RENAME_EXCHANGE
    #define RENAME_EXCHANGE 2
    #endif
    """
    enum:
        SYS_renameat2
        RENAME_NOREPLACE
        RENAME_EXCHANGE


cdef extern from "unistd.h" nogil:
    int syncfs(int fd)


cdef int _link(int fd, int directory, const char* name) noexcept nogil:
    """Link a descriptor to a name; return 0 or the errno."""
    cdef char path[32]
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd)
    while linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW) != 0:
        if errno != EINTR:
            return errno
    return 0


cdef object _raise(int code, bytes name):
    raise OSError(code, os.strerror(code), os.fsdecode(name))


def link(int fd, int directory, bytes name not None):
    cdef const char* text = PyBytes_AS_STRING(name)
    cdef int code
    with nogil:
        code = _link(fd, directory, text)
    if code:
        _raise(code, name)


def replace(int fd, int directory, bytes temp not None, bytes name not None):
    cdef const char* between = PyBytes_AS_STRING(temp)
    cdef const char* last = PyBytes_AS_STRING(name)
    cdef int code
    with nogil:
        code = _link(fd, directory, between)
        if code == 0 and renameat(directory, between, directory, last) != 0:
            code = errno
            unlinkat(directory, between, 0)
    if code:
        _raise(code, name)


def exchange(int directory, bytes one not None, bytes other not None):
    cdef const char* first = PyBytes_AS_STRING(one)
    cdef const char* second = PyBytes_AS_STRING(other)
    cdef int code = 0
    with nogil:
        if syscall(SYS_renameat2, directory, first, directory, second, RENAME_EXCHANGE) != 0:
            code = errno
    if code:
        _raise(EINVAL if code == ENOSYS else code, other)


def rename_new(int source, bytes old not None, int directory, bytes new not None):
    cdef const char* first = PyBytes_AS_STRING(old)
    cdef const char* second = PyBytes_AS_STRING(new)
    cdef int code = 0
    with nogil:
        if syscall(SYS_renameat2, source, first, directory, second, RENAME_NOREPLACE) != 0:
            code = errno
            if code == EINVAL or code == ENOSYS:
                code = 0
                if linkat(source, first, directory, second, 0) != 0:
                    code = errno
                elif unlinkat(source, first, 0) != 0:
                    code = errno
                    unlinkat(directory, second, 0)
    if code:
        _raise(code, new)


def sync_file_system(int fd):
    cdef int code = 0
    with nogil:
        if syncfs(fd) != 0:
            code = errno
    if code:
        raise OSError(code, os.strerror(code))
