/* Finding any of a few byte strings, the case of ASCII letters ignored on demand.
 *
 * One string is looked for by its two rarest bytes, a block of positions at a time. Several are looked for by the nibbles
 * of up to three bytes of each (its rarest stretch): two table look-ups a byte tell in which of eight groups a string may
 * stand at a position. What passes is compared. The loops are compiled once for each kind of block (scan_kernel.h).
 * Nothing here calls Python or takes the GIL.
 */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace scan {

/* How far past the end of the data the loops may read. */
constexpr size_t SLACK = 192;
/* More strings than this are no longer told apart well by eight groups. */
constexpr size_t MAX_NEEDLES = 64;
constexpr size_t NONE = SIZE_MAX;

/* How common a byte is in source code and prose: 14 steps for each doubling, 255 for the blank. Counted over kernel
 * sources, Python packages and documentation; only the order matters, and only for speed. */
constexpr uint8_t RANK[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 202, 218, 0, 0, 90, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    255, 134, 192, 171, 104, 134, 149, 191, 195, 195, 189, 146, 203, 198, 196, 197,
    201, 178, 177, 170, 169, 165, 165, 161, 165, 161, 187, 179, 182, 195, 190, 120,
    124, 183, 164, 177, 169, 183, 168, 154, 149, 178, 125, 142, 172, 165, 174, 169,
    170, 140, 173, 178, 180, 162, 147, 144, 141, 139, 117, 166, 160, 166, 118, 211,
    170, 224, 197, 216, 214, 236, 207, 198, 206, 224, 164, 184, 217, 205, 223, 224,
    209, 156, 224, 225, 230, 209, 185, 183, 193, 190, 152, 156, 148, 156, 133, 0,
    132, 117, 121, 110, 122, 112, 109, 111, 118, 110, 105, 110, 122, 108, 100, 119,
    107, 100, 89, 97, 117, 108, 114, 103, 110, 109, 122, 106, 121, 105, 98, 119,
    112, 110, 96, 96, 108, 108, 103, 102, 119, 95, 100, 95, 96, 106, 113, 116,
    113, 96, 92, 97, 101, 91, 105, 97, 130, 107, 117, 118, 124, 115, 102, 110,
    0, 0, 77, 97, 46, 50, 1, 0, 4, 22, 14, 0, 12, 0, 89, 66,
    106, 85, 4, 3, 0, 8, 58, 78, 63, 63, 0, 0, 0, 0, 0, 0,
    94, 62, 117, 119, 137, 149, 141, 137, 131, 122, 78, 103, 107, 80, 0, 114,
    108, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};

inline bool is_letter(uint8_t byte) noexcept { return static_cast<uint8_t>((byte | 0x20) - 'a') < 26; }

/* One string: a byte `it` of the data fits place `at` when `(it | mask[at]) == text[at]`. */
struct Needle {
    std::vector<uint8_t> text, mask;
    size_t window = 0;  /* where its rarest stretch begins */

    size_t size() const noexcept { return text.size(); }

    bool fits(const uint8_t *data) const noexcept {
        for (size_t at = 0; at < text.size(); at++) {
            if ((data[at] | mask[at]) != text[at]) return false;
        }
        return true;
    }
    int rank(size_t at) const noexcept {
        const int lower = RANK[text[at]];
        return mask[at] ? std::max(lower, static_cast<int>(RANK[text[at] ^ 0x20])) : lower;
    }
};

/* A set of strings, read-only once made. */
struct Needles {
    std::vector<Needle> all;
    size_t rarest = 0, second = 0;           /* of a single string: the places of its two rarest bytes */
    size_t width = 0;                        /* of several: how many bytes the tables look at */
    alignas(32) uint8_t low[3][16] = {}, high[3][16] = {};  /* the groups that a nibble at a place leaves */
    uint8_t byte[3][256] = {};               /* the same for a whole byte, where there are no shuffles */
    std::vector<uint32_t> group[8];

    void add(const uint8_t *text, size_t size, bool fold) {
        Needle needle;
        needle.text.assign(text, text + size);
        needle.mask.assign(size, 0);
        for (size_t at = 0; fold && at < size; at++) {
            if (!is_letter(text[at])) continue;
            needle.text[at] |= 0x20;
            needle.mask[at] = 0x20;
        }
        all.push_back(std::move(needle));
    }

    /* Called once, after the last `add`. */
    void finish() {
        if (all.size() == 1) choose_pair(all[0]);
        size_t shortest = 3;
        for (const Needle &needle : all) shortest = std::min(shortest, needle.size());
        width = shortest;
        for (Needle &needle : all) choose_window(needle);
        std::vector<uint32_t> order(all.size());
        for (uint32_t at = 0; at < order.size(); at++) order[at] = at;
        std::stable_sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
            return std::memcmp(&all[a].text[all[a].window], &all[b].text[all[b].window], width) < 0;
        });
        for (size_t at = 0; at < order.size(); at++) {
            const size_t place = order.size() <= 8 ? at : at * 8 / order.size();
            group[place].push_back(order[at]);
            mark(all[order[at]], static_cast<uint8_t>(1u << place));
        }
    }

  private:
    void choose_pair(const Needle &needle) noexcept {
        for (size_t at = 1; at < needle.size(); at++) {
            if (needle.rank(at) < needle.rank(rarest)) rarest = at;
        }
        second = rarest == 0 && needle.size() > 1 ? 1 : 0;
        for (size_t at = 0; at < needle.size(); at++) {
            if (at != rarest && needle.rank(at) < needle.rank(second)) second = at;
        }
    }

    void choose_window(Needle &needle) noexcept {
        int best = INT32_MAX;
        for (size_t at = 0; at + width <= needle.size(); at++) {
            int sum = 0;
            for (size_t k = 0; k < width; k++) sum += needle.rank(at + k);
            if (sum < best) {
                best = sum;
                needle.window = at;
            }
        }
    }

    void mark(const Needle &needle, uint8_t bit) noexcept {
        for (size_t k = 0; k < width; k++) {
            const uint8_t lower = needle.text[needle.window + k];
            const uint8_t upper = needle.mask[needle.window + k] ? lower ^ 0x20 : lower;
            for (const uint8_t it : {lower, upper}) {
                low[k][it & 15] |= bit;
                high[k][it >> 4] |= bit;
                byte[k][it] |= bit;
            }
        }
    }
};

/* Compare what may stand at the window position `at`; answers the start of the string that does, or NONE. */
inline size_t confirm(const Needles &set, unsigned groups, const uint8_t *data, size_t at, size_t from, size_t size,
                      size_t *length) noexcept {
    for (; groups; groups &= groups - 1) {
        for (const uint32_t which : set.group[__builtin_ctz(groups)]) {
            const Needle &needle = set.all[which];
            if (at < from + needle.window) continue;
            const size_t start = at - needle.window;
            if (start + needle.size() <= size && needle.fits(data + start)) {
                *length = needle.size();
                return start;
            }
        }
    }
    return NONE;
}

namespace plain {
/* Without blocks: the tables by whole bytes, a position at a time. */
inline size_t find(const Needles &set, const uint8_t *data, size_t from, size_t size, size_t *length) noexcept {
    for (size_t at = from; at + set.width <= size; at++) {
        unsigned groups = set.byte[0][data[at]];
        for (size_t k = 1; k < set.width; k++) groups &= set.byte[k][data[at + k]];
        if (groups == 0) continue;
        const size_t start = confirm(set, groups, data, at, from, size, length);
        if (start != NONE) return start;
    }
    return NONE;
}
}  // namespace plain

#if defined(__x86_64__)
namespace sse2 {
struct Lane {
    static constexpr size_t width = 16;
    using Bytes = __m128i;
    static inline Bytes load(const uint8_t *from) noexcept { return _mm_loadu_si128(reinterpret_cast<const Bytes *>(from)); }
    static inline Bytes all(uint8_t byte) noexcept { return _mm_set1_epi8(static_cast<char>(byte)); }
    static inline Bytes both(Bytes a, Bytes b) noexcept { return _mm_and_si128(a, b); }
    static inline Bytes either(Bytes a, Bytes b) noexcept { return _mm_or_si128(a, b); }
    static inline Bytes equal(Bytes a, Bytes b) noexcept { return _mm_cmpeq_epi8(a, b); }
    static inline uint32_t mask(Bytes a) noexcept { return static_cast<uint32_t>(_mm_movemask_epi8(a)); }
};
#include "scan_kernel.h"
/* Several strings need SSSE3's shuffle: the tables by whole bytes instead. */
inline size_t find(const Needles &set, const uint8_t *data, size_t from, size_t size, size_t *length) noexcept {
    return set.all.size() == 1 ? pair(set, data, from, size, length) : plain::find(set, data, from, size, length);
}
}  // namespace sse2

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi")
#endif
namespace avx2 {
struct Lane {
    static constexpr size_t width = 32;
    using Bytes = __m256i;
    static inline Bytes load(const uint8_t *from) noexcept { return _mm256_loadu_si256(reinterpret_cast<const Bytes *>(from)); }
    static inline Bytes all(uint8_t byte) noexcept { return _mm256_set1_epi8(static_cast<char>(byte)); }
    static inline Bytes both(Bytes a, Bytes b) noexcept { return _mm256_and_si256(a, b); }
    static inline Bytes either(Bytes a, Bytes b) noexcept { return _mm256_or_si256(a, b); }
    static inline Bytes equal(Bytes a, Bytes b) noexcept { return _mm256_cmpeq_epi8(a, b); }
    static inline uint32_t mask(Bytes a) noexcept { return static_cast<uint32_t>(_mm256_movemask_epi8(a)); }
};
#include "scan_kernel.h"

/* The groups that the bytes at one place leave, for 32 positions. */
struct Table {
    __m256i low, high;

    Table(const uint8_t *from_low, const uint8_t *from_high) noexcept
        : low(twice(from_low)), high(twice(from_high)) {}
    static inline __m256i twice(const uint8_t *half) noexcept {
        return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(half)));
    }
    inline __m256i groups(__m256i bytes) const noexcept {
        const __m256i nibble = _mm256_set1_epi8(15);
        const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
        return _mm256_and_si256(_mm256_shuffle_epi8(low, _mm256_and_si256(bytes, nibble)), _mm256_shuffle_epi8(high, upper));
    }
};

template <size_t places>
inline size_t several(const Needles &set, const uint8_t *data, size_t from, size_t size, size_t *length) noexcept {
    const Table first(set.low[0], set.high[0]), second(set.low[1], set.high[1]), third(set.low[2], set.high[2]);
    if (size < set.width) return NONE;
    const size_t last = size - set.width;
    const __m256i zero = _mm256_setzero_si256();
    for (size_t at = from; at <= last; at += 64) {
        __m256i found[2];
        for (size_t half = 0; half < 2; half++) {
            const uint8_t *here = data + at + 32 * half;
            found[half] = first.groups(Lane::load(here));
            if (places > 1) found[half] = _mm256_and_si256(found[half], second.groups(Lane::load(here + 1)));
            if (places > 2) found[half] = _mm256_and_si256(found[half], third.groups(Lane::load(here + 2)));
        }
        const __m256i any = _mm256_or_si256(found[0], found[1]);
        if (_mm256_testz_si256(any, any)) continue;
        for (size_t half = 0; half < 2; half++) {
            alignas(32) uint8_t groups[32];
            _mm256_store_si256(reinterpret_cast<__m256i *>(groups), found[half]);
            uint32_t bits = ~Lane::mask(_mm256_cmpeq_epi8(found[half], zero));
            for (; bits; bits &= bits - 1) {
                const size_t lane = static_cast<size_t>(__builtin_ctz(bits)), place = at + 32 * half + lane;
                if (place > last) return NONE;
                const size_t start = confirm(set, groups[lane], data, place, from, size, length);
                if (start != NONE) return start;
            }
        }
    }
    return NONE;
}

inline size_t find(const Needles &set, const uint8_t *data, size_t from, size_t size, size_t *length) noexcept {
    if (set.all.size() == 1) return pair(set, data, from, size, length);
    switch (set.width) {
        case 1: return several<1>(set, data, from, size, length);
        case 2: return several<2>(set, data, from, size, length);
        default: return several<3>(set, data, from, size, length);
    }
}
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

using Find = size_t (*)(const Needles &, const uint8_t *, size_t, size_t, size_t *) noexcept;

inline bool available(int kind) noexcept {
#if defined(__x86_64__)
    if (kind == 3) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
    if (kind == 2) return true;
#endif
    return kind == 1;
}

inline Find chosen(int kind) noexcept {
#if defined(__x86_64__)
    if (kind == 3) return avx2::find;
    if (kind == 2) return sse2::find;
#endif
    return plain::find;
}

inline int best() noexcept { return available(3) ? 3 : available(2) ? 2 : 1; }

/* Make a set of `count` strings, none of them empty, at most MAX_NEEDLES. Answers NULL when there is no memory. */
inline Needles *make(const uint8_t *const *texts, const size_t *sizes, size_t count, bool fold) noexcept {
    try {
        Needles *set = new Needles;
        try {
            for (size_t at = 0; at < count; at++) set->add(texts[at], sizes[at], fold);
            set->finish();
        } catch (...) {
            delete set;
            throw;
        }
        return set;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

/* Answer the leftmost start of any string in [from, size), of those that start there the one added first; or NONE. The
 * slow way, a position at a time: for the span to show of a line known to match. */
inline size_t leftmost(const Needles &set, const uint8_t *data, size_t from, size_t size, size_t *length) noexcept {
    for (size_t at = from; at < size; at++) {
        for (const Needle &needle : set.all) {
            if (needle.size() <= size - at && needle.fits(data + at)) {
                *length = needle.size();
                return at;
            }
        }
    }
    return NONE;
}

}  // namespace scan
