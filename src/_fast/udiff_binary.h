// The data of GIT binary patches: base85 lines, and deltas as git's packs have them.
#pragma once

#include "udiff_read.h"

namespace udiff {

struct Base85 {
    int8_t value[256];

    Base85() {
        static const char letters[] =
            "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
        memset(value, -1, sizeof(value));
        for (int digit = 0; digit < 85; digit++) value[static_cast<unsigned char>(letters[digit])] = static_cast<int8_t>(digit);
    }
};

// Appends one decoded line, which begins with the letter of its length, to `out`. Returns false if it is malformed.
inline bool decode_line(Bytes line, std::vector<char>* out) {
    static const Base85 table;
    if (line.size < 6) return false;
    char letter = line.at[0];
    uint32_t length = letter >= 'A' && letter <= 'Z' ? letter - 'A' + 1 : letter >= 'a' && letter <= 'z' ? letter - 'a' + 27 : 0;
    if (length == 0 || line.size != 1 + (length + 3) / 4 * 5) return false;
    for (uint32_t at = 1; at < line.size; at += 5) {
        uint64_t sum = 0;
        for (uint32_t digit = 0; digit < 5; digit++) {
            int8_t value = table.value[static_cast<unsigned char>(line.at[at + digit])];
            if (value < 0) return false;
            sum = sum * 85 + static_cast<uint64_t>(value);
        }
        if (sum > UINT32_MAX) return false;
        for (int shift = 24; shift >= 0 && length; shift -= 8, length--) out->push_back(static_cast<char>(sum >> shift));
    }
    return true;
}

// Decodes lines from `line` on up to an empty one or the last, and sets `line` to the one after them. Returns false at a
// malformed line.
inline bool decode(const DiffReader& reader, uint32_t* line, std::vector<char>* out) {
    for (; *line < reader.count(); (*line)++) {
        Bytes text = without_cr(reader.lines[*line]);
        if (text.size == 0) return true;
        if (!decode_line(text, out)) return false;
    }
    return true;
}

inline bool varint(Bytes* delta, uint64_t* value) {
    *value = 0;
    for (int shift = 0; delta->size && shift < 63; shift += 7) {
        unsigned char byte = static_cast<unsigned char>(*delta->at++);
        delta->size--;
        *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

// Returns the size that a delta states for its result, -1 if it is not one for a file of `base_size` bytes.
inline int64_t delta_size(Bytes delta, uint64_t base_size) {
    uint64_t from, to;
    if (!varint(&delta, &from) || !varint(&delta, &to) || from != base_size || to > INT64_MAX) return -1;
    return static_cast<int64_t>(to);
}

// Writes the result of a delta to `out`, which has room for the size it states. Returns false if the delta is damaged.
inline bool apply_delta(Bytes base, Bytes delta, char* out) {
    uint64_t from, left;
    if (!varint(&delta, &from) || !varint(&delta, &left)) return false;
    const unsigned char* at = reinterpret_cast<const unsigned char*>(delta.at);
    const unsigned char* end = at + delta.size;
    while (at < end) {
        unsigned char op = *at++;
        uint64_t offset = 0, size = 0;
        if (op & 0x80) {
            for (int bit = 0; bit < 7; bit++) {
                if (!(op >> bit & 1)) continue;
                if (at == end) return false;
                (bit < 4 ? offset : size) |= static_cast<uint64_t>(*at++) << (bit < 4 ? bit * 8 : (bit - 4) * 8);
            }
            if (size == 0) size = 0x10000;
            if (offset + size > base.size || size > left) return false;
            memcpy(out, base.at + offset, size);
        } else {
            size = op;
            if (size == 0 || size > left || size > static_cast<uint64_t>(end - at)) return false;
            memcpy(out, at, size);
            at += size;
        }
        out += size;
        left -= size;
    }
    return left == 0;
}

}  // namespace udiff
