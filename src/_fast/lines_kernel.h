/* The loops of lines.h, included once for each kind of Lane, inside that kind's namespace.
 *
 * A Lane tells, as a bit mask, which of its `width` bytes are equal to one (equal), not ASCII (high), a control other than
 * tab, LF and CR (control), or in need of more than a copy in JSON (special: control, high, tab, LF, CR, quote, backslash).
 */

/* Ask all lanes of the block at `at`. */
#define LINES_ASK(name, ...)                                       \
    uint64_t mask = 0;                                             \
    for (size_t lane = 0; lane < BLOCK; lane += Lane::width)       \
        mask |= Lane::load(at + lane).name(__VA_ARGS__) << lane;   \
    return mask

static inline uint64_t equal(const uint8_t *at, uint8_t byte) noexcept { LINES_ASK(equal, byte); }
static inline uint64_t special(const uint8_t *at) noexcept { LINES_ASK(special); }
static inline uint64_t high(const uint8_t *at) noexcept { LINES_ASK(high); }
static inline uint64_t control(const uint8_t *at) noexcept { LINES_ASK(control); }
#undef LINES_ASK

static inline bool whole_block(const uint8_t *at, const uint8_t *end, size_t blocks = 1) noexcept {
    return static_cast<size_t>(end - at) >= blocks * BLOCK;
}

static inline size_t bits(uint64_t mask) noexcept { return static_cast<size_t>(__builtin_popcountll(mask)); }

/* Copy `size` bytes, a lane at a time: up to a lane more is read and written. */
static inline void copy(const uint8_t *from, uint8_t *to, size_t size) noexcept {
    Lane::load(from).store(to);
    for (size_t done = Lane::width; __builtin_expect(done < size, 0); done += Lane::width)
        Lane::load(from + done).store(to + done);
}

/* Count the LFs of [at, end). */
static inline size_t count(const uint8_t *at, const uint8_t *end) noexcept {
    size_t found = 0;
    for (; whole_block(at, end); at += BLOCK) found += bits(equal(at, '\n'));
    for (; at < end; at++) found += *at == '\n';
    return found;
}

/* Return what follows the LF number *feeds (from 1), or `end`; *feeds becomes the number of LFs passed. */
static inline const uint8_t *skip(const uint8_t *at, const uint8_t *end, size_t *feeds) noexcept {
    size_t left = *feeds;
    if (left == 0) return at;
    for (; whole_block(at, end); at += BLOCK) {
        uint64_t mask = equal(at, '\n');
        const size_t here = bits(mask);
        if (here < left) {
            left -= here;
            continue;
        }
        while (--left) mask &= mask - 1;
        return at + __builtin_ctzll(mask) + 1;
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
    for (; whole_block(at, end); at += BLOCK) {
        const uint64_t specials = special(at);
        if (specials == 0) continue;
        const uint64_t feeds = equal(at, '\n'), highs = high(at), controls = control(at);
        found.feeds += bits(feeds);
        found.size += bits(specials ^ feeds);
        if (highs | controls) found.size += bits(highs) + 4 * bits(controls);
    }
    for (; at < end; at++) {
        if (*at == '\n') found.feeds++;
        else if (*at >= 0x80) found.size += 2;
        else if (ESCAPES.length[*at]) found.size += static_cast<size_t>(ESCAPES.length[*at]) - 1;
    }
    found.size -= found.feeds;
    return found;
}

/* Return where the first ill-formed sequence begins, or `end`. */
static inline const uint8_t *well_formed(const uint8_t *at, const uint8_t *end) noexcept {
    while (at < end) {
        if (whole_block(at, end)) {
            const uint64_t highs = high(at);
            if (highs == 0) {
                at += BLOCK;
                continue;
            }
            at += __builtin_ctzll(highs);
        }
        while (at < end && *at < 0x80) at++;
        while (at < end && *at >= 0x80) {
            const int length = utf8::sequence(at, end);
            if (length < 0) return at;
            at += length;
        }
    }
    return end;
}

/* Write the run of bytes at `at` that are not ASCII, and return the first that is. */
static inline const uint8_t *put_run(const uint8_t *at, const uint8_t *end, uint8_t **out) noexcept {
    uint8_t *to = *out;
    while (at < end && *at >= 0x80) {
        const int length = utf8::sequence(at, end);
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

/* Write [at, end) escaped. With `numbered` each LF begins the next line with its number, but for one at the very end, and a
 * CR before an LF is dropped. May write SLACK bytes past the result. */
template <bool NUMBERED>
static inline uint8_t *render(const uint8_t *at, const uint8_t *end, uint8_t *out, Numbered *numbered) noexcept {
    const Pieces &pieces = NUMBERED ? numbered->pieces : ESCAPES;
    const uint8_t *const stop = NUMBERED && at < end && end[-1] == '\n' ? end - 1 : end;
    while (whole_block(at, stop, 2)) {
        const uint64_t tabs = equal(at, '\t');
        uint64_t mask = special(at) & ~(tabs & tabs << 1);  /* of a run of tabs the first stands for all */
        const uint8_t *from = at;                           /* what is written up to */
        const uint8_t *next = at + BLOCK;
        while (mask) {
            /* No branch on which special byte it is, where it can be helped: it could not be foretold. */
            const unsigned place = static_cast<unsigned>(__builtin_ctzll(mask));
            const uint8_t *here = at + place;
            const uint8_t byte = *here;
            mask &= mask - 1;
            copy(from, out, static_cast<size_t>(here - from));
            out += here - from;
            if (byte >= 0x80) {
                from = next = put_run(here, stop, &out);
                break;
            }
            from = here + 1;
            if (NUMBERED && byte == '\r' && *from == LF) continue;
            std::memcpy(out, pieces.text[byte], 16);
            out += pieces.length[byte];
            const uint64_t others = ~(tabs >> place) >> 1;  /* than tabs, after this byte, if that is one */
            size_t more = byte == '\t' ? static_cast<size_t>(__builtin_ctzll(others | uint64_t{1} << 63)) : 0;
            from += more;
            for (; __builtin_expect(more > 7, 0); more -= 7) {
                out += 14;
                std::memcpy(out, pieces.text[static_cast<uint8_t>('\t')], 16);
            }
            out += 2 * more;
            if (NUMBERED && byte == LF) numbered->next(true);
        }
        if (from < next) {
            copy(from, out, static_cast<size_t>(next - from));
            out += next - from;
        }
        at = next;
    }
    while (at < stop) {
        const uint8_t byte = *at;
        if (byte >= 0x80) {
            at = put_run(at, stop, &out);
            continue;
        }
        at++;
        if (NUMBERED && byte == '\r' && at < end && *at == '\n') continue;
        if (pieces.length[byte]) {
            std::memcpy(out, pieces.text[byte], 16);
            out += pieces.length[byte];
            if (NUMBERED && byte == '\n') numbered->next(true);
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
    out += decimal(out, first);
    std::memcpy(out, "\\t", 2);
    Numbered numbered(first + 1);
    return render<true>(at, end, out + 2, &numbered);
}
