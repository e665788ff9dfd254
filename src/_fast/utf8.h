/* UTF-8 by single sequences: the one place that knows which are well formed. */
#pragma once

#include <cstddef>
#include <cstdint>

namespace utf8 {

/* Added to a byte that belongs to no character, to tell it from every code point. */
constexpr uint32_t STRAY = 0x110000;

/* Measure the UTF-8 sequence at `at`, whose first byte is not ASCII. Return its length where it is
 * well formed, else minus the length of its maximal ill-formed part, for which one U+FFFD stands. */
inline int sequence(const uint8_t *at, const uint8_t *end) noexcept {
    const uint8_t lead = at[0];
    int more;
    uint8_t low = 0x80, high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
        more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        more = 2;
        if (lead == 0xe0) low = 0xa0;
        if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        more = 3;
        if (lead == 0xf0) low = 0x90;
        if (lead == 0xf4) high = 0x8f;
    } else {
        return -1;
    }
    if (end - at < 2 || at[1] < low || at[1] > high) return -1;
    for (int have = 2; have <= more; have++) {
        if (end - at <= have || (at[have] & 0xc0) != 0x80) return -have;
    }
    return more + 1;
}

/* Return the bytes of the character at `at` (size > 0) and its code point; a byte that begins none is one of its own. */
inline size_t decode(const uint8_t *at, size_t size, uint32_t *code) noexcept {
    *code = at[0];
    if (at[0] < 0x80) return 1;
    const int length = sequence(at, at + size);
    if (length < 0) {
        *code = STRAY + at[0];
        return 1;
    }
    *code = at[0] & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) *code = *code << 6 | (at[i] & 0x3f);
    return static_cast<size_t>(length);
}

/* Write a code point and return the end. */
inline uint8_t *put(uint8_t *out, uint32_t code) noexcept {
    if (code < 0x80) {
        *out++ = static_cast<uint8_t>(code);
    } else if (code < 0x800) {
        *out++ = static_cast<uint8_t>(0xc0 | code >> 6);
        *out++ = static_cast<uint8_t>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = static_cast<uint8_t>(0xe0 | code >> 12);
        *out++ = static_cast<uint8_t>(0x80 | (code >> 6 & 0x3f));
        *out++ = static_cast<uint8_t>(0x80 | (code & 0x3f));
    } else {
        *out++ = static_cast<uint8_t>(0xf0 | code >> 18);
        *out++ = static_cast<uint8_t>(0x80 | (code >> 12 & 0x3f));
        *out++ = static_cast<uint8_t>(0x80 | (code >> 6 & 0x3f));
        *out++ = static_cast<uint8_t>(0x80 | (code & 0x3f));
    }
    return out;
}

}  // namespace utf8
