"""Git's ignore rules, and which paths an index holds."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

from toolserver._fast.wild cimport (
    WILD_ANYWHERE,
    WILD_DIR_ONLY,
    WILD_NEGATED,
    wild_any,
    wild_at_start,
    wild_byte,
    wild_class,
    wild_count,
    wild_deep,
    wild_drop,
    wild_finish,
    wild_free,
    wild_freeze,
    wild_last,
    wild_new,
    wild_range,
    wild_slash,
    wild_star,
    wild_t,
)

cdef extern from *:
    """
    typedef struct { int count; } rules_refs_t;
    static inline void refs_up(rules_refs_t* r) { __atomic_fetch_add(&r->count, 1, __ATOMIC_RELAXED); }
    static inline int refs_down(rules_refs_t* r) { return __atomic_sub_fetch(&r->count, 1, __ATOMIC_ACQ_REL) == 0; }
    #define lowest_bit(x) __builtin_ctzll(x)
    """
    ctypedef struct rules_refs_t:
        int count
    void refs_up(rules_refs_t* r) noexcept nogil
    int refs_down(rules_refs_t* r) noexcept nogil
    int lowest_bit(uint64_t x) noexcept nogil


cdef struct rules_t:
    rules_refs_t refs
    rules_t* parent
    wild_t* git             # rules of a .gitignore, an excludes file or an info/exclude
    wild_t* dot             # rules of a .ignore
    const rules_t* git_at   # the nearest, this one or above, with rules of its kind
    const rules_t* dot_at
    size_t dir_len          # bytes of the path of the directory these rules are relative to


# ---------------------------------------------------------------------------------------------------------- parsing

# git's own character classes: ASCII alone, and its white space has neither VT nor FF
cdef bint _named_class(const char* name, size_t n, wild_t* w) noexcept nogil:
    """Add the members of `[:name:]` to the class under construction; 0 = git knows no such name."""
    if n == 5:
        if memcmp(name, "alnum", 5) == 0:
            wild_range(w, c"0", c"9")
            wild_range(w, c"A", c"Z")
            wild_range(w, c"a", c"z")
        elif memcmp(name, "alpha", 5) == 0:
            wild_range(w, c"A", c"Z")
            wild_range(w, c"a", c"z")
        elif memcmp(name, "blank", 5) == 0:
            wild_range(w, c" ", c" ")
            wild_range(w, 9, 9)
        elif memcmp(name, "cntrl", 5) == 0:
            wild_range(w, 0, 31)
            wild_range(w, 127, 127)
        elif memcmp(name, "digit", 5) == 0:
            wild_range(w, c"0", c"9")
        elif memcmp(name, "graph", 5) == 0:
            wild_range(w, 33, 126)
        elif memcmp(name, "lower", 5) == 0:
            wild_range(w, c"a", c"z")
        elif memcmp(name, "print", 5) == 0:
            wild_range(w, 32, 126)
        elif memcmp(name, "punct", 5) == 0:
            wild_range(w, 33, 47)
            wild_range(w, 58, 64)
            wild_range(w, 91, 96)
            wild_range(w, 123, 126)
        elif memcmp(name, "space", 5) == 0:
            wild_range(w, c" ", c" ")
            wild_range(w, 9, 10)
            wild_range(w, 13, 13)
        elif memcmp(name, "upper", 5) == 0:
            wild_range(w, c"A", c"Z")
        else:
            return False
        return True
    if n == 6 and memcmp(name, "xdigit", 6) == 0:
        wild_range(w, c"0", c"9")
        wild_range(w, c"A", c"F")
        wild_range(w, c"a", c"f")
        return True
    return False


cdef size_t _class(wild_t* w, const uint8_t* p, size_t n) noexcept nogil:
    """Read a class as git's wildmatch does; `p` is behind the `[`. Answers the bytes read, 0 = it can never match."""
    cdef size_t at = 0, end
    cdef int before = -1    # what a following `-` ranges from
    cdef uint8_t byte
    cdef bint negated = n > 0 and (p[0] == c"!" or p[0] == c"^")
    wild_class(w, negated)
    if negated:
        at = 1
    while True:
        if at >= n:
            return 0
        byte = p[at]
        if byte == c"\\":
            at += 1
            if at >= n:
                return 0
            before = p[at]
            wild_range(w, before, before)
        elif byte == c"-" and before > 0 and at + 1 < n and p[at + 1] != c"]":
            at += 1
            if p[at] == c"\\":
                at += 1
                if at >= n:
                    return 0
            wild_range(w, before, p[at])
            before = -1
        elif byte == c"[" and at + 1 < n and p[at + 1] == c":":
            end = at + 2
            while end < n and p[end] != c"]":
                end += 1
            if end >= n:
                return 0
            if end == at + 2 or p[end - 1] != c":":
                before = byte   # no `:]`: a plain member
                wild_range(w, byte, byte)
            else:
                if not _named_class(<const char*>p + at + 2, end - 1 - (at + 2), w):
                    return 0
                at = end
                before = -1
        else:
            before = byte
            wild_range(w, byte, byte)
        at += 1
        if at < n and p[at] == c"]":
            return at + 1


cdef bint _pattern(wild_t* w, const uint8_t* p, size_t n, bint slashed) noexcept nogil:
    """Read a pattern without its `!`, first and last slash, as git's wildmatch does; 0 = it can never match."""
    cdef size_t at = 0, stars, used
    while at < n:
        if p[at] == c"/":
            wild_slash(w)
        elif p[at] == c"?":
            wild_any(w)
        elif p[at] == c"\\":
            at += 1
            if at == n:
                return False
            if p[at] == c"/":
                wild_slash(w)
            else:
                wild_byte(w, p[at])
        elif p[at] == c"[":
            used = _class(w, p + at + 1, n - at - 1)
            if used == 0:
                return False
            at += used
        elif p[at] == c"*":
            stars = at
            while at + 1 < n and p[at + 1] == c"*":
                at += 1
            if not slashed or at == stars or not wild_at_start(w):
                wild_star(w)
            elif at + 1 == n:
                wild_deep(w)
            elif p[at + 1] == c"/":
                if at + 2 == n:
                    return False    # an empty name behind the slash
                wild_deep(w)
                at += 1
            elif p[at + 1] == c"\\" and at + 2 < n and p[at + 2] == c"/":
                wild_deep(w)    # git lets `**` stand for no directory only before a plain slash
                wild_star(w)
                wild_slash(w)
                at += 2
            else:
                wild_star(w)
        else:
            wild_byte(w, p[at])
        at += 1
    return True


cdef void _line(wild_t* w, const uint8_t* line, size_t n) noexcept nogil:
    """Add the rule of one line, less its line end; comments and blank lines add none."""
    cdef const uint8_t* nul
    cdef size_t at = 0, kept = 0
    cdef uint8_t flags = 0
    cdef bint slashed
    if n == 0 or line[0] == c"#":
        return
    nul = <const uint8_t*>memchr(line, 0, n)
    if nul != NULL:
        n = nul - line
    while at < n:   # blanks at the end are dropped, but for one behind a backslash
        if line[at] == c"\\" and at + 1 < n:
            at += 2
            kept = at
        else:
            at += 1
            if line[at - 1] != c" ":
                kept = at
    n = kept
    if n and line[0] == c"!":
        flags |= WILD_NEGATED
        line += 1
        n -= 1
    if n and line[n - 1] == c"/":
        flags |= WILD_DIR_ONLY
        n -= 1
    if n == 0:
        return
    slashed = memchr(line, c"/", n) != NULL
    if not slashed:
        flags |= WILD_ANYWHERE
    elif line[0] == c"/":
        line += 1
        n -= 1
    if _pattern(w, line, n, slashed):
        wild_finish(w, flags)
    else:
        wild_drop(w)


cdef int _parse(const char* text, size_t n, wild_t** answer) noexcept nogil:
    """Read the contents of a rule file; `answer` is NULL where it holds no rule. 0, or -1 = out of memory."""
    cdef const char* end
    cdef size_t size
    cdef wild_t* w
    answer[0] = NULL
    if text == NULL or n == 0:
        return 0
    w = wild_new(False)
    if w == NULL:
        return -1
    if n >= 3 and memcmp(text, b"\xef\xbb\xbf", 3) == 0:
        text += 3
        n -= 3
    while n:
        end = <const char*>memchr(text, c"\n", n)
        size = end - text if end != NULL else n
        _line(w, <const uint8_t*>text, size - (1 if size and text[size - 1] == c"\r" else 0))
        if end == NULL:
            break
        text += size + 1
        n -= size + 1
    if wild_freeze(w) < 0:
        wild_free(w)
        return -1
    if wild_count(w) == 0:
        wild_free(w)
        return 0
    answer[0] = w
    return 0


# ------------------------------------------------------------------------------------------------------------ rules

cdef rules_t* _node(rules_t* parent, size_t dir_len, wild_t* git, wild_t* dot) noexcept nogil:
    """Make the rules of one directory, which own `git` and `dot` and take a reference to `parent`; NULL = no memory,
    and then the caller still owns them."""
    cdef rules_t* node = <rules_t*>calloc(1, sizeof(rules_t))
    if node == NULL:
        return NULL
    node.refs.count = 1
    node.parent = parent
    node.dir_len = dir_len
    node.git = git
    node.dot = dot
    if parent != NULL:
        rules_retain(parent)
        node.git_at = parent.git_at
        node.dot_at = parent.dot_at
    if git != NULL:
        node.git_at = node
    if dot != NULL:
        node.dot_at = node
    return node


cdef rules_t* rules_base(
    const char* excludes, size_t n, const char* info_exclude, size_t m
) noexcept nogil:
    """See the pxd."""
    cdef wild_t* weak = NULL
    cdef wild_t* strong = NULL
    cdef rules_t* below = NULL
    cdef rules_t* top = NULL
    if _parse(excludes, n, &weak) == 0 and _parse(info_exclude, m, &strong) == 0:
        below = _node(NULL, 0, weak, NULL)
        if below != NULL:
            weak = NULL
            top = _node(below, 0, strong, NULL)
            if top != NULL:
                strong = NULL
    rules_release(below)    # top has its own reference
    wild_free(weak)
    wild_free(strong)
    return top


cdef rules_t* rules_push(
    rules_t* parent, const char* dir_path, size_t dir_len,
    const char* gitignore, size_t n, const char* dotignore, size_t m
) noexcept nogil:
    """See the pxd."""
    cdef wild_t* git = NULL
    cdef wild_t* dot = NULL
    cdef rules_t* node = NULL
    if _parse(gitignore, n, &git) < 0 or _parse(dotignore, m, &dot) < 0:
        wild_free(git)
        return NULL
    if git == NULL and dot == NULL:
        rules_retain(parent)
        return parent
    node = _node(parent, dir_len, git, dot)
    if node == NULL:
        wild_free(git)
        wild_free(dot)
    return node


cdef void rules_retain(rules_t* rules) noexcept nogil:
    """See the pxd."""
    refs_up(&rules.refs)


cdef void rules_release(rules_t* rules) noexcept nogil:
    """See the pxd."""
    cdef rules_t* parent
    while rules != NULL and refs_down(&rules.refs):
        parent = rules.parent
        wild_free(rules.git)
        wild_free(rules.dot)
        free(rules)
        rules = parent


cdef inline int _ask(
    const wild_t* w, size_t base, const char* dir_path, size_t dir_len, const char* name, size_t name_len,
    uint64_t* hash, int is_dir
) noexcept nogil:
    """Ask one file's rules, relative to the directory of `base` bytes; the flags of the one that fits, or -1."""
    cdef size_t skip = 0
    if base:
        skip = base + 1 if dir_len > base else dir_len
    return wild_last(w, dir_path + skip, dir_len - skip, name, name_len, hash, is_dir)


cdef int rules_ignored(
    const rules_t* rules, const char* dir_path, size_t dir_len, const char* name, size_t name_len, int is_dir
) noexcept nogil:
    """See the pxd."""
    cdef const rules_t* at = rules.dot_at
    cdef uint64_t hash = 0
    cdef int flags
    while at != NULL:
        flags = _ask(at.dot, at.dir_len, dir_path, dir_len, name, name_len, &hash, is_dir)
        if flags >= 0:
            return not flags & WILD_NEGATED
        at = at.parent.dot_at if at.parent != NULL else NULL
    at = rules.git_at
    while at != NULL:
        flags = _ask(at.git, at.dir_len, dir_path, dir_len, name, name_len, &hash, is_dir)
        if flags >= 0:
            return not flags & WILD_NEGATED
        at = at.parent.git_at if at.parent != NULL else NULL
    return 0


cdef class Rules:
    """See the stub."""

    def __dealloc__(self):
        rules_release(self.p)

    def push(self, bytes directory not None, bytes gitignore=None, bytes dotignore=None):
        """See the stub."""
        cdef Rules below = Rules.__new__(Rules)
        cdef const char* path = PyBytes_AS_STRING(directory)
        cdef size_t size = PyBytes_GET_SIZE(directory), n = 0, m = 0
        cdef const char* git = _borrow(gitignore, &n)
        cdef const char* dot = _borrow(dotignore, &m)
        with nogil:
            below.p = rules_push(self.p, path, size, git, n, dot, m)
        if below.p == NULL:
            raise MemoryError
        return below

    def ignored(self, bytes directory not None, bytes name not None, bint is_dir):
        """See the stub."""
        return bool(rules_ignored(
            self.p, PyBytes_AS_STRING(directory), PyBytes_GET_SIZE(directory),
            PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), is_dir,
        ))


cdef class BaseRules(Rules):
    """See the stub."""

    def __cinit__(self, bytes excludes=None, bytes info_exclude=None):
        cdef size_t n = 0, m = 0
        cdef const char* weak = _borrow(excludes, &n)
        cdef const char* strong = _borrow(info_exclude, &m)
        with nogil:
            self.p = rules_base(weak, n, strong, m)
        if self.p == NULL:
            raise MemoryError


cdef const char* _borrow(bytes text, size_t* n) noexcept:
    """Return the bytes of an object that the caller keeps, or NULL for None."""
    if text is None:
        n[0] = 0
        return NULL
    n[0] = PyBytes_GET_SIZE(text)
    return PyBytes_AS_STRING(text)


def decide(bytes gitignore not None, bytes dotignore not None, bytes paths not None):
    """See the stub."""
    cdef Rules rules = BaseRules().push(b"", gitignore, dotignore)
    cdef list answer = []
    cdef bytes path, directory, name
    for path in paths.split(b"\n"):
        directory, _, name = path.removesuffix(b"/").rpartition(b"/")
        answer.append(b"1" if rules.ignored(directory, name, path.endswith(b"/")) else b"0")
    return b"".join(answer)


# ---------------------------------------------------------------------------------------------------- tracked paths

cdef enum:
    BROKEN = -1
    NO_MEMORY = -2
    FIXED = 40              # bytes of an entry before its object name
    EXTENDED = 0x4000
    MAX_PATH = 4096
    MAX_TEXT = 268435456    # bytes of all paths: an index of version 4 can unfold to far more than its own size
    FILE_MODE = 8           # the upper four bits of a mode
    LINK_MODE = 10

cdef struct path_t:
    uint32_t at
    uint16_t size
    bint kept           # a file or link

cdef struct index_t:    # the entries of one index file, in its order
    path_t* paths
    size_t count
    char* text
    size_t used, room
    size_t end          # where the extensions begin

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
    cdef size_t want
    cdef char* bigger
    if n + m > MAX_PATH or x.used + n + m > MAX_TEXT:
        return BROKEN
    if x.used + n + m > x.room:
        want = max(x.room * 2, <size_t>65536)
        bigger = <char*>realloc(x.text, want)
        if bigger == NULL:
            return NO_MEMORY
        x.text = bigger
        x.room = want
    memcpy(x.text + x.used, x.text + from_text, n)
    memcpy(x.text + x.used + n, rest, m)
    x.used += n + m
    return 0


cdef int _entry(
    index_t* x, const uint8_t* data, size_t n, size_t* at, size_t hash_size, uint32_t version, path_t* before,
    path_t* path
) noexcept nogil:
    """Read the entry at `at` and move it to the next; `before` is the entry in front, which version 4 builds on."""
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
    path.at = <uint32_t>x.used
    rc = _append(x, x.text + (before.at if keep else 0), keep, <const char*>data + name, end - name)
    if rc < 0:
        return rc
    path.size = <uint16_t>(x.used - path.at)
    path.kept = mode == FILE_MODE or mode == LINK_MODE
    at[0] = end + 1 if version == 4 else start + (end - start + 8 & ~<size_t>7)
    return 0


cdef int _read_index(index_t* x, const uint8_t* data, size_t n, size_t hash_size) noexcept nogil:
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
    """See the pxd."""
    return _begins(tracked, dir_path, dir_len, name, name_len, False)


cdef int tracked_below(
    const tracked_t* tracked, const char* dir_path, size_t dir_len, const char* name, size_t name_len
) noexcept nogil:
    """See the pxd."""
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
    rc = _read_index(&own, data, n, hash_size)
    if rc == 0 and shared != NULL:
        rc = _read_index(&base, shared, m, hash_size)
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
    """See the stub."""

    def __cinit__(self, bytes index=None, bytes shared=None, size_t hash_size=20):
        cdef const uint8_t* data
        cdef const uint8_t* base
        cdef size_t n = 0, m = 0
        cdef int rc
        if index is None:
            return
        if hash_size != 20 and hash_size != 32:
            raise ValueError("an object name has 20 or 32 bytes")
        data = <const uint8_t*>_borrow(index, &n)
        base = <const uint8_t*>_borrow(shared, &m)
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
        """See the stub."""
        cdef size_t i
        cdef list answer = []
        for i in range(self.p.count if self.p != NULL else 0):
            answer.append(PyBytes_FromStringAndSize(self.p.text + self.p.at[i], self.p.at[i + 1] - self.p.at[i]))
        return answer

    def file(self, bytes directory not None, bytes name not None):
        """See the stub."""
        return bool(tracked_file(
            self.p, PyBytes_AS_STRING(directory), PyBytes_GET_SIZE(directory),
            PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name),
        ))

    def below(self, bytes directory not None, bytes name not None):
        """See the stub."""
        return bool(tracked_below(
            self.p, PyBytes_AS_STRING(directory), PyBytes_GET_SIZE(directory),
            PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name),
        ))


def shared_index(bytes index not None, size_t hash_size=20):
    """See the stub."""
    cdef index_t own
    cdef const uint8_t* data
    cdef const uint8_t* link = NULL
    cdef size_t n = 0, size = 0
    cdef int rc
    if hash_size != 20 and hash_size != 32:
        raise ValueError("an object name has 20 or 32 bytes")
    data = <const uint8_t*>_borrow(index, &n)
    memset(&own, 0, sizeof(own))
    with nogil:
        rc = _read_index(&own, data, n, hash_size)
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
