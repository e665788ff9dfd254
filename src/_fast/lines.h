/* Text as JSON: lines counted and numbered, UTF-8 checked, strings escaped.
 *
 * The loops over bytes are compiled once for each kind of block (lines_kernel.h): AVX2 where the processor has it, else
 * SSE2, else plain C++. Nothing here calls Python or takes the GIL.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>

#include "growth.h"
#include "utf8.h"
#endif

namespace lines {

/* The loops go over blocks of this many bytes, one bit of a mask for each. */
constexpr size_t BLOCK = 64;
/* What ends a line. */
constexpr uint8_t LF = 10;
/* How far past its result a renderer may write: one block. */
constexpr size_t SLACK = 2 * BLOCK;

/* Bytes that grow: all zero to begin with, `data` is from malloc and belongs to the declarer (release). */
struct Text {
    uint8_t *data;
    size_t used;
    size_t capacity;
};

/* Make room for `more` bytes; -1 when there is no memory, the text then stays as it is. */
inline int reserve(Text *text, size_t more) noexcept {
    if (more > SIZE_MAX - text->used) return -1;
    return growth::grow(&text->data, &text->capacity, text->used + more, 256);
}

/* Ask for huge pages for a large, fresh buffer: with small ones the page faults take longer than the text. */
inline void prefer_huge_pages(uint8_t *data, size_t size) noexcept {
#if defined(MADV_HUGEPAGE)
    constexpr uintptr_t page = 4096;
    if (size < (size_t{4} << 20)) return;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page - 1) & ~(page - 1);
    const uintptr_t end = reinterpret_cast<uintptr_t>(data + size) & ~(page - 1);
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);  /* only a wish */
#else
    (void)data, (void)size;
#endif
}

inline void release(Text *text) noexcept {
    std::free(text->data);
    *text = Text{nullptr, 0, 0};
}

/* Append bytes as they are; -1 when there is no memory. */
inline int append(Text *text, const char *data, size_t size) noexcept {
    if (reserve(text, size)) return -1;
    if (size) std::memcpy(text->data + text->used, data, size);
    text->used += size;
    return 0;
}

inline size_t decimal(uint8_t *out, uint64_t number) noexcept {
    uint8_t digits[20];
    size_t count = 0;
    do {
        digits[count++] = static_cast<uint8_t>('0' + number % 10);
        number /= 10;
    } while (number);
    for (size_t at = 0; at < count; at++) out[at] = digits[count - 1 - at];
    return count;
}

/* Append a number in decimal; -1 when there is no memory. */
inline int append_number(Text *text, uint64_t number) noexcept {
    if (reserve(text, 20)) return -1;
    text->used += decimal(text->data + text->used, number);
    return 0;
}

/* What each byte that cannot stand as it is becomes in JSON: 16 bytes to copy, of which `length` count; 0 marks the others.
 * The piece of a tab holds eight of them, since they come in runs. */
struct Pieces {
    uint8_t text[256][16];
    uint8_t length[256];

    constexpr Pieces() : text(), length() {
        constexpr char hex[] = "0123456789abcdef";
        for (unsigned byte = 0; byte < 32; byte++) {
            const char spelled[] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
            for (unsigned at = 0; at < 6; at++) text[byte][at] = static_cast<uint8_t>(spelled[at]);
            length[byte] = 6;
        }
        constexpr uint8_t two[][2] = {{'\b', 'b'}, {'\t', 't'}, {'\n', 'n'}, {'\f', 'f'}, {'\r', 'r'}, {'"', '"'}, {'\\', '\\'}};
        for (const auto &pair : two) {
            for (unsigned at = 0; at < 16; at += 2) {
                text[pair[0]][at] = '\\';
                text[pair[0]][at + 1] = pair[1];
            }
            length[pair[0]] = 2;
        }
    }
};

inline constexpr Pieces ESCAPES{};

/* Pieces in which that of LF is the end of a line and the number of the next one, counted up in place. */
struct Numbered {
    Pieces pieces;
    uint64_t value;     /* the number in the piece */
    unsigned last;      /* where its last digit is */

    explicit Numbered(uint64_t first) noexcept : pieces(ESCAPES), value(first), last(0) { spell(); }

    /* Spell the piece anew: `\n`, the number, `\t` escaped. 10^11 lines fill it; no text has so many. */
    void spell() noexcept {
        uint8_t spelled[24] = {'\\', 'n'};
        size_t used = 2 + decimal(spelled + 2, value);
        last = static_cast<unsigned>(used - 1);
        spelled[used++] = '\\';
        spelled[used++] = 't';
        std::memcpy(pieces.text[LF], spelled, 16);
        pieces.length[LF] = static_cast<uint8_t>(used);
    }

    /* Go on to the next number if `ended`, without a branch on it. */
    void next(bool ended) noexcept {
        value += ended;
        pieces.text[LF][last] = static_cast<uint8_t>(pieces.text[LF][last] + ended);
        if (__builtin_expect(pieces.text[LF][last] > '9', 0)) spell();
    }
};

/* What a span may take as JSON at most, its LFs left out of account and told apart. */
struct Measure {
    size_t size;
    size_t feeds;
};

namespace plain {
struct Lane {
    static constexpr size_t width = 16;
    uint8_t bytes[width];

    static inline Lane load(const uint8_t *from) noexcept {
        Lane lane;
        std::memcpy(lane.bytes, from, width);
        return lane;
    }
    inline void store(uint8_t *to) const noexcept { std::memcpy(to, bytes, width); }
    template <typename Test> inline uint64_t where(Test test) const noexcept {
        uint64_t mask = 0;
        for (size_t at = 0; at < width; at++) mask |= static_cast<uint64_t>(test(bytes[at])) << at;
        return mask;
    }
    inline uint64_t equal(uint8_t byte) const noexcept {
        return where([byte](uint8_t it) { return it == byte; });
    }
    inline uint64_t special() const noexcept {
        return where([](uint8_t it) { return it < 0x20 || it >= 0x80 || it == '"' || it == '\\'; });
    }
    inline uint64_t high() const noexcept {
        return where([](uint8_t it) { return it >= 0x80; });
    }
    inline uint64_t control() const noexcept {
        return where([](uint8_t it) { return it < 0x20 && it != '\t' && it != '\n' && it != '\r'; });
    }
};
#include "lines_kernel.h"
}  // namespace plain

#if defined(__x86_64__)
namespace sse2 {
struct Lane {
    static constexpr size_t width = 16;
    __m128i bytes;

    static inline Lane load(const uint8_t *from) noexcept {
        return {_mm_loadu_si128(reinterpret_cast<const __m128i *>(from))};
    }
    inline void store(uint8_t *to) const noexcept { _mm_storeu_si128(reinterpret_cast<__m128i *>(to), bytes); }
    static inline uint64_t mask(__m128i lanes) noexcept { return static_cast<uint32_t>(_mm_movemask_epi8(lanes)); }
    inline __m128i is(char byte) const noexcept { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte)); }
    inline uint64_t equal(uint8_t byte) const noexcept { return mask(is(static_cast<char>(byte))); }
    inline uint64_t special() const noexcept {
        /* signed: bytes from 0x80 are below 0x20 too */
        const __m128i odd = _mm_cmpgt_epi8(_mm_set1_epi8(0x20), bytes);
        return mask(_mm_or_si128(odd, _mm_or_si128(is('"'), is('\\'))));
    }
    inline uint64_t high() const noexcept { return mask(bytes); }
    inline uint64_t control() const noexcept {
        const __m128i odd = _mm_cmpgt_epi8(_mm_set1_epi8(0x20), bytes);
        const __m128i not_these = _mm_or_si128(_mm_or_si128(is('\t'), is('\n')), _mm_or_si128(is('\r'), bytes));
        return mask(_mm_andnot_si128(not_these, odd)) & ~high();
    }
};
#include "lines_kernel.h"
}  // namespace sse2

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,popcnt")
#endif
namespace avx2 {
struct Lane {
    static constexpr size_t width = 32;
    __m256i bytes;

    static inline Lane load(const uint8_t *from) noexcept {
        return {_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from))};
    }
    inline void store(uint8_t *to) const noexcept { _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), bytes); }
    static inline uint64_t mask(__m256i lanes) noexcept { return static_cast<uint32_t>(_mm256_movemask_epi8(lanes)); }
    inline __m256i is(char byte) const noexcept { return _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte)); }
    inline uint64_t equal(uint8_t byte) const noexcept { return mask(is(static_cast<char>(byte))); }
    inline uint64_t special() const noexcept {
        const __m256i odd = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), bytes);
        return mask(_mm256_or_si256(odd, _mm256_or_si256(is('"'), is('\\'))));
    }
    inline uint64_t high() const noexcept { return mask(bytes); }
    inline uint64_t control() const noexcept {
        const __m256i odd = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), bytes);
        const __m256i not_these = _mm256_or_si256(_mm256_or_si256(is('\t'), is('\n')), _mm256_or_si256(is('\r'), bytes));
        return mask(_mm256_andnot_si256(not_these, odd)) & ~high();
    }
};
#include "lines_kernel.h"
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

/* The kernels in use, chosen once; `force` is for tests: 0 the best there is, 1 plain, 2 SSE2, 3 AVX2. */
struct Kernels {
    size_t (*count)(const uint8_t *, const uint8_t *) noexcept;
    const uint8_t *(*skip)(const uint8_t *, const uint8_t *, size_t *) noexcept;
    Measure (*measure)(const uint8_t *, const uint8_t *) noexcept;
    const uint8_t *(*well_formed)(const uint8_t *, const uint8_t *) noexcept;
    uint8_t *(*escape)(const uint8_t *, const uint8_t *, uint8_t *) noexcept;
    uint8_t *(*number)(const uint8_t *, const uint8_t *, uint8_t *, uint64_t) noexcept;
};

#define LINES_KERNELS(kind) \
    Kernels { kind::count, kind::skip, kind::measure, kind::well_formed, kind::escape, kind::number }

inline bool available(int kind) noexcept {
#if defined(__x86_64__)
    if (kind == 3) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
    if (kind == 2) return true;
#endif
    return kind == 1;
}

inline Kernels chosen(int kind) noexcept {
#if defined(__x86_64__)
    if (kind == 3) return LINES_KERNELS(avx2);
    if (kind == 2) return LINES_KERNELS(sse2);
#endif
    return LINES_KERNELS(plain);
}

inline Kernels &kernels() noexcept {
    static Kernels used = chosen(available(3) ? 3 : available(2) ? 2 : 1);
    return used;
}

/* ------------------------------------------------------------------------------------ what other kernels call */

inline const uint8_t *bytes_of(const char *data) noexcept { return reinterpret_cast<const uint8_t *>(data); }

/* Return the number of LFs. */
inline size_t count_lf(const char *data, size_t size) noexcept {
    return kernels().count(bytes_of(data), bytes_of(data) + size);
}

/* Return how many bytes at the beginning are well-formed UTF-8 that ends with a whole character; all: `size`. */
inline size_t utf8_prefix(const char *data, size_t size) noexcept {
    return static_cast<size_t>(kernels().well_formed(bytes_of(data), bytes_of(data) + size) - bytes_of(data));
}

/* Append bytes as the inside of a JSON string, without its quotes; U+FFFD stands for each maximal ill-formed part.
 * -1 when there is no memory. */
inline int append_json(Text *text, const char *data, size_t size) noexcept {
    const uint8_t *begin = bytes_of(data), *end = begin + size;
    const Measure found = kernels().measure(begin, end);
    if (found.size > SIZE_MAX / 4 || reserve(text, found.size + 2 * found.feeds + SLACK)) return -1;
    text->used = static_cast<size_t>(kernels().escape(begin, end, text->data + text->used) - text->data);
    return 0;
}

/* A part of what `number` wrote: its bytes, the bytes of text they stand for, and the lines. */
struct Part {
    size_t size;
    size_t text;
    size_t lines;
};

/* Find the longest part of numbered lines, without the quotes, that is whole lines and stands for at most `most` bytes of
 * text. One pass over the escapes. */
inline Part part_within(const uint8_t *begin, const uint8_t *end, size_t most) noexcept {
    const uint8_t *at = begin;
    size_t text = 0, ended = 0;
    Part part{0, 0, 0};
    while (at < end) {
        const void *found = std::memchr(at, '\\', static_cast<size_t>(end - at));
        const uint8_t *escape = found == nullptr ? end : static_cast<const uint8_t *>(found);
        text += static_cast<size_t>(escape - at);
        if (text > most) return part;
        at = escape;
        if (at == end) break;
        if (at[1] == 'n') part = Part{static_cast<size_t>(at - begin), text, ++ended};
        at += at[1] == 'u' ? 6 : 2;  /* \u only for a control: one byte */
        text++;
    }
    if (text > most) return part;
    return Part{static_cast<size_t>(end - begin), text, begin < end ? ended + 1 : 0};
}

/* -------------------------------------------------------------------------------------------- UTF-16 to UTF-8 */

/* Write UTF-16 as UTF-8, at most 3 bytes for each 2 and 3 for an odd last one; U+FFFD stands for a lone surrogate and for
 * an odd last byte. */
inline uint8_t *from_utf16(const uint8_t *at, const uint8_t *end, bool big, uint8_t *out) noexcept {
    const int high = big ? 0 : 1, low = big ? 1 : 0;
    while (end - at >= 2) {
        uint32_t code = static_cast<uint32_t>(at[high] << 8 | at[low]);
        at += 2;
        if ((code & 0xf800) == 0xd800) {
            const uint32_t next = end - at >= 2 ? static_cast<uint32_t>(at[high] << 8 | at[low]) : 0;
            if (code < 0xdc00 && (next & 0xfc00) == 0xdc00) {
                code = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00);
                at += 2;
            } else {
                code = 0xfffd;
            }
        }
        out = utf8::put(out, code);
    }
    return at < end ? utf8::put(out, 0xfffd) : out;
}

}  // namespace lines
