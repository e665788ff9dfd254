"""A byte ring with absolute offsets: the newest bytes of a stream, filled straight from a descriptor."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport EAGAIN, EINTR, EIO, errno
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcpy

import os

cdef extern from "unistd.h" nogil:
    ssize_t read(int fd, void* data, size_t size)

cdef extern from "ticks.h" nogil:
    int64_t monotonic_ns "ticks"() noexcept

cdef extern from "string.h" nogil:
    void* memrchr(const void* data, int byte, size_t size)

# Bytes that are kept of each output stream of a command: the size of its ring.
RING_SIZE = 4 * 1024 * 1024

cdef enum:
    # Bytes beyond the limit that a read may fill before they count, so that a read that turns out shorter than asked
    # for overwrites nothing that is still held, nor what another thread copies.
    SLACK = 1 << 18
    # Bytes of the first allocation.
    FIRST_SIZE = 1 << 16
    # Reads between two looks at the clock.
    LOOKS = 4
    # Reads in a row that find nothing before a writer is no longer followed.
    MISSES = 4


cdef Py_ssize_t fill(int fd, char* to, Py_ssize_t room, int64_t end, int* error) noexcept nogil:
    """Read once, or where `end` is not 0 as long as more comes, until then; return how many bytes came.

    `error` is why it stopped: an errno, 0 at the end, -1 where more may be there.
    """
    cdef Py_ssize_t used = 0
    cdef ssize_t got
    cdef int misses = 0, looks = 0
    while True:
        got = read(fd, to + used, room - used)
        if got == 0:
            error[0] = 0
            return used
        if got > 0:
            used += got
            misses = 0
            looks += 1
            if end == 0 or used == room or (looks % LOOKS == 0 and monotonic_ns() >= end):
                error[0] = -1
                return used
            continue
        if errno == EINTR:
            continue
        misses += 1
        if end == 0 or errno != EAGAIN or misses == MISSES:
            error[0] = errno
            return used


cdef class Ring:
    cdef char* data
    cdef Py_ssize_t size      # bytes allocated at `data`
    cdef Py_ssize_t full      # what `size` grows to at most, and the modulus of every offset
    cdef readonly Py_ssize_t limit
    cdef int64_t first        # the oldest offset held
    cdef int64_t last         # one past the newest
    cdef bint busy            # a read without the GIL is filling the ring

    def __cinit__(self, Py_ssize_t limit):
        if limit < 1 or limit > (1 << 40):
            raise ValueError("the limit of a ring is 1 to 2**40 bytes")
        self.data = NULL
        self.limit = limit
        self.full = limit + SLACK

    def __dealloc__(self):
        free(self.data)

    @property
    def start(self):
        return self.first

    @property
    def total(self):
        return self.last

    @property
    def allocated(self):
        return self.size

    def append(self, const unsigned char[::1] data not None):
        cdef Py_ssize_t size = data.shape[0], at = 0, piece, place
        self._begin_filling()
        try:
            if size > self.limit:  # only its end would stay
                at = size - self.limit
                self.last += at
            while at < size:
                piece = self._room(size - at, &place)
                memcpy(self.data + place, &data[at], piece)
                at += piece
                self._advance(piece)
        finally:
            self.busy = False

    def read_from(self, int fd, Py_ssize_t most=SLACK, int64_t follow_ns=0):
        cdef Py_ssize_t room, place, got, done = 0
        cdef int64_t end = monotonic_ns() + follow_ns if follow_ns > 0 else 0
        cdef int error = -1
        if most < 1:
            raise ValueError("a read takes at least one byte")
        self._begin_filling()
        try:
            while error == -1:
                room = self._room(most - done, &place)
                with nogil:
                    got = fill(fd, self.data + place, room, end, &error)
                self._advance(got)
                done += got
                if done == most or end == 0 or monotonic_ns() >= end:
                    break
        finally:
            self.busy = False
        if done or error == 0:
            return done
        if error == EAGAIN:
            return -1
        if error == EIO:  # a terminal whose last user has gone
            return 0
        raise OSError(error, os.strerror(error))

    def slice(self, int64_t since, int64_t until):
        cdef Py_ssize_t size, place, piece
        cdef char* out
        since = max(since, self.first)
        until = min(until, self.last)
        size = max(until - since, 0)
        found = PyBytes_FromStringAndSize(NULL, size)
        if size:
            out = PyBytes_AS_STRING(found)
            place = since % self.full
            piece = min(size, self.full - place)
            memcpy(out, self.data + place, piece)
            memcpy(out + piece, self.data, size - piece)
        return found

    def boundary(self, int64_t until):
        cdef int back
        cdef unsigned char byte
        until = min(until, self.last)
        for back in range(1, 4):
            if until - back < self.first:
                break
            byte = self._byte(until - back)
            if byte < 0x80:
                break
            if byte >= 0xC0:
                return until - back if self._unfinished(until - back, back) else until
        return until

    def after_lines(self, Py_ssize_t lines):
        cdef int64_t at = self.first
        cdef Py_ssize_t place, piece
        cdef const char* found
        while lines > 0 and at < self.last:
            place = at % self.full
            piece = min(self.last - at, self.full - place)
            found = <const char*>memchr(self.data + place, c"\n", piece)
            if found == NULL:
                at += piece
            else:
                at += found - (self.data + place) + 1
                lines -= 1
        return at

    def last_lines(self, Py_ssize_t lines):
        cdef int64_t at = self.last
        cdef Py_ssize_t place, piece
        cdef const char* found
        if lines <= 0 or at == self.first:
            return at
        if self._byte(at - 1) == c"\n":
            at -= 1
        while at > self.first:
            place = (at - 1) % self.full + 1
            piece = min(at - self.first, <int64_t>place)
            found = <const char*>memrchr(self.data + place - piece, c"\n", piece)
            if found == NULL:
                at -= piece
            else:
                lines -= 1
                at -= self.data + place - found
                if lines == 0:
                    return at + 1
        return self.first

    def shrink(self):
        self._begin_filling()
        try:
            if self.last < self.size:
                self._resize(self.last)
        finally:
            self.busy = False

    def release(self):
        self._begin_filling()
        try:
            self.first = self.last
            free(self.data)
            self.data = NULL
            self.size = 0
        finally:
            self.busy = False

    cdef int _begin_filling(self) except -1:
        """Mark the ring as being filled, RuntimeError if it is already; the caller resets `busy`."""
        if self.busy:
            raise RuntimeError("the ring is being filled")
        self.busy = True
        return 0

    cdef Py_ssize_t _room(self, Py_ssize_t wanted, Py_ssize_t* place) except -1:
        """Return how many of the wanted bytes may be put at `place`: at least one, in one piece, growing as needed."""
        cdef Py_ssize_t size
        wanted = min(wanted, SLACK)
        if self.size < self.full:
            if self.last + wanted > self.size or self.data == NULL:
                if self.last > self.full:  # released, or begun with more than fits
                    size = self.full
                else:
                    size = min(self.full, max(max(2 * self.size, FIRST_SIZE), <Py_ssize_t>self.last + wanted))
                self._resize(size)
        place[0] = self.last % self.full
        return min(wanted, self.full - place[0])

    cdef int _resize(self, Py_ssize_t size) except -1:
        cdef char* data = <char*>realloc(self.data, max(size, 1))
        if data == NULL:
            raise MemoryError
        self.data = data
        self.size = size
        return 0

    cdef void _advance(self, Py_ssize_t size) noexcept:
        self.last += size
        if self.last - self.first > self.limit:
            self.first = self.last - self.limit

    cdef unsigned char _byte(self, int64_t at) noexcept:
        return <unsigned char>self.data[at % self.full]

    cdef bint _unfinished(self, int64_t at, int have) noexcept:
        """Tell whether the `have` bytes from `at` are the beginning of a character and not the whole of it."""
        cdef unsigned char lead = self._byte(at), second
        cdef int need
        if lead < 0xC2 or lead > 0xF4:
            return False
        need = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        if have >= need:
            return False
        if have >= 2:
            # Unicode, table 3-7: what may follow E0, ED, F0 and F4 is narrower; anything else is ill-formed at once
            second = self._byte(at + 1)
            if lead == 0xE0 and second < 0xA0:
                return False
            if lead == 0xED and second > 0x9F:
                return False
            if lead == 0xF0 and second < 0x90:
                return False
            if lead == 0xF4 and second > 0x8F:
                return False
        return True
