"""Git's ignore rules."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport ENOMEM, errno
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memset

import os

from toolserver._fast.borrow cimport borrow
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

cdef extern from "names.h" namespace "names" nogil:
    const char* IGNORE_NAMES "names::IGNORE_FILES"[IGNORE_KINDS]

cdef extern from "ignore_files.h" namespace "ignore_files" nogil:
    int read_all(int directory, unsigned mask, Contents* files) noexcept
    void discard(Contents* files) noexcept

cdef extern from *:
    """
    #include <cerrno>
    static inline void set_errno(int error) { errno = error; }
    typedef struct { int count; } rules_refs_t;
    static inline void refs_up(rules_refs_t* r) { __atomic_fetch_add(&r->count, 1, __ATOMIC_RELAXED); }
    static inline int refs_down(rules_refs_t* r) { return __atomic_sub_fetch(&r->count, 1, __ATOMIC_ACQ_REL) == 0; }
    """
    ctypedef struct rules_refs_t:
        int count
    void refs_up(rules_refs_t* r) noexcept nogil
    int refs_down(rules_refs_t* r) noexcept nogil
    void set_errno(int error) noexcept nogil

IGNORE_FILES = tuple([<bytes>IGNORE_NAMES[i] for i in range(IGNORE_KINDS)])


cdef struct rules_t:
    rules_refs_t refs
    rules_t* parent
    wild_t* of[IGNORE_KINDS]            # own rules by kind of file; those of kind 0 may be an excludes file's
    const rules_t* nearest[IGNORE_KINDS]    # this one or one above that has own rules of that kind
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
    """Read a class as git's wildmatch does; `p` is after the `[`. Return the bytes read, 0 = it can never match."""
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
                    return False    # an empty name after the slash
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
    while at < n:   # blanks at the end are dropped, but for one after a backslash
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


cdef int _parse(const char* text, size_t n, wild_t** out) noexcept nogil:
    """Read the contents of a rule file; `out` is set to NULL where it holds no rule. 0, or -1 = out of memory."""
    cdef const char* end
    cdef size_t size
    cdef wild_t* w
    out[0] = NULL
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
    out[0] = w
    return 0


# ------------------------------------------------------------------------------------------------------------ rules

cdef void _free_all(wild_t** of) noexcept nogil:
    """Free the rules of a directory's own files."""
    cdef int kind
    for kind in range(IGNORE_KINDS):
        wild_free(of[kind])


cdef rules_t* _node(rules_t* parent, size_t dir_len, wild_t** of) noexcept nogil:
    """Make the rules of one directory, which own those `of` its files and take a reference to `parent`.

    NULL = out of memory; the rules of the files are freed then, too.
    """
    cdef rules_t* node = <rules_t*>calloc(1, sizeof(rules_t))
    cdef int kind
    if node == NULL:
        _free_all(of)
        return NULL
    node.refs.count = 1
    node.parent = parent
    node.dir_len = dir_len
    if parent != NULL:
        rules_retain(parent)
    for kind in range(IGNORE_KINDS):
        node.of[kind] = of[kind]
        if of[kind] != NULL:
            node.nearest[kind] = node
        elif parent != NULL:
            node.nearest[kind] = parent.nearest[kind]
    return node


cdef rules_t* _outermost(rules_t* parent, const char* text, size_t size) noexcept nogil:
    """Make rules of the tree's top from one file that ranks as the weakest kind. NULL = out of memory."""
    cdef wild_t* of[IGNORE_KINDS]
    memset(of, 0, sizeof(of))
    if _parse(text, size, &of[0]) < 0:
        return NULL
    return _node(parent, 0, of)


cdef rules_t* rules_base(
    const char* excludes, size_t n, const char* info_exclude, size_t m
) noexcept nogil:
    cdef rules_t* below = _outermost(NULL, excludes, n)
    cdef rules_t* top = NULL
    if below != NULL:
        top = _outermost(below, info_exclude, m)
    rules_release(below)    # top has its own reference
    return top


cdef rules_t* rules_push(
    rules_t* parent, const char* dir_path, size_t dir_len, const Contents* files
) noexcept nogil:
    cdef wild_t* of[IGNORE_KINDS]
    cdef int kind
    cdef bint any_rule = False
    memset(of, 0, sizeof(of))
    for kind in range(IGNORE_KINDS):
        if _parse(files[kind].data, files[kind].size, &of[kind]) < 0:
            _free_all(of)
            return NULL
        any_rule = any_rule or of[kind] != NULL
    if any_rule:
        return _node(parent, dir_len, of)
    rules_retain(parent)
    return parent


cdef rules_t* rules_enter(
    rules_t* parent, const char* dir_path, size_t dir_len, int fd, unsigned kinds
) noexcept nogil:
    cdef Contents files[IGNORE_KINDS]
    cdef rules_t* made
    if not kinds:
        rules_retain(parent)
        return parent
    if read_all(fd, kinds, files) < 0:
        return NULL
    made = rules_push(parent, dir_path, dir_len, files)
    discard(files)
    if made == NULL:
        set_errno(ENOMEM)
    return made


cdef void rules_retain(rules_t* rules) noexcept nogil:
    refs_up(&rules.refs)


cdef void rules_release(rules_t* rules) noexcept nogil:
    cdef rules_t* parent
    while rules != NULL and refs_down(&rules.refs):
        parent = rules.parent
        _free_all(rules.of)
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
    cdef const rules_t* at
    cdef uint64_t hash = 0
    cdef int flags
    cdef int kind = IGNORE_KINDS
    while kind:
        kind -= 1
        at = rules.nearest[kind]
        while at != NULL:
            flags = _ask(at.of[kind], at.dir_len, dir_path, dir_len, name, name_len, &hash, is_dir)
            if flags >= 0:
                return not flags & WILD_NEGATED
            at = at.parent.nearest[kind] if at.parent != NULL else NULL
    return 0


cdef class Rules:
    def __dealloc__(self):
        rules_release(self.p)

    def push(self, bytes directory not None, *contents):
        cdef Contents files[IGNORE_KINDS]
        cdef Rules below = Rules.__new__(Rules)
        cdef const char* path = PyBytes_AS_STRING(directory)
        cdef size_t size = PyBytes_GET_SIZE(directory)
        cdef Py_ssize_t kind
        if len(contents) > IGNORE_KINDS:
            raise ValueError(f"a directory has at most {IGNORE_KINDS} ignore files")
        memset(files, 0, sizeof(files))
        for kind in range(len(contents)):
            files[kind].data = <char*>borrow(contents[kind], &files[kind].size)
        with nogil:
            below.p = rules_push(self.p, path, size, files)
        if below.p == NULL:
            raise MemoryError
        return below

    def enter(self, bytes directory not None, int fd, *, bint git_only=False):
        cdef Rules below = Rules.__new__(Rules)
        cdef const char* path = PyBytes_AS_STRING(directory)
        cdef size_t size = PyBytes_GET_SIZE(directory)
        cdef unsigned kinds = GIT_KIND if git_only else EVERY_KIND
        cdef int failed = 0
        with nogil:
            below.p = rules_enter(self.p, path, size, fd, kinds)
            if below.p == NULL:
                failed = errno
        if failed == ENOMEM:
            raise MemoryError
        if failed:
            raise OSError(failed, os.strerror(failed))
        return below

    def ignored(self, bytes directory not None, bytes name not None, bint is_dir):
        return bool(rules_ignored(
            self.p, PyBytes_AS_STRING(directory), PyBytes_GET_SIZE(directory),
            PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), is_dir,
        ))


cdef class BaseRules(Rules):
    def __cinit__(self, bytes excludes=None, bytes info_exclude=None):
        cdef size_t n = 0, m = 0
        cdef const char* weak = borrow(excludes, &n)
        cdef const char* strong = borrow(info_exclude, &m)
        with nogil:
            self.p = rules_base(weak, n, strong, m)
        if self.p == NULL:
            raise MemoryError


def decide(bytes gitignore not None, bytes dotignore not None, bytes paths not None):
    cdef Rules rules = BaseRules().push(b"", gitignore, dotignore)
    cdef list judged = []
    cdef bytes path, directory, name
    for path in paths.split(b"\n"):
        directory, _, name = path.removesuffix(b"/").rpartition(b"/")
        judged.append(b"1" if rules.ignored(directory, name, path.endswith(b"/")) else b"0")
    return b"".join(judged)
