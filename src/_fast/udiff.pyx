"""Unified diffs: what their lines are, where their hunks go, and the file that comes out."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

import os

cdef extern from "udiff_binary.h" namespace "udiff" nogil:
    struct Bytes:
        const char* at
        uint32_t size

    cppclass LineTable:
        uint32_t count()
        Bytes operator[](uint32_t)
        void index(const char*, uint32_t) except +

    enum Kind:
        K_TEXT "udiff::TEXT"
        K_GIT "udiff::GIT"
        K_PAIR "udiff::PAIR"
        K_HALF "udiff::HALF"
        K_HUNK "udiff::HUNK"
        K_BINARY "udiff::BINARY"
        K_DIFFER "udiff::DIFFER"
        K_MAIL "udiff::MAIL"
        K_EXTENDED "udiff::EXTENDED"
        K_END "udiff::END"

    enum Flag:
        F_NUMBERED "udiff::NUMBERED"
        F_RECOUNTED "udiff::RECOUNTED"
        F_LOST_BLANK "udiff::LOST_BLANK"
        F_CUT "udiff::CUT"

    struct Hunk:
        uint32_t header
        uint32_t first
        uint32_t last
        uint32_t stated
        uint32_t old_lines
        uint32_t flags

    enum Fault:
        FINE
        BAD_HEADER
        NO_LINES
        ONLY_CONTEXT
        HALF_HEADER
        STRANGE_LINE
        EARLY_MARKER
        LATE_LINE

    cppclass DiffReader:
        LineTable lines
        uint32_t fault_line
        uint32_t next(uint32_t, cbool, cbool, Kind*)
        uint32_t message_end(uint32_t)
        Fault hunks(uint32_t*, vector[Hunk]*) except +

    cbool decode(const DiffReader&, uint32_t*, vector[char]*) except +
    Bytes without_cr(Bytes)
    int64_t delta_size(Bytes, uint64_t)
    cbool c_apply_delta "udiff::apply_delta"(Bytes, Bytes, char*)

cdef extern from "udiff_place.h" namespace "udiff" nogil:
    enum Misfit:
        PLACED
        NOWHERE
        OUT_OF_ORDER
        SEVERAL
        BLANKS
        NO_LINE
        TOO_MUCH

    enum Note:
        N_MOVED "udiff::MOVED"
        N_BLANKS_ASIDE "udiff::BLANKS_ASIDE"
        N_NO_END "udiff::NO_END"

    enum:
        NONE "udiff::NONE"

    struct Spot:
        uint32_t place
        uint32_t notes

    struct Refusal:
        Misfit misfit
        uint32_t hunk
        vector[uint32_t] places
        size_t count
        uint32_t expected
        uint32_t found
        uint32_t absent

    cppclass Placer:
        Placer(const DiffReader&, const vector[Hunk]&, uint64_t) except +
        vector[Spot] spots
        Refusal refusal
        LineTable& file
        cbool place() except +
        uint64_t write(char*)

TEXT = K_TEXT
GIT = K_GIT
PAIR = K_PAIR
HALF = K_HALF
HUNK = K_HUNK
BINARY = K_BINARY
DIFFER = K_DIFFER
MAIL = K_MAIL
EXTENDED = K_EXTENDED
END = K_END
MOVED = 1
BLANKS_ASIDE = 2
NO_END = 4
RECOUNTED = 8
UNNUMBERED = 16
LOST_BLANK = 32
CUT = 64

# random in each process, so that callers cannot tell which lines share a slot
cdef uint64_t KEY = int.from_bytes(os.urandom(8), "little") | 1

cdef list MISFITS = [None, "nowhere", "out of order", "several", "blanks", "no line", "too much", "goes on"]
cdef list FAULTS = [
    None,
    "a hunk header is `@@ -line,count +line,count @@`, or `@@ @@` without numbers",
    "this hunk has no lines",
    "this hunk changes nothing: it has neither `-` nor `+` lines",
    "a file header is a `--- ` line and a `+++ ` line after it; one of the two is missing here",
    "a line within a hunk begins with a blank, `-`, `+` or `\\`; this one does not, and the hunk goes on",
    "a no-newline marker stands before the first line of its hunk",
    "a line follows a no-newline marker of its own side",
]


class MalformedDiff(ValueError):
    def __init__(self, line, text):
        super().__init__(text)
        self.line = line


class Misplaced(ValueError):
    pass


class TooLarge(ValueError):
    def __init__(self, size):
        super().__init__(f"{size} bytes")
        self.size = size


cdef bytes taken(Bytes text):
    return PyBytes_FromStringAndSize(text.at, text.size)


cdef int check_size(Py_ssize_t size) except -1:
    if size >= 0xFFFFFFFF:
        raise OverflowError("a text of 4 GiB or more")
    return 0


cdef class Diff:
    cdef bytes text
    cdef DiffReader reader

    def __init__(self, bytes text not None):
        check_size(PyBytes_GET_SIZE(text))
        self.text = text
        cdef const char* data = PyBytes_AS_STRING(text)
        cdef uint32_t size = <uint32_t>PyBytes_GET_SIZE(text)
        with nogil:
            self.reader.lines.index(data, size)

    def __len__(self):
        return self.reader.lines.count() if self.text is not None else 0

    def line(self, Py_ssize_t index):
        if index < 0 or index >= len(self):
            raise IndexError(index)
        return taken(without_cr(self.reader.lines[<uint32_t>index]))

    def next(self, Py_ssize_t index, cbool in_header, cbool halves):
        cdef Kind kind = K_END
        cdef uint32_t line = <uint32_t>min(max(index, 0), len(self))
        if line < len(self):
            with nogil:
                line = self.reader.next(line, in_header, halves, &kind)
        return <int>kind, line

    def message_end(self, Py_ssize_t index):
        if index < 0 or index >= len(self):
            raise IndexError(index)
        cdef uint32_t line = <uint32_t>index
        with nogil:
            line = self.reader.message_end(line)
        return line

    def hunks(self, Py_ssize_t index):
        if index < 0 or index >= len(self):
            raise IndexError(index)
        cdef Hunks made = Hunks.__new__(Hunks)
        cdef uint32_t line = <uint32_t>index
        cdef Fault fault
        made.diff = self
        with nogil:
            fault = self.reader.hunks(&line, &made.hunks)
        if fault != FINE:
            raise MalformedDiff(self.reader.fault_line + 1, FAULTS[<int>fault])
        return made, line

    def base85(self, Py_ssize_t index):
        cdef vector[char] data
        cdef uint32_t line = <uint32_t>min(max(index, 0), len(self))
        cdef cbool fine = True
        if line < len(self):
            with nogil:
                fine = decode(self.reader, &line, &data)
        if not fine:
            raise MalformedDiff(line + 1, "this line is not git's base85")
        return PyBytes_FromStringAndSize(data.data(), <Py_ssize_t>data.size()), line


cdef class Hunks:
    cdef Diff diff
    cdef vector[Hunk] hunks

    def __len__(self):
        return <Py_ssize_t>self.hunks.size()

    @property
    def creates(self):
        return (
            self.hunks.size() == 1
            and self.hunks[0].flags & F_NUMBERED != 0
            and self.hunks[0].stated == 0
            and self.hunks[0].old_lines == 0
        )

    def apply(self, bytes content not None, uint64_t limit):
        check_size(PyBytes_GET_SIZE(content))
        if self.hunks.size() == 0:
            return content, []
        cdef const char* data = PyBytes_AS_STRING(content)
        cdef uint32_t length = <uint32_t>PyBytes_GET_SIZE(content)
        cdef Placer* placer = new Placer(self.diff.reader, self.hunks, KEY)
        cdef cbool placed
        cdef uint64_t size = 0
        cdef bytes result
        cdef char* out
        try:
            with nogil:
                placer.file.index(data, length)
                placed = placer.place()
                if placed:
                    size = placer.write(NULL)
            if not placed:
                raise self.misplaced(placer)
            if size > limit:
                raise TooLarge(size)
            result = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
            out = PyBytes_AS_STRING(result)
            with nogil:
                placer.write(out)
            return result, self.forgiven(placer)
        finally:
            del placer

    cdef list forgiven(self, Placer* placer):
        cdef size_t at
        cdef Hunk hunk
        cdef uint32_t notes
        cdef list told = []
        for at in range(self.hunks.size()):
            hunk = self.hunks[at]
            notes = placer.spots[at].notes
            if hunk.flags & F_NUMBERED == 0:
                notes |= 16
            elif hunk.flags & F_RECOUNTED:
                notes |= 8
            if hunk.flags & F_LOST_BLANK:
                notes |= 32
            if hunk.flags & F_CUT:
                notes |= 64
            if notes:
                stated = <long long>hunk.stated if hunk.flags & F_NUMBERED else -1
                line = <long long>placer.spots[at].place + (hunk.old_lines > 0)
                told.append((at + 1, hunk.header + 1, stated, line, notes))
        return told

    cdef object misplaced(self, Placer* placer):
        cdef Refusal* refusal = &placer.refusal
        cdef Hunk hunk = self.hunks[refusal.hunk]
        cdef int first = 1 if hunk.old_lines > 0 else 0
        cdef uint32_t place
        error = Misplaced(MISFITS[<int>refusal.misfit])
        error.kind = MISFITS[<int>refusal.misfit]
        error.hunk = refusal.hunk + 1
        error.header = hunk.header + 1
        error.stated = hunk.stated if hunk.flags & F_NUMBERED else None
        error.places = [<long long>place + first for place in refusal.places]
        error.count = refusal.count
        error.expected = error.found = error.absent = None
        error.line = 0
        if refusal.expected != NONE:
            error.expected = self.body_line(refusal.expected)
            error.line = <long long>refusal.found + 1
            if refusal.found < placer.file.count():
                error.found = taken(placer.file[refusal.found])
        if refusal.absent != NONE:
            error.absent = (<long long>refusal.absent + 1, self.body_line(refusal.absent))
        return error

    cdef bytes body_line(self, uint32_t line):
        """Return a line of a body without its sign."""
        return taken(self.diff.reader.lines[line])[1:]

    def lost_blanks(self, Py_ssize_t hunk):
        cdef uint32_t line
        cdef list found = []
        if hunk < 1 or hunk > <Py_ssize_t>self.hunks.size():
            raise IndexError(hunk)
        for line in range(self.hunks[hunk - 1].first, self.hunks[hunk - 1].last):
            if not self.diff.reader.lines[line].size or self.diff.reader.lines[line].at[0] == c"\r":
                found.append(<long long>line + 1)
                if len(found) == 10:
                    break
        return found


def apply_delta(bytes base not None, bytes delta not None, uint64_t limit):
    check_size(PyBytes_GET_SIZE(base))
    check_size(PyBytes_GET_SIZE(delta))
    cdef Bytes old, steps
    old.at = PyBytes_AS_STRING(base)
    old.size = <uint32_t>PyBytes_GET_SIZE(base)
    steps.at = PyBytes_AS_STRING(delta)
    steps.size = <uint32_t>PyBytes_GET_SIZE(delta)
    cdef int64_t size = delta_size(steps, old.size)
    if size < 0:
        raise ValueError("a delta for another file")
    if <uint64_t>size > limit:
        raise TooLarge(size)
    cdef bytes result = PyBytes_FromStringAndSize(NULL, size)
    cdef char* out = PyBytes_AS_STRING(result)
    cdef cbool fine
    with nogil:
        fine = c_apply_delta(old, steps, out)
    if not fine:
        raise ValueError("a damaged delta")
    return result
