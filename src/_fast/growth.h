/* Memory that grows: the one place that checks sizes for overflow. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace growth {

/* Give `*block`, which has room for `*room` items of `unit` bytes, room for `need`: at least twice as many as before, and
 * `first` to begin with. NULL and 0 are an empty block; it is from malloc and the caller's. 0; -1: out of memory, and
 * nothing has changed. */
inline int grow(void **block, size_t *room, size_t need, size_t unit, size_t first) noexcept {
    if (need <= *room) return 0;
    size_t want = *room == 0 ? first : *room > SIZE_MAX / 2 ? SIZE_MAX : *room * 2;
    if (want < need) want = need;
    if (want > PTRDIFF_MAX / unit) return -1;
    void *bigger = std::realloc(*block, want * unit);
    if (bigger == nullptr) return -1;
    *block = bigger;
    *room = want;
    return 0;
}

/* The same for a typed block. */
template <typename Item> inline int grow(Item **block, size_t *room, size_t need, size_t first) noexcept {
    void *bytes = *block;
    if (grow(&bytes, room, need, sizeof(Item), first) < 0) return -1;
    *block = static_cast<Item *>(bytes);
    return 0;
}

}  // namespace growth
