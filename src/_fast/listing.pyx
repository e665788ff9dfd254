"""The newest files of a walk; the answer as JSON."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from toolserver._fast.lines cimport Text, append, append_json, release
from toolserver._fast.walk cimport (
    END,
    FOUND,
    LINK,
    WAIT,
    Moment,
    Walk,
    age,
    flag,
    found_t,
    ticks,
    walk_fail,
    walk_next,
    walk_target,
    walk_wait,
)

cdef extern from "<unistd.h>" nogil:
    int close(int fd)

cdef extern from "listing.h" namespace "listing" nogil:
    cppclass Newest:
        size_t most
        int add(Moment mtime, const char* directory, size_t directory_size, const char* name, size_t name_size) noexcept
        int merge(const Newest& other) noexcept
        void finish() noexcept
        size_t count() noexcept
        const char* path(size_t which) noexcept
        size_t path_size(size_t which) noexcept


cdef int write_paths(Newest* files, size_t most, Text* to) noexcept nogil:
    """Write the list of paths. -1: no memory."""
    cdef size_t i
    if append(to, b"[", 1):
        return -1
    for i in range(min(files.count(), most)):
        if append(to, b',"' if i else b'"', 2 if i else 1):
            return -1
        if append_json(to, files.path(i), files.path_size(i)) or append(to, b'"', 1):
            return -1
    return append(to, b"]", 1)


cdef class Listing(Walk):
    """See the stub."""

    cdef vector[Newest] found
    cdef size_t most

    def __cinit__(self, *args, Py_ssize_t most=5000, **_):
        cdef int i
        if most < 0:
            raise ValueError("a negative number")
        self.most = most
        self.found.resize(self.width)
        for i in range(self.width):
            self.found[i].most = most + 1

    cdef int advance(self, int index) noexcept nogil:
        """List files until the time is over or nothing is left to take: END, TURN, WAIT."""
        cdef found_t found
        cdef Moment mtime
        cdef int what, fd
        while True:
            what = walk_next(&self.walkers[index], &found)
            if what != FOUND:
                if what == WAIT:
                    walk_wait(&self.walkers[index])
                return what
            if found.kind == LINK:
                fd = walk_target(&self.walkers[index], &found)
                if fd < 0:
                    continue
                close(fd)
            if not age(found.dir_fd, found.name, found.kind, &mtime):
                continue
            if self.found[index].add(mtime, found.item.dir.path, found.item.dir.size, found.name, found.size):
                walk_fail(&self.walk)

    def work(self, int index, double seconds):
        """See the stub."""
        cdef int what
        if not 0 <= index < self.width:
            raise IndexError(index)
        self.walkers[index].deadline = ticks() + <int64_t>(seconds * 1e9)
        with nogil:
            what = self.advance(index)
        if flag(&self.walk.failed):
            raise MemoryError
        return what != END

    def answer(self):
        """See the stub."""
        cdef Newest all
        cdef Text to
        cdef size_t i
        cdef bint failed = False
        memset(&to, 0, sizeof(to))
        all.most = self.most + 1
        try:
            with nogil:
                for i in range(self.found.size()):
                    failed = failed or all.merge(self.found[i]) != 0
                all.finish()
                failed = failed or write_paths(&all, self.most, &to) != 0
            if failed:
                raise MemoryError
            return PyBytes_FromStringAndSize(<const char*>to.data, to.used), all.count() > self.most
        finally:
            release(&to)
