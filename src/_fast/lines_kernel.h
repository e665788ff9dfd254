/* The loops of lines.h, included once for each kind of Block, inside that kind's namespace.
 *
 * A Block tells, as a bit mask, which of its `width` bytes are equal to one (equal), not ASCII (high), a control other
 * than tab, LF and CR (control), or in need of more than a copy in JSON (special: control, high, quote, backslash).
 */

/* Count the LFs of [at, end). */
static inline size_t count(const uint8_t *at, const uint8_t *end) noexcept {
    size_t found = 0;
    for (; static_cast<size_t>(end - at) >= Block::width; at += Block::width)
        found += static_cast<size_t>(__builtin_popcount(Block::load(at).equal('\n')));
    for (; at < end; at++) found += *at == '\n';
    return found;
}

/* Answer what follows the LF number *feeds (from 1), or `end`; *feeds becomes the number of LFs passed. */
static inline const uint8_t *skip(const uint8_t *at, const uint8_t *end, size_t *feeds) noexcept {
    size_t left = *feeds;
    if (left == 0) return at;
    for (; static_cast<size_t>(end - at) >= Block::width; at += Block::width) {
        uint32_t mask = Block::load(at).equal('\n');
        const size_t here = static_cast<size_t>(__builtin_popcount(mask));
        if (here < left) {
            left -= here;
            continue;
        }
        while (--left) mask &= mask - 1;
        return at + __builtin_ctz(mask) + 1;
    }
    for (; at < end; at++) {
        if (*at == '\n' && --left == 0) return at + 1;
    }
    *feeds -= left;
    return end;
}

/* Bound what [at, end) takes as JSON, LFs not counted: a control 6 bytes, a byte that is not ASCII 3 (as U+FFFD), tab, CR,
 * quote and backslash 2. */
static inline Measure measure(const uint8_t *at, const uint8_t *end) noexcept {
    Measure found{static_cast<size_t>(end - at), 0};
    for (; static_cast<size_t>(end - at) >= Block::width; at += Block::width) {
        const Block block = Block::load(at);
        const uint32_t special = block.special();
        if (special == 0) continue;
        const uint32_t feeds = block.equal('\n'), high = block.high(), control = block.control();
        found.feeds += static_cast<size_t>(__builtin_popcount(feeds));
        found.size += static_cast<size_t>(__builtin_popcount(special ^ feeds));
        if (high | control)
            found.size += static_cast<size_t>(__builtin_popcount(high) + 4 * __builtin_popcount(control));
    }
    for (; at < end; at++) {
        if (*at == '\n') found.feeds++;
        else if (*at >= 0x80) found.size += 2;
        else if (ESCAPES.length[*at]) found.size += static_cast<size_t>(ESCAPES.length[*at]) - 1;
    }
    found.size -= found.feeds;
    return found;
}

/* Answer where the first ill-formed sequence begins, or `end`. */
static inline const uint8_t *well_formed(const uint8_t *at, const uint8_t *end) noexcept {
    while (at < end) {
        if (static_cast<size_t>(end - at) >= Block::width) {
            const uint32_t high = Block::load(at).high();
            if (high == 0) {
                at += Block::width;
                continue;
            }
            at += __builtin_ctz(high);
        }
        while (at < end && *at < 0x80) at++;
        while (at < end && *at >= 0x80) {
            const int length = sequence(at, end);
            if (length < 0) return at;
            at += length;
        }
    }
    return end;
}

/* Write the run of bytes at `at` that are not ASCII, and answer the first that is. */
static inline const uint8_t *put_run(const uint8_t *at, const uint8_t *end, uint8_t **out) noexcept {
    uint8_t *to = *out;
    while (at < end && *at >= 0x80) {
        const int length = sequence(at, end);
        if (length < 0) {
            std::memcpy(to, "\xef\xbf\xbd", 3);
            to += 3;
            at -= length;
        } else {
            for (int byte = 0; byte < length; byte++) to[byte] = at[byte];
            to += length;
            at += length;
        }
    }
    *out = to;
    return at;
}

/* Write [at, end) escaped. With NUMBERED each LF but one at the very end begins the next numbered line, and a CR before an
 * LF is dropped. May write SLACK bytes past the result. */
template <bool NUMBERED>
static inline uint8_t *render(const uint8_t *at, const uint8_t *end, uint8_t *out, Number *number) noexcept {
    while (static_cast<size_t>(end - at) >= 2 * Block::width) {
        const Block block = Block::load(at);
        block.store(out);
        uint32_t mask = block.special();
        const uint8_t *from = at;  /* what is written up to; the store above wrote the bytes before the first special */
        const uint8_t *next = at + Block::width;
        while (mask) {
            const uint8_t *here = at + __builtin_ctz(mask);
            const uint8_t byte = *here;
            Block::load(from).store(out);
            out += here - from;
            from = here + 1;
            mask &= mask - 1;
            if (NUMBERED && byte == '\n') {
                if (from == end) return out;
                out = put_line_end(out, number);
            } else if (byte < 0x80) {
                if (NUMBERED && byte == '\r' && *from == '\n') continue;
                std::memcpy(out, ESCAPES.text[byte], 8);
                out += ESCAPES.length[byte];
            } else {
                from = next = put_run(here, end, &out);
                break;
            }
        }
        if (from < next) {
            Block::load(from).store(out);
            out += next - from;
        }
        at = next;
    }
    while (at < end) {
        const uint8_t byte = *at;
        if (byte >= 0x80) {
            at = put_run(at, end, &out);
            continue;
        }
        at++;
        if (NUMBERED && byte == '\n') {
            if (at == end) return out;
            out = put_line_end(out, number);
        } else if (NUMBERED && byte == '\r' && at < end && *at == '\n') {
            continue;
        } else if (ESCAPES.length[byte]) {
            std::memcpy(out, ESCAPES.text[byte], 8);
            out += ESCAPES.length[byte];
        } else {
            *out++ = byte;
        }
    }
    return out;
}

static inline uint8_t *escape(const uint8_t *at, const uint8_t *end, uint8_t *out) noexcept {
    return render<false>(at, end, out, nullptr);
}

static inline uint8_t *number(const uint8_t *at, const uint8_t *end, uint8_t *out, uint64_t first) noexcept {
    Number numbers(first);
    return render<true>(at, end, numbers.put(out), &numbers);
}
