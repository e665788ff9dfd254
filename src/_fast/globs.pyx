"""The glob dialect (specification, section 5): braces are expanded, each alternative becomes one pattern of a set."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free

from toolserver._fast.wild cimport (
    WILD_ANYWHERE,
    wild_any,
    wild_below,
    wild_byte,
    wild_class,
    wild_common_end,
    wild_deep,
    wild_finish,
    wild_free,
    wild_freeze,
    wild_last,
    wild_new,
    wild_range,
    wild_slash,
    wild_star,
)

cdef extern from "utf8.h" namespace "utf8" nogil:
    const int STRAY

cdef enum:
    # tokens below 0; from 0 on a token is a literal byte, and a class is a tuple
    ANY = -1
    STAR = -2
    DEEP = -3       # `**` as a whole component
    SLASH = -4

# what one pattern may grow to
MAX_PATTERN = 65536
MAX_ALTERNATIVES = 4096
MAX_TOKENS = 262144


cdef int glob_match(
    const glob_t* glob, const char* dir_path, size_t dir_len, const char* name, size_t name_len
) noexcept nogil:
    """See the pxd."""
    cdef uint64_t hash = 0
    if glob == NULL:
        return 1
    return wild_last(glob.w, dir_path, dir_len, name, name_len, &hash, False) >= 0


cdef int glob_may_match_below(const glob_t* glob, const char* dir_path, size_t dir_len) noexcept nogil:
    """See the pxd."""
    return glob == NULL or wild_below(glob.w, dir_path, dir_len)


# ---------------------------------------------------------------------------------------------------------- parsing

cdef int _code(str character) except -1:
    """Return a code point; a byte that is not UTF-8, decoded as a surrogate, is told apart from all of them."""
    cdef int code = ord(character)
    return STRAY + code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code


@cython.wraparound(True)
cdef tuple _read_class(str text, Py_ssize_t at):
    """Read the class whose `[` is in front of `at`; answer its token and where it ends."""
    cdef Py_ssize_t size = len(text), start
    cdef bint negated = at < size and text[at] in "!^"
    cdef bint in_range = False
    cdef list ranges = []
    cdef str c
    at += negated
    start = at
    while True:
        if at == size:
            raise ValueError("it has a [ that is not closed")
        c = text[at]
        at += 1
        if c == "]" and at - 1 > start:
            break
        if c == "-" and at - 1 > start and not in_range:
            in_range = True
            continue
        if in_range:
            ranges[-1] = (ranges[-1][0], _code(c))
            if ranges[-1][1] < ranges[-1][0]:
                raise ValueError(f"its range {chr(ranges[-1][0])}-{c} is upside down")
            in_range = False
        else:
            ranges.append((_code(c), _code(c)))
    if in_range:
        ranges.append((ord("-"), ord("-")))
    return (negated, tuple(ranges)), at


cdef list _product(list heads, list tails):
    """Join every head with every tail, within the limits; the lists given are not used again.

    One tail extends the heads in place, so that a pattern of many braces with one alternative costs what it is long.
    """
    cdef list head, tail
    cdef Py_ssize_t tokens
    if len(heads) * len(tails) > MAX_ALTERNATIVES:
        raise ValueError(f"its braces stand for more than {MAX_ALTERNATIVES} alternatives")
    if len(tails) == 1 and not tails[0]:
        return heads
    if len(heads) == 1 and not heads[0]:
        return tails
    tokens = sum([len(head) for head in heads]) * len(tails) + sum([len(tail) for tail in tails]) * len(heads)
    if tokens > MAX_TOKENS:
        raise ValueError("it is too large once its braces are expanded")
    if len(tails) == 1:
        for head in heads:
            head.extend(tails[0])
        return heads
    return [head + tail for head in heads for tail in tails]


@cython.wraparound(True)
cdef list _alternatives(str text):
    """Read a pattern and expand its braces; answer one list of tokens for each alternative."""
    cdef Py_ssize_t at = 0, size = len(text), end
    cdef list outer = []        # for each open brace: what stands before it, and its alternatives so far
    cdef list heads = [[]]      # of the alternative that is being read: all its expansions
    cdef list run = []          # tokens since the last brace or comma
    cdef list done
    cdef str c, before = ""     # before: "" where a component may begin
    while at < size:
        c = text[at]
        at += 1
        if c == "{" or (outer and c in ",}"):
            heads = _product(heads, [run])
            run = []
            if c == "{":
                outer.append((heads, []))
                heads = [[]]
            else:
                outer[-1][1].extend(heads)
                heads = [[]]
                if len(outer[-1][1]) > MAX_ALTERNATIVES:
                    raise ValueError(f"its braces stand for more than {MAX_ALTERNATIVES} alternatives")
                if c == "}":
                    heads, done = outer.pop()
                    heads = _product(heads, done)
            before = ""
            continue
        if c == "}":
            raise ValueError("it has a } without a {")
        if c == "*":
            end = at
            while end < size and text[end] == "*":
                end += 1
            special = (
                end - at == 1
                and not before
                and (end == size or text[end] in "/{" or (outer and text[end] in ",}") or text[end:end + 2] == "\\/")
            )
            run.append(DEEP if special else STAR)
            at = end
        elif c == "?":
            run.append(ANY)
        elif c == "[":
            token, at = _read_class(text, at)
            run.append(token)
        else:
            if c == "\\":
                if at == size:
                    raise ValueError("it ends with a lone backslash")
                c = text[at]
                at += 1
            if c == "/":
                run.append(SLASH)
                before = ""
                continue
            run.extend(c.encode(errors="surrogateescape"))
        before = c
    if outer:
        raise ValueError("it has a { that is not closed")
    return _product(heads, [run])


@cython.wraparound(True)
cdef list _settle(list tokens, Py_ssize_t left):
    """Put an expanded alternative with a slash into components: `**` only where it is one, and at its start or behind
    a slash. One that touches other text, as braces allow, stands for any text across components: it becomes several,
    of `left` tokens together at most."""
    cdef list waiting = [tokens], settled = [], now, done
    cdef Py_ssize_t at, next, size, total
    if tokens and tokens[-1] == SLASH:
        tokens.append(DEEP)
    if tokens and tokens[0] == SLASH:
        del tokens[0]
    elif len(tokens) > 1 and tokens[0] == c"." and tokens[1] == SLASH:
        del tokens[:2]
    total = len(tokens)
    while waiting:
        now = waiting.pop()
        size = len(now)
        done = []
        for at in range(size):
            token = now[at]
            if token != DEEP:
                done.append(token)
                continue
            if done and done[-1] == DEEP:
                continue
            next = at + 1
            touches = next < size and now[next] not in (SLASH, DEEP)
            if done and done[-1] != SLASH:
                total += size
                if total > left or len(waiting) + len(settled) >= MAX_ALTERNATIVES:
                    raise ValueError("it is too large once each ** that touches other text is written out")
                if next < size and now[next] == SLASH:
                    waiting.append(done + now[next + 1:])
                else:
                    waiting.append([*done, STAR, *now[next:]])
                done += [STAR, SLASH]
            done.append(DEEP)
            if touches:
                done += [SLASH, STAR]
        settled.append(done)
    return settled


cdef void _add(wild_t* w, list tokens, uint8_t flags) except *:
    """Give an alternative in components to the set."""
    cdef bint skip = False
    cdef Py_ssize_t at
    cdef int token
    for at in range(len(tokens)):
        if type(tokens[at]) is tuple:
            negated, ranges = tokens[at]
            wild_class(w, negated)
            for low, high in ranges:
                wild_range(w, low, high)
            continue
        token = tokens[at]
        if token == DEEP:
            wild_deep(w)
            skip = True
            continue
        if token == SLASH:
            if not skip:
                wild_slash(w)
        elif token == STAR:
            wild_star(w)
        elif token == ANY:
            wild_any(w)
        else:
            wild_byte(w, <uint8_t>token)
        skip = False
    wild_finish(w, flags)


cdef class Glob:
    """See the stub."""

    def __cinit__(self, bytes pattern not None):
        cdef list tokens, settled
        cdef str text = pattern.decode(errors="surrogateescape")
        if not pattern:
            raise ValueError("it is empty")
        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"it has more than {MAX_PATTERN} bytes")
        if text.startswith("!"):
            raise ValueError("it begins with !, and there is no negation here; \\! stands for the character")
        self.p = <glob_t*>calloc(1, sizeof(glob_t))
        if self.p == NULL:
            raise MemoryError
        self.p.w = wild_new(True)
        if self.p.w == NULL:
            raise MemoryError
        total = 0
        left = MAX_TOKENS
        for tokens in _alternatives(text):
            if "/" not in text:
                _add(self.p.w, [STAR if token == DEEP else token for token in tokens], WILD_ANYWHERE)
                continue
            for settled in _settle(tokens, left):
                total += 1
                left -= len(settled)
                if total > MAX_ALTERNATIVES:
                    raise ValueError(f"its braces stand for more than {MAX_ALTERNATIVES} alternatives")
                _add(self.p.w, settled, 0)
        if wild_freeze(self.p.w) < 0:
            raise MemoryError
        wild_common_end(self.p.w, &self.p.end, &self.p.mask)

    def __dealloc__(self):
        if self.p != NULL:
            wild_free(self.p.w)
            free(self.p)

    def match(self, bytes directory not None, bytes name not None):
        """See the stub."""
        return bool(glob_match(
            self.p, PyBytes_AS_STRING(directory), PyBytes_GET_SIZE(directory),
            PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name),
        ))

    def may_match_below(self, bytes directory not None):
        """See the stub."""
        return bool(glob_may_match_below(self.p, PyBytes_AS_STRING(directory), PyBytes_GET_SIZE(directory)))
