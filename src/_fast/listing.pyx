"""The newest files of a walk; the answer as JSON."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
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
    cppclass Path:
        const char* directory
        size_t directory_size
        const char* name
        size_t size
    cppclass Newest:
        size_t most
        int add(
            Moment mtime, uint64_t visit, const char* directory, size_t directory_size, const char* name, size_t size
        ) noexcept
        void finish() noexcept
        bint before(size_t which, const Newest& other, size_t its) noexcept
        size_t count() noexcept
        bint plain() noexcept
        Path path(size_t which) noexcept


cdef int write_paths(
    const vector[Newest]& found, size_t* taken, size_t most, Text* to, bint* more
) noexcept nogil:
    """Write the list of the newest that the workers found, each in order; `more`: there are others. -1: no memory.

    `taken` is how many of each are written, all 0 to begin with.
    """
    cdef size_t written = 0, i, best
    cdef Path path
    cdef int failed
    if append(to, b"[", 1):
        return -1
    while True:
        best = found.size()
        for i in range(found.size()):
            if taken[i] < found[i].count() and (
                best == found.size() or found[i].before(taken[i], found[best], taken[best])
            ):
                best = i
        more[0] = best != found.size()
        if not more[0] or written == most:
            return append(to, b"]", 1)
        if append(to, b',"' if written else b'"', 2 if written else 1):
            return -1
        path = found[best].path(taken[best])
        if found[best].plain():
            failed = append(to, path.directory, path.directory_size)
        else:
            failed = append_json(to, path.directory, path.directory_size)
        if failed or (path.directory_size and append(to, b"/", 1)):
            return -1
        failed = append(to, path.name, path.size) if found[best].plain() else append_json(to, path.name, path.size)
        if failed or append(to, b'"', 1):
            return -1
        taken[best] += 1
        written += 1


cdef class Listing(Walk):
    """See the stub."""

    cdef vector[Newest] found
    cdef size_t most

    def __cinit__(self, *args, Py_ssize_t most=5000, **_):
        cdef int i
        if most < 0:
            raise ValueError("a negative number")
        self.most = most
        self.walk.ordered = False
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
                if what == END:
                    self.found[index].finish()
                return what
            if found.kind == LINK:
                fd = walk_target(&self.walkers[index], &found)
                if fd < 0:
                    continue
                close(fd)
            if not age(found.dir_fd, found.name, found.kind, &mtime):
                continue
            if self.found[index].add(
                mtime, self.walkers[index].visits, found.dir.path, found.dir.size, found.name, found.size
            ):
                walk_fail(&self.walk)

    def work(self, int index, double seconds):
        """See the stub."""
        cdef int what
        if not 0 <= index < self.width:
            raise IndexError(index)
        self.walkers[index].deadline = ticks() + <int64_t>(seconds * 1e9)
        with nogil:
            what = self.advance(index)
        self.check()
        return what != END

    def answer(self):
        """See the stub."""
        cdef Text to
        cdef int failed
        cdef bint more = False
        cdef vector[size_t] taken = vector[size_t](self.found.size(), 0)
        memset(&to, 0, sizeof(to))
        try:
            with nogil:
                failed = write_paths(self.found, taken.data(), self.most, &to, &more)
            if failed:
                raise MemoryError
            return PyBytes_FromStringAndSize(<const char*>to.data, to.used), more
        finally:
            release(&to)
