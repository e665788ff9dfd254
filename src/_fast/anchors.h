/* Finding many texts in one: each is looked for by one short piece of it, its anchor, chosen to be rare.
 *
 * A table holds pieces of one width as numbers. Nothing here calls Python or takes the GIL.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace anchors {

constexpr int32_t NONE = -1;

/* The piece of `width` bytes (1 to 8) at `at` as a number. */
inline uint64_t piece(const uint8_t *at, int width) noexcept {
    uint64_t value = 0;
    std::memcpy(&value, at, static_cast<size_t>(width));
    return value;
}

struct Entry {
    uint64_t piece;
    uint32_t count; /* in the text; 0: the place is free, so counts begin at 1 */
    int32_t id;     /* of an anchor, else NONE */
};

/* A hash table of pieces; memory from calloc, freed by `release`. */
struct Table {
    int width;
    size_t used;
    size_t mask;
    Entry *entries;
};

inline size_t slot(const Table *table, uint64_t value) noexcept {
    const uint64_t mixed = value * UINT64_C(0x9e3779b97f4a7c15);
    return static_cast<size_t>(mixed ^ mixed >> 29) & table->mask;
}

inline Entry *find(const Table *table, uint64_t value) noexcept {
    for (size_t at = slot(table, value);; at = (at + 1) & table->mask) {
        Entry *entry = table->entries + at;
        if (entry->count == 0) return nullptr;
        if (entry->piece == value) return entry;
    }
}

/* Make room for `pieces` pieces; -1 when there is no memory. */
inline int prepare(Table *table, int width, size_t pieces) noexcept {
    size_t size = 16;
    while (size < 4 * pieces) size *= 2;
    table->width = width;
    table->used = 0;
    table->mask = size - 1;
    table->entries = static_cast<Entry *>(std::calloc(size, sizeof(Entry)));
    return table->entries == nullptr ? -1 : 0;
}

inline void release(Table *table) noexcept {
    std::free(table->entries);
    table->entries = nullptr;
}

/* Add a piece once; no more than were prepared for. */
inline void add(Table *table, uint64_t value) noexcept {
    size_t at = slot(table, value);
    while (table->entries[at].count != 0) {
        if (table->entries[at].piece == value) return;
        at = (at + 1) & table->mask;
    }
    table->entries[at] = Entry{value, 1, NONE};
    table->used++;
}

/* Count the pieces of a text, up to UINT32_MAX. */
inline void count(Table *table, const uint8_t *text, size_t size) noexcept {
    const size_t width = static_cast<size_t>(table->width);
    for (size_t at = 0; at + width <= size; at++) {
        Entry *entry = find(table, piece(text + at, table->width));
        if (entry != nullptr && entry->count != UINT32_MAX) entry->count++;
    }
}

/* Go on from `*at` to the next anchor in the text; return its id, NONE at the end. `*at` is then after its first byte. */
inline int32_t next(const Table *table, const uint8_t *text, size_t size, size_t *at) noexcept {
    const size_t width = static_cast<size_t>(table->width);
    while (*at + width <= size) {
        const Entry *entry = find(table, piece(text + (*at)++, table->width));
        if (entry != nullptr && entry->id != NONE) return entry->id;
    }
    return NONE;
}

}  // namespace anchors
