"""Wildcard patterns over paths, compiled to ask many of them about one name at once (no Python interface)."""

from libc.stdint cimport SIZE_MAX, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memcpy, memset

cdef extern from "growth.h" namespace "growth" nogil:
    int grow(void** block, size_t* room, size_t need, size_t unit, size_t first) noexcept

cdef extern from "utf8.h" namespace "utf8" nogil:
    size_t decode(const uint8_t* at, size_t size, uint32_t* code) noexcept

cdef extern from *:
    """
    #define wild_clz(x) __builtin_clzll(x)
    """
    int wild_clz(uint64_t x) noexcept nogil

cdef enum:
    # steps of a name pattern
    OP_LITERAL = 0
    OP_ANY = 1
    OP_CLASS = 2
    OP_STAR = 3
    # kinds of name patterns
    EXACT = 0       # no wildcard
    AFFIX = 1       # literal, one star, literal; either may be empty
    GENERAL = 2
    DEEP = 3        # `**`: any number of components
    # limits of a system's paths: what is longer matches nothing
    MAX_NAME = 255
    # up to here patterns are asked one after another, without tables
    FEW = 3

cdef struct op_t:
    uint32_t at         # LITERAL: where in the text; CLASS: which class
    uint16_t size       # LITERAL: bytes
    uint8_t kind

cdef struct class_t:
    uint64_t low[4]     # the bytes, or the code points below 256; negation is worked in
    uint32_t first      # ranges of code points from 256 on
    uint32_t count
    bint negated

cdef struct range_t:
    uint32_t low
    uint32_t high

cdef struct name_t:     # the pattern of one component
    uint32_t at         # EXACT, AFFIX: where in the text; GENERAL: the first step
    uint32_t size       # EXACT: bytes; AFFIX: bytes before the star; GENERAL: steps
    uint16_t tail       # AFFIX: bytes behind the star, following the others; GENERAL: steps behind the last star
    uint16_t least      # the fewest bytes that match
    uint8_t kind
    uint64_t pairs      # GENERAL: the pairs of neighbouring bytes that every match holds, see _pairs

cdef struct quick_t:    # what refuses most names without looking at the pattern itself
    uint64_t end        # the last bytes of every match, as wild_end loads them
    uint64_t mask       # which of them are known
    uint64_t pairs
    bint whole          # a name of enough bytes that ends so is a match

cdef struct rule_t:
    name_t name
    uint32_t dirs       # the first component of those before the name
    uint32_t dir_count
    uint32_t dir_text   # where these components stand as one literal path
    uint32_t dir_size   # its bytes, NOT_LITERAL when a wildcard is in it
    uint32_t next       # EXACT: the rule before this one with the same name, plus one
    uint8_t flags

cdef enum:
    NOT_LITERAL = 0xffffffff

cdef struct wild_t:
    rule_t* rules
    name_t* dirs
    op_t* ops
    class_t* classes
    range_t* ranges
    char* text
    uint32_t* slots     # hash table of the exact names: the last rule of a name, plus one
    uint32_t* masked    # the rules that are no exact names, in order
    quick_t* quick      # one for each of these
    uint64_t* tables    # per first byte and per last byte of a name: which of these rules may fit
    size_t rule_count, rule_room
    size_t dir_count, dir_room
    size_t op_count, op_room
    size_t class_count, class_room
    size_t range_count, range_room
    size_t text_count, text_room
    size_t slot_mask
    size_t masked_count
    size_t words        # words of a row of the tables; 0 = no tables
    # the pattern under construction
    size_t from_dir, from_op, from_class, from_range, from_text
    size_t name_op      # the first step of the component under construction
    bint dead           # it can match nothing
    bint deep_last      # the last component was `**`
    bint utf8
    bint failed         # out of memory


cdef inline uint64_t _pairs(const char* s, size_t n) noexcept nogil:
    """Return a set, of one bit each by a hash, of the pairs of neighbouring bytes in a text."""
    cdef uint64_t found = 0
    cdef size_t i
    for i in range(1, n):
        found |= <uint64_t>1 << ((<uint8_t>s[i - 1] * 5 + <uint8_t>s[i] * 3) & 63)
    return found


cdef inline bint _same(const char* a, const char* b, size_t n) noexcept nogil:
    """Compare bytes; either pointer may be NULL where n is 0."""
    return n == 0 or memcmp(a, b, n) == 0


cdef bint _grow(void** block, size_t* room, size_t need, size_t unit) noexcept nogil:
    """Give `block` space for `need` units; 0 = out of memory, the block stays as it was."""
    return need < NOT_LITERAL and grow(block, room, need, unit, 8) == 0


cdef wild_t* wild_new(bint utf8) noexcept nogil:
    """See the pxd."""
    cdef wild_t* w = <wild_t*>calloc(1, sizeof(wild_t))
    if w != NULL:
        w.utf8 = utf8
    return w


cdef void wild_free(wild_t* w) noexcept nogil:
    """See the pxd."""
    if w == NULL:
        return
    free(w.rules)
    free(w.dirs)
    free(w.ops)
    free(w.classes)
    free(w.ranges)
    free(w.text)
    free(w.slots)
    free(w.masked)
    free(w.quick)
    free(w.tables)
    free(w)


# ---------------------------------------------------------------------------------------------------- construction

cdef op_t* _step(wild_t* w, uint8_t kind) noexcept nogil:
    """Append a step to the component under construction; NULL = out of memory, which is remembered."""
    cdef op_t* op
    if not _grow(<void**>&w.ops, &w.op_room, w.op_count + 1, sizeof(op_t)):
        w.failed = True
        return NULL
    op = w.ops + w.op_count
    w.op_count += 1
    w.deep_last = False
    op.kind = kind
    op.at = 0
    op.size = 0
    return op


cdef void wild_byte(wild_t* w, uint8_t byte) noexcept nogil:
    """See the pxd."""
    cdef op_t* op = NULL
    if not _grow(<void**>&w.text, &w.text_room, w.text_count + 1, 1):
        w.failed = True
        return
    if w.op_count > w.name_op and w.ops[w.op_count - 1].kind == OP_LITERAL:
        op = w.ops + w.op_count - 1
        if op.size > MAX_NAME:      # longer than any name; dropped at the end of the component
            return
    else:
        op = _step(w, OP_LITERAL)
        if op == NULL:
            return
        op.at = <uint32_t>w.text_count
    w.text[w.text_count] = <char>byte
    w.text_count += 1
    op.size += 1


cdef void wild_any(wild_t* w) noexcept nogil:
    """See the pxd."""
    _step(w, OP_ANY)


cdef void wild_star(wild_t* w) noexcept nogil:
    """See the pxd."""
    if w.op_count == w.name_op or w.ops[w.op_count - 1].kind != OP_STAR:
        _step(w, OP_STAR)


cdef void wild_class(wild_t* w, bint negated) noexcept nogil:
    """See the pxd."""
    cdef op_t* op
    cdef class_t* c
    cdef uint64_t fill = ~<uint64_t>0 if negated else 0
    if not _grow(<void**>&w.classes, &w.class_room, w.class_count + 1, sizeof(class_t)):
        w.failed = True
        return
    op = _step(w, OP_CLASS)
    if op == NULL:
        return
    op.at = <uint32_t>w.class_count
    c = w.classes + w.class_count
    w.class_count += 1
    c.low[0] = c.low[1] = c.low[2] = c.low[3] = fill
    c.first = <uint32_t>w.range_count
    c.count = 0
    c.negated = negated


cdef void wild_range(wild_t* w, uint32_t low, uint32_t high) noexcept nogil:
    """See the pxd."""
    cdef class_t* c
    cdef range_t* r
    cdef uint32_t at
    if w.failed or low > high:
        return
    c = w.classes + w.class_count - 1
    for at in range(low, min(high, <uint32_t>255) + 1):
        if c.negated:
            c.low[at >> 6] &= ~(<uint64_t>1 << (at & 63))
        else:
            c.low[at >> 6] |= <uint64_t>1 << (at & 63)
    if high > 255:
        if not _grow(<void**>&w.ranges, &w.range_room, w.range_count + 1, sizeof(range_t)):
            w.failed = True
            return
        r = w.ranges + w.range_count
        r.low = low
        r.high = high
        w.range_count += 1
        c.count += 1


cdef bint wild_at_start(const wild_t* w) noexcept nogil:
    """See the pxd."""
    return w.op_count == w.name_op


cdef name_t* _component(wild_t* w) noexcept nogil:
    """Append an empty component; NULL = out of memory, which is remembered."""
    if not _grow(<void**>&w.dirs, &w.dir_room, w.dir_count + 1, sizeof(name_t)):
        w.failed = True
        return NULL
    w.dir_count += 1
    return w.dirs + w.dir_count - 1


cdef void _end_component(wild_t* w) noexcept nogil:
    """Turn the steps since the last slash into a component, in the cheapest form there is for it."""
    cdef op_t* ops = w.ops + w.name_op
    cdef size_t count = w.op_count - w.name_op
    cdef size_t least = 0, star = count, stars = 0, i
    cdef uint64_t pairs = 0
    cdef bint plain = True
    cdef name_t* name
    if w.failed:
        return
    for i in range(count):
        if ops[i].kind == OP_LITERAL:
            least += ops[i].size
            pairs |= _pairs(w.text + ops[i].at, ops[i].size)
        elif ops[i].kind == OP_STAR:
            star = i
            stars += 1
        else:
            least += 1
            plain = False
    if count == 0 or least > MAX_NAME:
        w.dead = True
        return
    name = _component(w)
    if name == NULL:
        return
    name.least = <uint16_t>least
    name.tail = 0
    name.pairs = pairs
    if plain and stars == 0:
        name.kind = EXACT
        name.at = ops[0].at
        name.size = ops[0].size
    elif plain and stars == 1:
        name.kind = AFFIX
        name.at = ops[0].at if star > 0 else (ops[1].at if count > 1 else 0)
        name.size = ops[0].size if star > 0 else 0
        name.tail = <uint16_t>(least - name.size)
    else:
        name.kind = GENERAL
        name.at = <uint32_t>w.name_op
        name.size = <uint32_t>count
        name.tail = <uint16_t>(count - 1 - star) if stars else 0
    w.name_op = w.op_count


cdef void wild_slash(wild_t* w) noexcept nogil:
    """See the pxd."""
    _end_component(w)


cdef void wild_deep(wild_t* w) noexcept nogil:
    """See the pxd."""
    cdef name_t* name
    if w.dir_count > w.from_dir and w.dirs[w.dir_count - 1].kind == DEEP:
        w.deep_last = True
        return
    name = _component(w)
    if name == NULL:
        return
    name.kind = DEEP
    name.at = name.size = 0
    name.tail = name.least = 0
    name.pairs = 0
    w.deep_last = True


cdef void wild_drop(wild_t* w) noexcept nogil:
    """See the pxd."""
    w.dir_count = w.from_dir
    w.op_count = w.name_op = w.from_op
    w.class_count = w.from_class
    w.range_count = w.from_range
    w.text_count = w.from_text
    w.dead = w.deep_last = False


cdef void _join(wild_t* w, rule_t* rule) noexcept nogil:
    """Store the components before the name as one literal path, if no wildcard is in them."""
    cdef size_t at = w.text_count, size = 0, i
    cdef name_t* name
    rule.dir_text = <uint32_t>at
    rule.dir_size = NOT_LITERAL
    for i in range(rule.dir_count):
        name = w.dirs + rule.dirs + i
        if name.kind != EXACT:
            return
        size += name.size + (1 if i else 0)
    if not _grow(<void**>&w.text, &w.text_room, at + size, 1):
        w.failed = True
        return
    for i in range(rule.dir_count):
        name = w.dirs + rule.dirs + i
        if i:
            w.text[at] = c"/"
            at += 1
        memcpy(w.text + at, w.text + name.at, name.size)
        at += name.size
    w.text_count = at
    rule.dir_size = <uint32_t>size


cdef void wild_finish(wild_t* w, uint8_t flags) noexcept nogil:
    """See the pxd."""
    cdef rule_t* rule
    if w.op_count == w.name_op and w.deep_last:     # `a/**`: all below, so any name in any directory there
        wild_star(w)
    _end_component(w)
    if w.dead or w.failed:
        wild_drop(w)
        return
    if not _grow(<void**>&w.rules, &w.rule_room, w.rule_count + 1, sizeof(rule_t)):
        w.failed = True
        wild_drop(w)
        return
    rule = w.rules + w.rule_count
    w.dir_count -= 1
    rule.name = w.dirs[w.dir_count]
    rule.dirs = <uint32_t>w.from_dir
    rule.dir_count = <uint32_t>(w.dir_count - w.from_dir)
    rule.next = 0
    if rule.dir_count == 1 and w.dirs[rule.dirs].kind == DEEP:
        flags |= WILD_ANYWHERE
    if flags & WILD_ANYWHERE:
        w.dir_count = w.from_dir
        rule.dir_count = 0
    rule.flags = flags
    _join(w, rule)
    w.rule_count += 1
    w.from_dir = w.dir_count
    w.from_op = w.name_op = w.op_count
    w.from_class = w.class_count
    w.from_range = w.range_count
    w.from_text = w.text_count
    w.dead = w.deep_last = False


# -------------------------------------------------------------------------------------------------------- freezing

cdef void _edges(const wild_t* w, const name_t* name, bint last, uint64_t* edge) noexcept nogil:
    """Set in `edge`, 256 bits, the bytes that a matching name can begin with, or end with where `last`."""
    cdef const op_t* op
    cdef const class_t* c
    cdef uint8_t byte
    cdef size_t literal
    edge[0] = edge[1] = edge[2] = edge[3] = ~<uint64_t>0
    if name.kind == AFFIX:
        literal = name.tail if last else name.size
        if literal == 0:
            return
        byte = <uint8_t>w.text[name.at + (name.size + name.tail - 1 if last else 0)]
    elif name.kind == GENERAL:
        op = w.ops + name.at + (name.size - 1 if last else 0)
        if op.kind == OP_CLASS:
            c = w.classes + op.at
            edge[0] = c.low[0]
            edge[1] = c.low[1]
            if not w.utf8:
                edge[2] = c.low[2]
                edge[3] = c.low[3]
            return
        if op.kind != OP_LITERAL:
            return
        byte = <uint8_t>w.text[op.at + (op.size - 1 if last else 0)]
    else:
        return
    edge[0] = edge[1] = edge[2] = edge[3] = 0
    edge[byte >> 6] = <uint64_t>1 << (byte & 63)


cdef bint _fill_tables(wild_t* w) noexcept nogil:
    """Make the tables of first and last bytes; 0 = out of memory."""
    cdef uint64_t edge[4]
    cdef uint64_t* table
    cdef uint64_t bit
    cdef size_t i, word
    cdef uint32_t byte
    cdef int last
    w.words = (w.masked_count + 63) // 64
    w.tables = <uint64_t*>calloc(w.words * 512, sizeof(uint64_t))
    if w.tables == NULL:
        return False
    for i in range(w.masked_count):
        word = i >> 6
        bit = <uint64_t>1 << (i & 63)
        for last in range(2):
            _edges(w, &w.rules[w.masked[i]].name, last, edge)
            table = w.tables + last * 256 * w.words
            for byte in range(256):
                if edge[byte >> 6] >> (byte & 63) & 1:
                    table[byte * w.words + word] |= bit
    return True


cdef void _known_end(const wild_t* w, const name_t* name, quick_t* quick) noexcept nogil:
    """Note the bytes that every matching name ends with; one in the place of a wildcard is left out."""
    cdef char text[8]
    cdef char mask[8]
    cdef size_t left = 8, step, i, n
    cdef const op_t* op
    memset(text, 0, 8)
    memset(mask, 0, 8)
    if name.kind == AFFIX:
        n = min(left, <size_t>name.tail)
        for i in range(n):
            text[8 - n + i] = w.text[name.at + name.size + name.tail - n + i]
            mask[8 - n + i] = <char>0xff
        quick.whole = name.size == 0 and name.tail <= 8
    else:
        step = name.size
        while step and left:
            step -= 1
            op = w.ops + name.at + step
            if op.kind == OP_LITERAL:
                n = min(left, <size_t>op.size)
                for i in range(n):
                    text[left - n + i] = w.text[op.at + op.size - n + i]
                    mask[left - n + i] = <char>0xff
                left -= n
            elif op.kind == OP_STAR or w.utf8:  # of unknown length
                break
            else:
                left -= 1
        quick.pairs = name.pairs
    memcpy(&quick.end, text, 8)
    memcpy(&quick.mask, mask, 8)


cdef bint _fill_slots(wild_t* w, size_t exact) noexcept nogil:
    """Make the hash table of the exact names; 0 = out of memory."""
    cdef size_t room = 4, slot, i
    cdef rule_t* rule
    cdef rule_t* other
    while room < exact * 2:
        room *= 2
    w.slots = <uint32_t*>calloc(room, sizeof(uint32_t))
    if w.slots == NULL:
        return False
    w.slot_mask = room - 1
    for i in range(w.rule_count):
        rule = w.rules + i
        if rule.name.kind != EXACT:
            continue
        slot = _hash(w.text + rule.name.at, rule.name.size) & w.slot_mask
        while w.slots[slot]:
            other = w.rules + w.slots[slot] - 1
            if (
                other.name.size == rule.name.size
                and memcmp(w.text + other.name.at, w.text + rule.name.at, rule.name.size) == 0
            ):
                rule.next = w.slots[slot]
                break
            slot = (slot + 1) & w.slot_mask
        w.slots[slot] = <uint32_t>i + 1
    return True


cdef int wild_freeze(wild_t* w) noexcept nogil:
    """See the pxd."""
    cdef size_t exact = 0, i
    if w.failed:
        return -1
    for i in range(w.rule_count):
        if w.rules[i].name.kind == EXACT:
            exact += 1
    if exact and not _fill_slots(w, exact):
        return -1
    if exact == w.rule_count:
        return 0
    w.masked = <uint32_t*>calloc(w.rule_count - exact, sizeof(uint32_t))
    w.quick = <quick_t*>calloc(w.rule_count - exact, sizeof(quick_t))
    if w.masked == NULL or w.quick == NULL:
        return -1
    for i in range(w.rule_count):
        if w.rules[i].name.kind != EXACT:
            w.masked[w.masked_count] = <uint32_t>i
            _known_end(w, &w.rules[i].name, w.quick + w.masked_count)
            w.masked_count += 1
    if w.masked_count > FEW and not _fill_tables(w):
        return -1
    return 0


cdef void wild_common_end(const wild_t* w, uint64_t* end, uint64_t* mask) noexcept nogil:
    """See the pxd."""
    cdef size_t i
    end[0] = mask[0] = 0
    if w.masked_count == 0 or w.masked_count != w.rule_count:
        return
    end[0] = w.quick[0].end
    mask[0] = w.quick[0].mask
    for i in range(1, w.masked_count):
        mask[0] &= w.quick[i].mask & ~(end[0] ^ w.quick[i].end)


cdef uint32_t wild_count(const wild_t* w) noexcept nogil:
    """See the pxd."""
    return <uint32_t>w.rule_count


# ---------------------------------------------------------------------------------------------------------- asking

cdef uint64_t _hash(const char* name, size_t n) noexcept nogil:
    """Return the hash of a name for the table of exact ones."""
    cdef uint64_t factor = <uint64_t>0x9E3779B97F4A7C15
    cdef uint64_t h = n * factor, word = 0
    cdef uint32_t low = 0, high = 0
    cdef size_t at = 0
    while n - at > 8:
        memcpy(&word, name + at, 8)
        h = (h ^ word) * factor
        h ^= h >> 29
        at += 8
    if n >= 8:
        memcpy(&word, name + n - 8, 8)
    elif n >= 4:
        memcpy(&low, name, 4)
        memcpy(&high, name + n - 4, 4)
        word = low | <uint64_t>high << 32
    elif n:
        word = <uint8_t>name[0] | <uint64_t>(<uint8_t>name[n >> 1]) << 8 | <uint64_t>(<uint8_t>name[n - 1]) << 16
    h = (h ^ word) * factor
    return h ^ h >> 32


cdef inline bint _member(const wild_t* w, const class_t* c, uint32_t code) noexcept nogil:
    cdef uint32_t i
    if code < 256:
        return c.low[code >> 6] >> (code & 63) & 1
    for i in range(c.first, c.first + c.count):
        if w.ranges[i].low <= code and code <= w.ranges[i].high:
            return not c.negated
    return c.negated


cdef bint _general(const wild_t* w, const op_t* ops, size_t count, const uint8_t* s, size_t n) noexcept nogil:
    """Match steps against a whole name; goes back to the last star only, so at most steps times bytes."""
    cdef size_t i = 0, at = 0, star = SIZE_MAX, from_at = 0
    cdef uint32_t code = 0
    cdef size_t size = 1
    while True:
        if i == count:
            if at == n:
                return True
        elif ops[i].kind == OP_STAR:
            i += 1
            if i == count:
                return True
            star = i
            from_at = at
            continue
        elif ops[i].kind == OP_LITERAL:
            if ops[i].size > n - at:
                return False    # a later start leaves even less
            if memcmp(w.text + ops[i].at, s + at, ops[i].size) == 0:
                at += ops[i].size
                i += 1
                continue
        elif at < n:
            if w.utf8:
                size = decode(s + at, n - at, &code)
            else:
                code = s[at]
            if ops[i].kind == OP_ANY or _member(w, w.classes + ops[i].at, code):
                at += size
                i += 1
                continue
        else:
            return False
        if star == SIZE_MAX or from_at >= n:
            return False
        from_at += decode(s + from_at, n - from_at, &code) if w.utf8 else 1
        at = from_at
        i = star


cdef int _tail(const wild_t* w, const op_t* ops, size_t count, const uint8_t* s, size_t n) noexcept nogil:
    """Look at the steps behind the last star from the end: 0 = they do not match, 1 = they do or it is not known."""
    cdef const op_t* op
    while count:
        count -= 1
        op = ops + count
        if op.kind == OP_LITERAL:
            if op.size > n or memcmp(w.text + op.at, s + n - op.size, op.size) != 0:
                return 0
            n -= op.size
            continue
        if n == 0:
            return 0
        if w.utf8 and s[n - 1] >= 0x80:
            return 1
        n -= 1
        if op.kind == OP_CLASS and not _member(w, w.classes + op.at, s[n]):
            return 0
    return 1


cdef inline bint _fits(const wild_t* w, const name_t* p, const char* name, size_t n) noexcept nogil:
    """Match the pattern of one component against one whole name."""
    if n < p.least:
        return False
    if p.kind == EXACT:
        return n == p.size and memcmp(w.text + p.at, name, n) == 0
    if p.kind == AFFIX:
        return (
            _same(w.text + p.at + p.size, name + n - p.tail, p.tail)
            and _same(w.text + p.at, name, p.size)
        )
    if p.tail and not _tail(w, w.ops + p.at + p.size - p.tail, p.tail, <const uint8_t*>name, n):
        return False
    return _general(w, w.ops + p.at, p.size, <const uint8_t*>name, n)


cdef bint _dirs_fit(
    const wild_t* w, const name_t* dirs, size_t count, const char* path, size_t n
) noexcept nogil:
    """Match components against a whole path of directories; goes back to the last `**` only."""
    cdef size_t i = 0, at = 0, end, deep = SIZE_MAX, from_at = 0
    cdef const char* slash
    while at < n:
        if i < count and dirs[i].kind == DEEP:
            i += 1
            if i == count:
                return True
            deep = i
            from_at = at
            continue
        slash = <const char*>memchr(path + at, c"/", n - at)
        end = slash - path if slash != NULL else n
        if i < count and _fits(w, dirs + i, path + at, end - at):
            i += 1
            at = end + 1
            continue
        if deep == SIZE_MAX:
            return False
        slash = <const char*>memchr(path + from_at, c"/", n - from_at)
        from_at = slash - path + 1 if slash != NULL else n
        at = from_at
        i = deep
    while i < count and dirs[i].kind == DEEP:
        i += 1
    return i == count


cdef inline bint _holds(
    const wild_t* w, const rule_t* rule, const char* path, size_t n, bint is_dir
) noexcept nogil:
    """Whether a rule whose name fits holds in this directory and for this kind of entry."""
    if rule.flags & WILD_DIR_ONLY and not is_dir:
        return False
    if rule.flags & WILD_ANYWHERE:
        return True
    if rule.dir_size != NOT_LITERAL:
        return n == rule.dir_size and _same(w.text + rule.dir_text, path, n)
    return _dirs_fit(w, w.dirs + rule.dirs, rule.dir_count, path, n)


cdef inline bint _matches(
    const wild_t* w, const rule_t* rule, const quick_t* quick, const char* name, size_t n
) noexcept nogil:
    """Match a pattern whose known end is that of the name."""
    return n >= rule.name.least if quick.whole else _fits(w, &rule.name, name, n)


cdef int wild_last(
    const wild_t* w, const char* dir_path, size_t dir_len, const char* name, size_t name_len,
    uint64_t* hash, bint is_dir
) noexcept nogil:
    """See the pxd."""
    cdef uint32_t best = 0, at
    cdef size_t slot, i, word
    cdef uint64_t pairs = 0     # of the name, once they are asked for
    cdef uint64_t end
    cdef const quick_t* quick
    cdef const rule_t* rule
    cdef const uint64_t* first
    cdef const uint64_t* last
    cdef uint64_t bits
    if name_len == 0:
        return -1
    if w.slots != NULL:
        if hash[0] == 0:
            hash[0] = _hash(name, name_len)
        slot = hash[0] & w.slot_mask
        while w.slots[slot]:
            rule = w.rules + w.slots[slot] - 1
            if rule.name.size == name_len and memcmp(w.text + rule.name.at, name, name_len) == 0:
                at = w.slots[slot]
                while at and not _holds(w, w.rules + at - 1, dir_path, dir_len, is_dir):
                    at = w.rules[at - 1].next
                best = at
                break
            slot = (slot + 1) & w.slot_mask
    end = wild_end(name, name_len)
    if w.words:
        first = w.tables + <uint8_t>name[0] * w.words
        last = w.tables + (256 + <size_t><uint8_t>name[name_len - 1]) * w.words
        word = w.words
        while word:
            word -= 1
            bits = first[word] & last[word]
            while bits:
                i = 63 - wild_clz(bits)
                bits ^= <uint64_t>1 << i
                i |= word * 64
                quick = w.quick + i
                if (quick.end ^ end) & quick.mask:
                    continue
                if quick.pairs:
                    if pairs == 0:
                        pairs = _pairs(name, name_len)
                    if quick.pairs & ~pairs:
                        continue
                at = w.masked[i]
                if at < best:
                    return w.rules[best - 1].flags
                rule = w.rules + at
                if _matches(w, rule, quick, name, name_len) and _holds(w, rule, dir_path, dir_len, is_dir):
                    return rule.flags
    else:
        i = w.masked_count
        while i:
            i -= 1
            at = w.masked[i]
            if at < best:
                break
            quick = w.quick + i
            if (quick.end ^ end) & quick.mask:
                continue
            rule = w.rules + at
            if _matches(w, rule, quick, name, name_len) and _holds(w, rule, dir_path, dir_len, is_dir):
                return rule.flags
    return w.rules[best - 1].flags if best else -1


cdef bint wild_below(const wild_t* w, const char* dir_path, size_t dir_len) noexcept nogil:
    """See the pxd."""
    cdef size_t at, i, end
    cdef uint32_t k
    cdef const rule_t* rule
    cdef const name_t* dirs
    cdef const char* slash
    if dir_len == 0:
        return w.rule_count > 0
    for i in range(w.rule_count):
        rule = w.rules + i
        if rule.flags & WILD_ANYWHERE:
            return True
        dirs = w.dirs + rule.dirs
        at = 0
        for k in range(rule.dir_count):
            if dirs[k].kind == DEEP:
                return True
            slash = <const char*>memchr(dir_path + at, c"/", dir_len - at)
            end = slash - dir_path if slash != NULL else dir_len
            if not _fits(w, dirs + k, dir_path + at, end - at):
                break
            if slash == NULL:
                return True
            at = end + 1
    return False
