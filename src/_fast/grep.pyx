"""Searching the files of a walk: literals at once, everything else as batches for a regex; answers as JSON."""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.errno cimport EINTR, EPERM, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memmove, memset

import os

from toolserver._fast.lines cimport Text, append, release
from toolserver._fast.rows cimport (
    LONG,
    add_count,
    add_file,
    add_line,
    held_t,
    is_full,
    line_end,
    line_start,
    text_end,
    write_answer,
)
from toolserver._fast.scan cimport NONE, SLACK, Needles, leftmost
from toolserver._fast.walk cimport (
    END,
    FILE_FLAGS,
    FOUND,
    LINK,
    WAIT,
    Walk,
    flag,
    found_t,
    reopen,
    ticks,
    walk_fail,
    walk_hold,
    walk_missed,
    walk_next,
    walk_pause,
    walk_target,
    walk_unhold,
    walk_wait,
    walker_t,
)

cdef extern from "growth.h" namespace "growth" nogil:
    int grow(void** block, size_t* room, size_t need, size_t unit, size_t first) noexcept

cdef extern from "<string.h>" nogil:
    void* memmem(const void* data, size_t size, const void* part, size_t part_size)

cdef extern from "<fcntl.h>" nogil:
    int openat(int directory, const char* name, int flags)
    enum:
        O_NOATIME

cdef extern from "<unistd.h>" nogil:
    int close(int fd)
    Py_ssize_t pread(int fd, void* to, size_t size, int64_t offset)

cdef extern from "<sys/stat.h>" nogil:
    cdef struct stat_t "stat":
        int64_t st_size
    int fstat(int fd, stat_t* out)

cdef extern from "lines.h" namespace "lines" nogil:
    uint8_t* from_utf16(const uint8_t* at, const uint8_t* end, bint big, uint8_t* out) noexcept

cdef enum:
    CONTENT = 1
    FILES = 2
    COUNT = 3
    # What `advance` answers beside END and TURN: the batch is to be judged.
    JUDGE = 10
    # What `settle` answers: all done; the span of a match in a long line is wanted; no memory; what came back is not
    # the piece with marks in it.
    SETTLED = 0
    SPAN = 1
    NO_MEMORY = -1
    GARBLED = -2

cdef size_t MAX_FILE = 10 << 20
cdef size_t HEAD = 8192
# Bytes in which a NUL makes a file binary.
cdef size_t FIRST = 128 << 10
# Bytes read at once: most files are smaller.
cdef size_t MAX_BATCH = 512 << 10
cdef size_t MIN_BATCH = 64 << 10
cdef size_t MAX_CANDIDATES = 20000
# Candidate lines of one file beyond which the file is judged whole.
cdef size_t MAX_HELD = 4096
cdef size_t MIN_PIECE = 256
cdef size_t MAX_PIECE = 64 << 10
# Bytes that the regex is asked about at once: it looks through a piece with a match in it a second time.
cdef size_t FIRST_PIECE = 4 << 10
# The same at first, as long as it is not known how slow the regex is.
cdef int64_t QUICK_NS = 4000000
cdef int64_t SLOW_NS = 20000000
# What a regex takes for a piece of a batch: below QUICK the next piece is larger, above SLOW smaller.
cdef size_t SIGN = 10
# Bytes of the random mark that stands for a match: no file holds it.

_MODES = {"content": CONTENT, "files": FILES, "count": COUNT}


cdef struct chunk_t:
    # What of a file stands where in the text that the regex is given.
    size_t judged
    size_t at
    size_t size
    uint32_t file

cdef struct slot_t:
    # What one worker of a search holds.
    walker_t* walker
    uint8_t* data
    size_t capacity
    size_t used
    Text judged
    held_t* held
    size_t held_count
    size_t held_room
    chunk_t* chunks
    size_t chunk_count
    size_t chunk_room
    size_t batch
    # while a batch is judged
    bint judging
    const uint8_t* text
    size_t text_size
    size_t piece
    size_t piece_at
    size_t piece_end
    size_t in_at
    size_t out_at
    size_t chunk
    size_t file
    size_t span_start
    size_t span_end
    bint span_known
    bint noatime


# ------------------------------------------------------------------------------------------------------------ growing


cdef int make_room(slot_t* slot, size_t need) noexcept nogil:
    """Make the buffer hold `need` bytes and the slack behind them. -1: no memory."""
    return grow(<void**>&slot.data, &slot.capacity, need + SLACK, 1, 512 << 10)


# ------------------------------------------------------------------------------------------------------ reading files


cdef Py_ssize_t read_at(int fd, uint8_t* to, size_t size, size_t offset) noexcept nogil:
    """Read at an offset, which a FIFO refuses. Answers the bytes read, fewer only at the end; -1: an error."""
    cdef size_t have = 0
    cdef Py_ssize_t got
    while have < size:
        got = pread(fd, to + have, size - have, offset + have)
        if got < 0 and errno == EINTR:
            continue
        if got < 0:
            return -1
        if got == 0:
            break
        have += got
    return have


cdef bint is_utf16(const uint8_t* data, size_t size) noexcept nogil:
    return size >= 2 and ((data[0] == 0xff and data[1] == 0xfe) or (data[0] == 0xfe and data[1] == 0xff))


cdef bint is_binary(const uint8_t* data, size_t size) noexcept nogil:
    return memchr(data, 0, min(size, HEAD)) != NULL


cdef int open_found(slot_t* slot, const found_t* found) noexcept nogil:
    """Open a file of the walk for reading; -1: it cannot be."""
    cdef int fd
    if found.kind == LINK:
        fd = walk_target(slot.walker, found)
        return reopen(fd) if fd >= 0 else -1
    if slot.noatime:
        fd = openat(found.dir_fd, found.name, FILE_FLAGS | O_NOATIME)
        if fd >= 0 or errno != EPERM:
            return fd
        slot.noatime = False
    return openat(found.dir_fd, found.name, FILE_FLAGS)


cdef Py_ssize_t load(slot_t* slot, const found_t* found) noexcept nogil:
    """Read a file into the buffer behind what it holds. Answers its size; 0: it is not to be searched."""
    cdef int fd = open_found(slot, found)
    cdef Py_ssize_t got, more
    cdef stat_t status
    cdef uint8_t* to
    if fd < 0:
        walk_missed(slot.walker.walk)
        return 0
    if make_room(slot, slot.used + FIRST):
        close(fd)
        walk_fail(slot.walker.walk)
        return 0
    to = slot.data + slot.used
    got = read_at(fd, to, FIRST, 0)
    if got == <Py_ssize_t>FIRST:
        if not is_utf16(to, got) and is_binary(to, got):
            got = 0
        elif fstat(fd, &status) or <uint64_t>status.st_size > MAX_FILE:
            got = 0
        elif make_room(slot, slot.used + max(<size_t>status.st_size, FIRST) + 4096):
            walk_fail(slot.walker.walk)
            got = 0
        while got >= <Py_ssize_t>FIRST and got <= <Py_ssize_t>MAX_FILE:
            # what is behind the size that was told is asked too: the file may have grown
            more = slot.capacity - SLACK - slot.used - got
            more = read_at(fd, slot.data + slot.used + got, min(<size_t>more, MAX_FILE + 1 - got), got)
            if more <= 0:
                got = got if more == 0 else 0
                break
            got += more
            if make_room(slot, slot.used + got + 4096):
                walk_fail(slot.walker.walk)
                got = 0
        if got > <Py_ssize_t>MAX_FILE:
            got = 0
    close(fd)
    return got if got > 0 else 0


cdef Py_ssize_t decode(slot_t* slot, size_t size) noexcept nogil:
    """Turn UTF-16 with a byte order mark, just read, into UTF-8 in place. Answers the new size; -1: no memory."""
    cdef uint8_t* raw
    cdef uint8_t* end
    cdef bint big
    if make_room(slot, slot.used + 3 * size + 16):
        return -1
    raw = slot.data + slot.used + 2 * size + 8
    memmove(raw, slot.data + slot.used, size)
    big = raw[0] == 0xfe
    end = from_utf16(raw + 2, raw + size, big, slot.data + slot.used)
    return end - (slot.data + slot.used)


cdef size_t without_cr(uint8_t* data, size_t size) noexcept nogil:
    """Drop the CR of each CRLF in place. Answers the new size."""
    cdef uint8_t* at = <uint8_t*>memchr(data, c"\r", size)
    cdef uint8_t* end = data + size
    cdef uint8_t* to
    cdef uint8_t* next
    cdef size_t part
    while at != NULL and (at + 1 == end or at[1] != c"\n"):
        at = <uint8_t*>memchr(at + 1, c"\r", end - at - 1)
    if at == NULL:
        return size
    to = at
    at += 1
    while at < end:
        next = <uint8_t*>memchr(at, c"\r", end - at)
        while next != NULL and (next + 1 == end or next[1] != c"\n"):
            next = <uint8_t*>memchr(next + 1, c"\r", end - next - 1)
        part = (end if next == NULL else next) - at
        memmove(to, at, part)
        to += part
        at += part + (1 if next != NULL else 0)
    return to - data


# ----------------------------------------------------------------------------------------------------------- a search


cdef class Grep(Walk):
    """See the stub."""

    cdef slot_t* slots
    cdef int mode
    cdef size_t lines
    cdef size_t most
    cdef size_t limit
    cdef Needles needles
    cdef bint whole
    cdef object _contains
    cdef object _mark
    cdef object _search
    cdef bytes _sign
    cdef const char* sign
    cdef size_t max_batch

    def __cinit__(
        self,
        *args,
        str mode="content",
        Py_ssize_t lines=0,
        Py_ssize_t most=2000,
        Py_ssize_t most_bytes=10 << 20,
        Needles needles=None,
        object probe=None,
        object mark=None,
        Py_ssize_t batch=0,
        **_
    ):
        cdef int i
        if lines < 0 or most < 0 or most_bytes < 0 or batch < 0:
            raise ValueError("a negative number")
        if needles is None and mark is None:
            raise ValueError("nothing to search for")
        self.mode = _MODES[mode]
        self.lines = lines
        self.most = most
        self.limit = most_bytes
        self.walk.most_entries = most + 1
        self.walk.most_weight = most_bytes + 1
        self.needles = needles
        self.whole = needles is None
        self.max_batch = batch or MAX_BATCH
        if probe is not None:
            self._contains = probe.contains
            self._search = probe.search
            self._mark = mark.subn
            self._sign = b"\xff" + bytes(0x80 | byte for byte in os.urandom(SIGN - 1))
            self.sign = PyBytes_AS_STRING(self._sign)
        self.slots = <slot_t*>calloc(self.width, sizeof(slot_t))
        if self.slots == NULL:
            raise MemoryError
        for i in range(self.width):
            self.slots[i].walker = &self.walkers[i]
            self.slots[i].batch = min(MIN_BATCH, self.max_batch)
            self.slots[i].piece = min(FIRST_PIECE, self.max_batch)
            self.slots[i].noatime = True

    def __dealloc__(self):
        cdef int i
        if self.slots == NULL:
            return
        for i in range(self.width):
            self._free(&self.slots[i])
        free(self.slots)

    cdef void _free(self, slot_t* slot) noexcept:
        cdef size_t at
        for at in range(slot.file, slot.held_count):
            walk_unhold(&self.walk, slot.held[at].item)
        free(slot.data)
        free(slot.held)
        free(slot.chunks)
        release(&slot.judged)

    # ------------------------------------------------------------------------------------------------ looking at files

    cdef held_t new_file(self, slot_t* slot, const found_t* found, size_t at, size_t size) noexcept nogil:
        """Describe a file that lies in the buffer."""
        cdef held_t file
        memset(&file, 0, sizeof(file))
        file.item = found.item
        file.name = found.name
        file.name_size = found.size
        file.at = at
        file.size = size
        file.line = 1
        file.counted = at
        return file

    cdef void look(self, slot_t* slot, const found_t* found) noexcept nogil:
        """Read a file and search it, or keep it for the regex."""
        cdef Py_ssize_t size = load(slot, found)
        cdef size_t at = slot.used
        cdef const uint8_t* data = slot.data + at
        cdef bint decoded = False
        cdef held_t file
        if size == 0:
            return
        if is_utf16(data, size):
            decoded = True
            size = decode(slot, size)
            if size < 0:
                walk_fail(&self.walk)
                return
        elif size >= 3 and data[0] == 0xef and data[1] == 0xbb and data[2] == 0xbf:
            at += 3
            size -= 3
        if size <= 0:
            return
        file = self.new_file(slot, found, at, size)
        if self.whole:
            if decoded or not is_binary(data, size):
                self.keep_whole(slot, &file)
        elif self._mark is None:
            if self.look_literally(slot, &file, decoded):
                walk_fail(&self.walk)
        elif self.keep_candidates(slot, &file, decoded):
            walk_fail(&self.walk)

    cdef size_t next_candidate(
        self, slot_t* slot, const held_t* file, size_t start, size_t* begin, size_t* stop, size_t* length
    ) noexcept nogil:
        """Find the next line from the line start `start` on that holds a literal. Answers where, NONE: none does."""
        cdef size_t end = file.at + file.size, at, last, since = start
        while since < end:
            at = self.needles.find(self.needles.p[0], slot.data, since, end, length)
            if at == NONE:
                return NONE
            begin[0] = line_start(slot.data, start, at)
            stop[0] = line_end(slot.data, at + length[0], end)
            last = text_end(slot.data, begin[0], stop[0], end, file.plain)
            if at + length[0] <= last:
                return at
            # it reaches into the CR of a CRLF; another may stand before it
            at = leftmost(self.needles.p[0], slot.data, begin[0], last, length)
            if at != NONE:
                return at
            since = start = stop[0] + 1
        return NONE

    cdef int look_literally(self, slot_t* slot, held_t* file, bint decoded) noexcept nogil:
        """Search a file where a literal alone decides. -1: no memory."""
        cdef const uint8_t* data = slot.data
        cdef size_t end = file.at + file.size, start = file.at, begin, stop, length, at, last
        while start < end:
            at = self.next_candidate(slot, file, start, &begin, &stop, &length)
            if at == NONE:
                break
            if start == file.at and not decoded and is_binary(data + file.at, file.size):
                return 0
            start = stop + 1
            if self.mode == FILES:
                return add_file(file)
            if self.mode == COUNT:
                file.count += 1
                continue
            last = text_end(data, begin, stop, end, file.plain)
            if last - begin > LONG:
                at = leftmost(self.needles.p[0], data, begin, last, &length)
            if add_line(file, data, begin, stop, at, at + length, self.lines):
                return -1
            if is_full(&self.walk, file.item) or flag(&self.walk.stop):
                return 0
        return add_count(file) if file.count else 0

    # ------------------------------------------------------------------------------------------- keeping for the regex

    cdef int hold(self, slot_t* slot, const held_t* file, size_t used) noexcept nogil:
        """Keep a file in the buffer until it is judged; `used`: where the next one goes. -1: no memory."""
        if grow(<void**>&slot.held, &slot.held_room, slot.held_count + 1, sizeof(held_t), 64):
            return -1
        slot.held[slot.held_count] = file[0]
        slot.held_count += 1
        slot.used = used
        walk_hold(file.item)
        return 0

    cdef int add_chunk(self, slot_t* slot, size_t judged, size_t at, size_t size) noexcept nogil:
        """Say where in the text for the regex a part of the next file to hold stands. -1: no memory."""
        cdef chunk_t* chunk
        if grow(<void**>&slot.chunks, &slot.chunk_room, slot.chunk_count + 1, sizeof(chunk_t), 64):
            return -1
        chunk = &slot.chunks[slot.chunk_count]
        chunk.judged = judged
        chunk.at = at
        chunk.size = size
        chunk.file = <uint32_t>slot.held_count
        slot.chunk_count += 1
        return 0

    cdef void keep_whole(self, slot_t* slot, held_t* file) noexcept nogil:
        """Keep a file to be judged where it lies."""
        cdef uint8_t* data = slot.data + slot.used
        if file.at != slot.used:
            # what was dropped in front must not stand before the first line
            memmove(data, slot.data + file.at, file.size)
            file.at = file.counted = slot.used
        file.size = without_cr(data, file.size)
        file.plain = True
        if data[file.size - 1] != c"\n":
            data[file.size] = c"\n"
            file.size += 1
        if self.add_chunk(slot, file.at, file.at, file.size - 1) or self.hold(slot, file, file.at + file.size):
            walk_fail(&self.walk)

    cdef int keep_candidates(self, slot_t* slot, held_t* file, bint decoded) noexcept nogil:
        """Keep the lines of a file that hold a literal. -1: no memory."""
        cdef size_t end = file.at + file.size, start = file.at, begin, stop, length, last
        cdef size_t chunks = slot.chunk_count, judged = slot.judged.used
        while start < end:
            if self.next_candidate(slot, file, start, &begin, &stop, &length) == NONE:
                break
            if start == file.at and not decoded and is_binary(slot.data + file.at, file.size):
                return 0
            if slot.chunk_count - chunks == MAX_CANDIDATES:
                slot.chunk_count = chunks
                slot.judged.used = judged
                return self.keep_copy(slot, file)
            start = stop + 1
            last = text_end(slot.data, begin, stop, end, file.plain)
            if self.add_chunk(slot, slot.judged.used, begin, last - begin):
                return -1
            if append(&slot.judged, <const char*>slot.data + begin, last - begin) or append(&slot.judged, b"\n", 1):
                return -1
        if slot.chunk_count == chunks:
            return 0
        return self.hold(slot, file, end)

    cdef int keep_copy(self, slot_t* slot, held_t* file) noexcept nogil:
        """Keep a whole file as one candidate. -1: no memory."""
        cdef size_t at = file.at, size = without_cr(slot.data + at, file.size)
        file.size = size
        file.plain = True
        if slot.data[at + size - 1] == c"\n":
            size -= 1
        if self.add_chunk(slot, slot.judged.used, at, size):
            return -1
        if append(&slot.judged, <const char*>slot.data + at, size) or append(&slot.judged, b"\n", 1):
            return -1
        return self.hold(slot, file, at + file.size)

    cdef bint full_batch(self, const slot_t* slot) noexcept nogil:
        return slot.used >= slot.batch or slot.judged.used >= slot.batch or slot.held_count >= MAX_HELD

    cdef int advance(self, slot_t* slot) noexcept nogil:
        """Work until the batch is full, nothing is left or the time is over: JUDGE, END, WAIT, TURN."""
        cdef found_t found
        cdef int what
        while True:
            what = walk_next(slot.walker, &found)
            if what == FOUND:
                self.look(slot, &found)
                if self.full_batch(slot):
                    return JUDGE
                continue
            if slot.held_count and (what == WAIT or (what == END and not flag(&self.walk.stop))):
                return JUDGE
            if what == WAIT:
                walk_wait(slot.walker)
            return what

    # ----------------------------------------------------------------------------------------------- judging a batch

    cdef void begin_judging(self, slot_t* slot) noexcept:
        """Hand the batch over: what the regex is given ends before the last LF."""
        slot.judging = True
        slot.text = slot.data if self.whole else slot.judged.data
        slot.text_size = (slot.used if self.whole else slot.judged.used) - 1
        slot.piece_at = slot.chunks[0].judged
        slot.chunk = slot.file = 0
        slot.span_known = False

    cdef void choose_end(self, slot_t* slot) noexcept nogil:
        """Let the next piece end at a line end, about `piece` bytes on."""
        cdef size_t at = slot.piece_at
        cdef size_t cut = at + slot.piece
        if cut >= slot.text_size:
            slot.piece_end = slot.text_size
            return
        slot.piece_end = line_start(slot.text, at, cut)
        if slot.piece_end > at:
            slot.piece_end -= 1
        else:
            slot.piece_end = line_end(slot.text, cut, slot.text_size)

    cdef int close_files(self, slot_t* slot, size_t upto) noexcept nogil:
        """Be done with the held files before `upto`. -1: no memory."""
        cdef held_t* file
        while slot.file < upto:
            file = &slot.held[slot.file]
            if file.count and add_count(file):
                return -1
            slot.file += 1
            walk_unhold(&self.walk, file.item)
        return 0

    cdef int settle(self, slot_t* slot, const char* out, size_t size) noexcept nogil:
        """Read a marked piece, a mark for a match and its rest of line: SETTLED, SPAN, NO_MEMORY or GARBLED."""
        cdef const uint8_t* data = slot.data
        cdef const char* mark
        cdef size_t hit, past, first, start, stop, last
        cdef chunk_t* chunk
        cdef held_t* file
        while True:
            mark = <const char*>memmem(out + slot.out_at, size - slot.out_at, self.sign, SIGN)
            if mark == NULL:
                return SETTLED
            hit = slot.in_at + (mark - out - slot.out_at)
            past = mark - out + SIGN
            if hit > slot.piece_end or (past < size and out[past] != c"\n"):
                return GARBLED
            while hit > slot.chunks[slot.chunk].judged + slot.chunks[slot.chunk].size:
                slot.chunk += 1
                if slot.chunk == slot.chunk_count:
                    return GARBLED
            chunk = &slot.chunks[slot.chunk]
            if hit < chunk.judged or chunk.file < slot.file:
                return GARBLED
            if self.close_files(slot, chunk.file):
                return NO_MEMORY
            file = &slot.held[slot.file]
            if self.mode == COUNT:
                file.count += 1
            elif self.mode == FILES:
                if not file.told and add_file(file):
                    return NO_MEMORY
            elif not is_full(&self.walk, file.item):
                first = chunk.at + (hit - chunk.judged)
                start = line_start(data, file.at, first)
                stop = line_end(data, first, file.at + file.size)
                last = text_end(data, start, stop, file.at + file.size, file.plain)
                if last - start > LONG and not slot.span_known:
                    slot.span_start = start
                    slot.span_end = last
                    return SPAN
                slot.span_known = False
                if add_line(file, data, start, stop, slot.span_start, slot.span_end, self.lines):
                    return NO_MEMORY
            slot.in_at = line_end(slot.text, hit, slot.piece_end)
            slot.out_at = past

    cdef int take_marks(self, slot_t* slot, bytes out) except -1:
        """Turn a marked piece into results."""
        cdef const char* data = PyBytes_AS_STRING(out)
        cdef size_t size = PyBytes_GET_SIZE(out), start, last
        cdef int what
        slot.in_at = slot.piece_at
        slot.out_at = 0
        while True:
            with nogil:
                what = self.settle(slot, data, size)
            if what == NO_MEMORY:
                raise MemoryError
            if what == GARBLED:
                raise ValueError("the regex answered something else than the text with marks")
            if what == SETTLED:
                return 0
            start = slot.span_start
            last = slot.span_end
            match = self._search(view(slot.data + start, last - start))
            slot.span_known = True
            slot.span_end = start
            if match is not None and 0 <= match.start() <= match.end() <= last - start:
                slot.span_start = start + <size_t>match.start()
                slot.span_end = start + <size_t>match.end()

    cdef int judge_piece(self, slot_t* slot) except -1:
        """Have the regex judge the next piece."""
        cdef int64_t began, took
        with nogil:
            self.choose_end(slot)
            began = ticks()
        piece = view(slot.text + slot.piece_at, slot.piece_end - slot.piece_at)
        if self._contains(piece):
            self.take_marks(slot, self._mark(self._sign, piece)[0])
        took = ticks() - began
        if took > SLOW_NS and slot.piece > MIN_PIECE:
            slot.piece //= 2
        elif took < QUICK_NS and slot.piece < MAX_PIECE:
            slot.piece *= 2
        slot.piece_at = slot.piece_end + 1
        return 0

    cdef int end_judging(self, slot_t* slot) except -1:
        """Empty the batch."""
        cdef int failed
        with nogil:
            failed = self.close_files(slot, slot.held_count)
        if failed:
            raise MemoryError
        slot.judging = False
        slot.held_count = slot.chunk_count = slot.used = slot.judged.used = slot.file = 0
        slot.batch = min(slot.batch * 2, self.max_batch)
        return 0

    def work(self, int index, double seconds):
        """See the stub."""
        cdef slot_t* slot
        cdef int what
        if not 0 <= index < self.width:
            raise IndexError(index)
        slot = &self.slots[index]
        slot.walker.deadline = ticks() + <int64_t>(seconds * 1e9)
        while True:
            while slot.judging:
                if flag(&self.walk.stop):
                    return False
                if slot.piece_at <= slot.text_size:
                    self.judge_piece(slot)
                    if ticks() >= slot.walker.deadline:
                        with nogil:
                            walk_pause(slot.walker)
                        self.check()
                        return True
                else:
                    self.end_judging(slot)
            with nogil:
                what = self.advance(slot)
            if what == JUDGE:
                self.begin_judging(slot)
                continue
            self.check()
            return what != END

    def answer(self):
        """See the stub."""
        cdef Text to, path
        cdef bint truncated = False
        cdef int failed
        memset(&to, 0, sizeof(to))
        memset(&path, 0, sizeof(path))
        try:
            with nogil:
                failed = write_answer(&self.walk, &to, &path, self.mode == FILES, self.most, self.limit, &truncated)
            if failed:
                raise MemoryError
            return PyBytes_FromStringAndSize(<const char*>to.data, to.used), truncated
        finally:
            release(&to)
            release(&path)


cdef object view(const uint8_t* data, size_t size):
    """Return a view of bytes that stay where they are until it is dropped."""
    return PyMemoryView_FromMemory(<char*>data, size, PyBUF_READ)
