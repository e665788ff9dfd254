"""Which paths git's index holds: its versions 2 to 4, split ones too."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcmp, memcpy, memset

from toolserver._fast.borrow cimport borrow

cdef extern from "growth.h" namespace "growth" nogil:
    int grow(void** block, size_t* room, size_t need, size_t unit, size_t first) noexcept

cdef extern from *:
    """
    #define lowest_bit(x) __builtin_ctzll(x)
    """
    int lowest_bit(uint64_t x) noexcept nogil

cdef enum:
    FIXED = 40              # bytes of an entry before its object name
    EXTENDED = 0x4000
    MAX_PATH = 4096
    MAX_TEXT = 268435456    # bytes of all paths: an index of version 4 can unfold to far more than its own size
    FILE_MODE = 8           # the upper four bits of a mode
    LINK_MODE = 10

cdef struct tracked_t:
    uint32_t* at        # where each path begins in the text, and the end of the last; sorted
    size_t count
    char* text


cdef inline uint32_t _be32(const uint8_t* p) noexcept nogil:
    return <uint32_t>p[0] << 24 | <uint32_t>p[1] << 16 | <uint32_t>p[2] << 8 | p[3]


cdef inline uint64_t _be64(const uint8_t* p) noexcept nogil:
    return <uint64_t>_be32(p) << 32 | _be32(p + 4)


cdef int _append(index_t* x, const char* start, size_t n, const char* rest, size_t m) noexcept nogil:
    """Add a path of two pieces to the text; `start` may point into it."""
    cdef size_t from_text = start - x.text if n else 0
    if n + m > MAX_PATH or x.used + n + m > MAX_TEXT:
        return BROKEN
    if grow(<void**>&x.text, &x.room, x.used + n + m, 1, 65536) < 0:
        return NO_MEMORY
    memcpy(x.text + x.used, x.text + from_text, n)
    memcpy(x.text + x.used + n, rest, m)
    x.used += n + m
    return 0


cdef int _entry(
    index_t* x, const uint8_t* data, size_t n, size_t* at, size_t hash_size, uint32_t version, path_t* before,
    path_t* path
) noexcept nogil:
    """Read the entry at `at` and move it to the next; `before` is the entry before it, which version 4 builds on."""
    cdef size_t fixed = FIXED + hash_size + 2
    cdef size_t start = at[0], name, end, keep = 0, strip
    cdef uint32_t mode, flags
    cdef const uint8_t* nul
    cdef int rc
    if n - start < fixed + 1:
        return BROKEN
    mode = _be32(data + start + 24) >> 12
    flags = <uint32_t>data[start + fixed - 2] << 8 | data[start + fixed - 1]
    name = start + fixed
    if flags & EXTENDED:
        if version < 3:
            return BROKEN
        name += 2
    if version == 4:
        if name >= n:
            return BROKEN
        strip = data[name] & 0x7f
        while data[name] & 0x80:
            name += 1
            if name >= n or strip > MAX_PATH:
                return BROKEN
            strip = (strip + 1) << 7 | (data[name] & 0x7f)
        name += 1
        if before != NULL:
            if strip > before.size:
                return BROKEN
            keep = before.size - strip
        elif strip:
            return BROKEN
    if name >= n:
        return BROKEN
    nul = <const uint8_t*>memchr(data + name, 0, n - name)
    if nul == NULL:
        return BROKEN
    end = nul - data
    path.entry = <uint32_t>start
    path.at = <uint32_t>x.used
    rc = _append(x, x.text + (before.at if keep else 0), keep, <const char*>data + name, end - name)
    if rc < 0:
        return rc
    path.size = <uint16_t>(x.used - path.at)
    path.kept = mode == FILE_MODE or mode == LINK_MODE
    at[0] = end + 1 if version == 4 else start + (end - start + 8 & ~<size_t>7)
    return 0


cdef int read_index(index_t* x, const uint8_t* data, size_t n, size_t hash_size) noexcept nogil:
    """Read the entries of an index file; 0, BROKEN or NO_MEMORY. The caller frees `paths` and `text` in any case."""
    cdef uint32_t version, count
    cdef size_t at = 12, i
    cdef int rc
    if n < 12 + hash_size or memcmp(data, b"DIRC", 4) != 0:
        return BROKEN
    n -= hash_size
    version = _be32(data + 4)
    count = _be32(data + 8)
    if version < 2 or version > 4 or count > (n - 12) // (FIXED + hash_size + 3):
        return BROKEN
    x.paths = <path_t*>calloc(count + 1, sizeof(path_t))
    x.room = n
    x.text = <char*>malloc(n)
    if x.paths == NULL or x.text == NULL:
        return NO_MEMORY
    for i in range(count):
        if at > n:
            return BROKEN
        rc = _entry(x, data, n, &at, hash_size, version, x.paths + i - 1 if i else NULL, x.paths + i)
        if rc < 0:
            return rc
    if at > n:
        return BROKEN
    x.count = count
    x.end = at
    return 0


cdef const uint8_t* _link(const uint8_t* data, size_t n, size_t at, size_t hash_size, size_t* size) noexcept nogil:
    """Find the extension that makes an index a split one; NULL = it is whole, or broken, where `size` is 0."""
    cdef uint32_t length
    n -= hash_size
    size[0] = 1
    while n - at >= 8:
        length = _be32(data + at + 4)
        if length > n - at - 8:
            size[0] = 0
            return NULL
        if memcmp(data + at, b"link", 4) == 0:
            size[0] = length
            return data + at + 8
        at += 8 + length
    return NULL


cdef int _bits(const uint8_t* p, size_t n, size_t* used, uint8_t* marks, size_t count) noexcept nogil:
    """Set the marks of an EWAH bitmap (one byte a bit, `count` of them); `used` becomes the bitmap's bytes."""
    cdef size_t words, i = 0, at = 0, end, _k
    cdef uint64_t word, run, literals, bits
    if n < 12:
        return BROKEN
    words = _be32(p + 4)
    if words > (n - 12) // 8:
        return BROKEN
    used[0] = 12 + words * 8
    p += 8
    while i < words:
        word = _be64(p + i * 8)
        i += 1
        run = (word >> 1 & <uint64_t>0xffffffff) * 64
        literals = word >> 33
        if word & 1:
            end = at + run
            if end > count + 63 or run > count + 63:
                return BROKEN
            while at < end:
                if at < count:
                    marks[at] = 1
                at += 1
        else:
            at += run
        if literals > words - i:
            return BROKEN
        for _k in range(literals):
            bits = _be64(p + i * 8)
            i += 1
            while bits:
                end = at + lowest_bit(bits)
                if end >= count:
                    return BROKEN
                marks[end] = 1
                bits &= bits - 1
            at += 64
    return 0


cdef int _unsplit(index_t* base, const index_t* own, const uint8_t* link, size_t n) noexcept nogil:
    """Take out of a shared index what its split index deletes, and give what it replaces the new kind."""
    cdef uint8_t* marks = <uint8_t*>calloc(base.count + 1, 1)
    cdef size_t used = 0, i, fresh = 0
    cdef int rc
    if marks == NULL:
        return NO_MEMORY
    rc = 0
    if n:
        rc = _bits(link, n, &used, marks, base.count)
        for i in range(base.count):
            if marks[i]:
                base.paths[i].kept = False
            marks[i] = 0
        if rc == 0:
            rc = _bits(link + used, n - used, &used, marks, base.count)
        for i in range(base.count):
            if marks[i] and rc == 0:
                if fresh >= own.count or own.paths[fresh].size:
                    rc = BROKEN
                else:
                    base.paths[i].kept = own.paths[fresh].kept
                    fresh += 1
    free(marks)
    return rc


cdef int _compare(const index_t* x, size_t i, const index_t* y, size_t k) noexcept nogil:
    cdef size_t n = x.paths[i].size, m = y.paths[k].size
    cdef int order = memcmp(x.text + x.paths[i].at, y.text + y.paths[k].at, min(n, m))
    if order:
        return order
    return -1 if n < m else n > m


cdef bint _next(const index_t* x, size_t* i) noexcept nogil:
    """Move on to the next path that is kept and named; 0 = none left."""
    while i[0] < x.count and not (x.paths[i[0]].kept and x.paths[i[0]].size):
        i[0] += 1
    return i[0] < x.count


cdef int _merge(tracked_t* t, const index_t* x, const index_t* y) noexcept nogil:
    """Put the paths of one or two indexes in order, each once; BROKEN where they are not sorted."""
    cdef size_t i = 0, k = 0, used = 0, n
    cdef const index_t* source
    cdef path_t* path
    cdef bint more_x, more_y
    cdef const char* before = NULL
    cdef size_t before_size = 0
    cdef int order
    t.at = <uint32_t*>calloc(x.count + y.count + 1, sizeof(uint32_t))
    t.text = <char*>malloc(x.used + y.used + 1)
    if t.at == NULL or t.text == NULL:
        return NO_MEMORY
    while True:
        more_x = _next(x, &i)
        more_y = _next(y, &k)
        if not more_x and not more_y:
            break
        if more_x and (not more_y or _compare(x, i, y, k) <= 0):
            source = x
            path = x.paths + i
            i += 1
        else:
            source = y
            path = y.paths + k
            k += 1
        n = path.size
        if before != NULL:
            order = memcmp(before, source.text + path.at, min(n, before_size))
            if order > 0 or (order == 0 and before_size > n):
                return BROKEN
            if order == 0 and before_size == n:
                continue
        memcpy(t.text + used, source.text + path.at, n)
        before = t.text + used
        before_size = n
        used += n
        t.count += 1
        t.at[t.count] = <uint32_t>used
    return 0


cdef int _place(const tracked_t* t, size_t i, const char** piece, const size_t* size, int pieces) noexcept nogil:
    """Compare the i-th path with a path of pieces: below 0, 0 or above 0; where the pieces are a beginning of it, 0."""
    cdef const char* text = t.text + t.at[i]
    cdef size_t left = t.at[i + 1] - t.at[i], n
    cdef int order, k
    for k in range(pieces):
        n = min(left, size[k])
        order = memcmp(text, piece[k], n) if n else 0
        if order:
            return order
        if n < size[k]:
            return -1
        text += n
        left -= n
    return 0


cdef size_t _lowest(const tracked_t* t, const char** piece, const size_t* size, int pieces) noexcept nogil:
    """Find the first path that is not below the path of these pieces."""
    cdef size_t low = 0, high = t.count, middle
    while low < high:
        middle = (low + high) // 2
        if _place(t, middle, piece, size, pieces) < 0:
            low = middle + 1
        else:
            high = middle
    return low


cdef int _begins(
    const tracked_t* t, const char* dir_path, size_t dir_len, const char* name, size_t name_len, bint below
) noexcept nogil:
    """Whether a path is the given one, or lies below it."""
    cdef const char* piece[4]
    cdef size_t size[4]
    cdef int pieces = 0
    cdef size_t i, whole
    if t == NULL:
        return 0
    if dir_len:
        piece[0] = dir_path
        size[0] = dir_len
        pieces = 1
        if name_len:
            piece[1] = b"/"
            size[1] = 1
            pieces = 2
    if name_len:
        piece[pieces] = name
        size[pieces] = name_len
        pieces += 1
    if below and pieces:
        piece[pieces] = b"/"
        size[pieces] = 1
        pieces += 1
    i = _lowest(t, piece, size, pieces)
    if i == t.count or _place(t, i, piece, size, pieces) != 0:
        return 0
    whole = dir_len + name_len + (1 if dir_len and name_len else 0)
    return below or t.at[i + 1] - t.at[i] == whole


cdef int tracked_file(
    const tracked_t* tracked, const char* dir_path, size_t dir_len, const char* name, size_t name_len
) noexcept nogil:
    return _begins(tracked, dir_path, dir_len, name, name_len, False)


cdef int tracked_below(
    const tracked_t* tracked, const char* dir_path, size_t dir_len, const char* name, size_t name_len
) noexcept nogil:
    return _begins(tracked, dir_path, dir_len, name, name_len, True)


cdef int _track(
    tracked_t* t, const uint8_t* data, size_t n, const uint8_t* shared, size_t m, size_t hash_size
) noexcept nogil:
    """Read an index and, where it is split, the shared one it builds on."""
    cdef index_t own
    cdef index_t base
    cdef const uint8_t* link
    cdef size_t size = 0
    cdef int rc
    memset(&own, 0, sizeof(own))
    memset(&base, 0, sizeof(base))
    rc = read_index(&own, data, n, hash_size)
    if rc == 0 and shared != NULL:
        rc = read_index(&base, shared, m, hash_size)
        if rc == 0:
            link = _link(data, n, own.end, hash_size, &size)
            if link == NULL or size < hash_size:
                rc = BROKEN
            else:
                rc = _unsplit(&base, &own, link + hash_size, size - hash_size)
    if rc == 0:
        rc = _merge(t, &base, &own)
    free(own.paths)
    free(own.text)
    free(base.paths)
    free(base.text)
    return rc


cdef class Tracked:
    def __cinit__(self, bytes index=None, bytes shared=None, size_t hash_size=20):
        cdef const uint8_t* data
        cdef const uint8_t* base
        cdef size_t n = 0, m = 0
        cdef int rc
        if index is None:
            return
        if hash_size != 20 and hash_size != 32:
            raise ValueError("an object name has 20 or 32 bytes")
        data = <const uint8_t*>borrow(index, &n)
        base = <const uint8_t*>borrow(shared, &m)
        self.p = <tracked_t*>calloc(1, sizeof(tracked_t))
        if self.p == NULL:
            raise MemoryError
        with nogil:
            rc = _track(self.p, data, n, base, m, hash_size)
        if rc == NO_MEMORY:
            raise MemoryError
        if rc < 0:
            raise ValueError("the index is broken")

    def __dealloc__(self):
        if self.p != NULL:
            free(self.p.at)
            free(self.p.text)
            free(self.p)

    def __len__(self):
        return self.p.count if self.p != NULL else 0

    def paths(self):
        cdef size_t i
        cdef list paths = []
        for i in range(self.p.count if self.p != NULL else 0):
            paths.append(PyBytes_FromStringAndSize(self.p.text + self.p.at[i], self.p.at[i + 1] - self.p.at[i]))
        return paths

    def file(self, bytes directory not None, bytes name not None):
        return bool(tracked_file(
            self.p, PyBytes_AS_STRING(directory), PyBytes_GET_SIZE(directory),
            PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name),
        ))

    def below(self, bytes directory not None, bytes name not None):
        return bool(tracked_below(
            self.p, PyBytes_AS_STRING(directory), PyBytes_GET_SIZE(directory),
            PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name),
        ))


def shared_index(bytes index not None, size_t hash_size=20):
    cdef index_t own
    cdef const uint8_t* data
    cdef const uint8_t* link = NULL
    cdef size_t n = 0, size = 0
    cdef int rc
    if hash_size != 20 and hash_size != 32:
        raise ValueError("an object name has 20 or 32 bytes")
    data = <const uint8_t*>borrow(index, &n)
    memset(&own, 0, sizeof(own))
    with nogil:
        rc = read_index(&own, data, n, hash_size)
        if rc == 0:
            link = _link(data, n, own.end, hash_size, &size)
        free(own.paths)
        free(own.text)
    if rc == NO_MEMORY:
        raise MemoryError
    if rc < 0 or size == 0 or (link != NULL and size < hash_size):
        raise ValueError("the index is broken")
    if link == NULL:
        return None
    return PyBytes_FromStringAndSize(<const char*>link, hash_size).hex().encode()
