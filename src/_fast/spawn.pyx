"""Starts a program without copying the server's memory (posix_spawn), whatever the size of the server."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdlib cimport free, malloc

import errno
import os

cdef extern from *:
    """
    #include <fcntl.h>
    #include <signal.h>
    #include <spawn.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    #ifndef SYS_close_range
    #define SYS_close_range 436
    #endif

    /* Sets close-on-exec on every descriptor from `first` up (Linux 5.11, no wrapper in older C libraries). */
    static int close_from_on_exec(unsigned int first)
    {
        return (int)syscall(SYS_close_range, first, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
    }
    """
    int close_from_on_exec(unsigned int first) nogil

cdef extern from "signal.h" nogil:
    ctypedef struct sigset_t:
        pass
    int sigemptyset(sigset_t* kinds)
    int sigaddset(sigset_t* kinds, int kind)

cdef extern from "fcntl.h" nogil:
    enum:
        O_RDWR

cdef extern from "spawn.h" nogil:
    ctypedef struct posix_spawnattr_t:
        pass
    ctypedef struct posix_spawn_file_actions_t:
        pass
    enum:
        POSIX_SPAWN_SETSID
        POSIX_SPAWN_SETSIGDEF
        POSIX_SPAWN_SETSIGMASK
    int posix_spawnattr_init(posix_spawnattr_t*)
    int posix_spawnattr_destroy(posix_spawnattr_t*)
    int posix_spawnattr_setflags(posix_spawnattr_t*, short)
    int posix_spawnattr_setsigdefault(posix_spawnattr_t*, const sigset_t*)
    int posix_spawnattr_setsigmask(posix_spawnattr_t*, const sigset_t*)
    int posix_spawn_file_actions_init(posix_spawn_file_actions_t*)
    int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t*)
    int posix_spawn_file_actions_addfchdir_np(posix_spawn_file_actions_t*, int)
    int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t*, int, int)
    int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t*, int, const char*, int, unsigned int)
    int posix_spawn(
        int* pid, const char* path, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char** argv, char** env
    )

cdef enum:
    SIGNALS = 31  # the signals of POSIX; those that the server ignores are not ignored in a child
    SIGKILL_ = 9
    SIGSTOP_ = 19
    FIRST_NOT_STANDARD = 3  # the descriptors from here up are a child's only where it is given them


cdef class _Strings:
    """A NULL-terminated array of C strings that keeps the bytes objects it points into."""

    cdef char** items
    cdef tuple kept

    def __cinit__(self, kept):
        cdef Py_ssize_t index
        cdef bytes item
        self.kept = tuple(kept)
        self.items = <char**>malloc((len(self.kept) + 1) * sizeof(char*))
        if self.items == NULL:
            raise MemoryError
        for index, item in enumerate(self.kept):
            if item is None or b"\0" in item:
                raise ValueError("a NUL byte cannot be passed to a program")
            self.items[index] = PyBytes_AS_STRING(item)
        self.items[len(self.kept)] = NULL

    def __dealloc__(self):
        free(self.items)


cdef class _Plan:
    """The attributes and the file actions of one spawn; freed with the object."""

    cdef posix_spawnattr_t attributes
    cdef posix_spawn_file_actions_t actions

    def __cinit__(self):
        _check(posix_spawnattr_init(&self.attributes))
        _check(posix_spawn_file_actions_init(&self.actions))

    def __dealloc__(self):
        posix_spawnattr_destroy(&self.attributes)
        posix_spawn_file_actions_destroy(&self.actions)


cdef int _check(int code) except -1:
    if code != 0:
        raise OSError(code, os.strerror(code))
    return 0


cdef int _lend_nothing() except -1:
    """Keep descriptors from children that the server inherited as inheritable or a library opened so."""
    if close_from_on_exec(FIRST_NOT_STANDARD) == 0:
        return 0
    for name in os.listdir("/proc/self/fd"):
        if int(name) >= FIRST_NOT_STANDARD:
            try:
                os.set_inheritable(int(name), False)
            except OSError as error:
                if error.errno != errno.EBADF:  # the listing's own descriptor, closed meanwhile
                    raise
    return 0


def spawn(bytes path not None, argv, env, int cwd, fds, tty=None):
    """Run a program in a session of its own; return its pid, which is also its process group."""
    cdef _Strings arguments = _Strings(argv), variables = _Strings(env)
    cdef _Plan plan = _Plan()
    cdef sigset_t kinds
    cdef const char* name = PyBytes_AS_STRING(path)
    cdef bytes terminal
    cdef int code, kind, source, target, pid = 0
    sigemptyset(&kinds)
    _check(posix_spawnattr_setsigmask(&plan.attributes, &kinds))
    for kind in range(1, SIGNALS + 1):
        if kind != SIGKILL_ and kind != SIGSTOP_:
            sigaddset(&kinds, kind)
    _check(posix_spawnattr_setsigdefault(&plan.attributes, &kinds))
    _check(
        posix_spawnattr_setflags(
            &plan.attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
        )
    )
    _check(posix_spawn_file_actions_addfchdir_np(&plan.actions, cwd))
    if tty is not None:
        # the first terminal that a session leader opens becomes its controlling one
        target, terminal = tty
        _check(
            posix_spawn_file_actions_addopen(&plan.actions, target, PyBytes_AS_STRING(terminal), O_RDWR, 0)
        )
    for source, target in fds:
        _check(posix_spawn_file_actions_adddup2(&plan.actions, source, target))
    _lend_nothing()
    with nogil:
        code = posix_spawn(&pid, name, &plan.actions, &plan.attributes, arguments.items, variables.items)
    _check(code)
    return pid
