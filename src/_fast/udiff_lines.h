// The lines of a text as offsets and as ids, for reading diffs and for placing hunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace udiff {

// A run of bytes that the caller owns.
struct Bytes {
    const char* at;
    uint32_t size;
};

// A text of less than 4 GiB, split at LF only. `starts` has one entry for each line, then the size of the text.
struct LineTable {
    const char* data = nullptr;
    uint32_t size = 0;
    std::vector<uint32_t> starts;
    bool crlf = false;  // there is a line end, and each has a CR before it

    uint32_t count() const { return static_cast<uint32_t>(starts.size()) - 1; }
    bool ended() const { return size == 0 || data[size - 1] == '\n'; }

    // Returns the line without its LF.
    Bytes operator[](uint32_t line) const {
        uint32_t from = starts[line], to = starts[line + 1];
        if (to > from && data[to - 1] == '\n') to--;
        return {data + from, to - from};
    }

    void index(const char* text, uint32_t length) {
        data = text;
        size = length;
        starts.clear();
        starts.reserve(length / 24 + 2);
        uint32_t at = 0, bare = 0;
        while (at < length) {
            starts.push_back(at);
            const void* found = memchr(text + at, '\n', length - at);
            if (found == nullptr) break;
            uint32_t lf = static_cast<uint32_t>(static_cast<const char*>(found) - text);
            bare += lf == at || text[lf - 1] != '\r';
            at = lf + 1;
        }
        crlf = bare == 0 && length > 0 && memchr(text, '\n', length) != nullptr;
        starts.push_back(length);
    }
};

inline bool same(Bytes a, Bytes b) { return a.size == b.size && memcmp(a.at, b.at, a.size) == 0; }

inline bool begins(Bytes line, const char* with, uint32_t size) {
    return line.size >= size && memcmp(line.at, with, size) == 0;
}

template <uint32_t N>
inline bool begins(Bytes line, const char (&with)[N]) {
    return begins(line, with, N - 1);
}

inline Bytes without_cr(Bytes line) {
    if (line.size && line.at[line.size - 1] == '\r') line.size--;
    return line;
}

// Returns the line without a CR at its end and without blanks and tabs before that. `cr` is set to whether it has a CR.
inline Bytes without_blanks(Bytes line, bool* cr) {
    *cr = line.size && line.at[line.size - 1] == '\r';
    uint32_t size = line.size - *cr;
    while (size && (line.at[size - 1] == ' ' || line.at[size - 1] == '\t')) size--;
    return {line.at, size};
}

inline uint64_t folded(uint64_t a, uint64_t b) {
    unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Keyed, so that no caller can choose lines that all share one slot.
inline uint64_t hashed(Bytes line, uint64_t key) {
    uint64_t hash = key ^ (line.size * 0x9E3779B97F4A7C15ull), word;
    const char* at = line.at;
    uint32_t left = line.size;
    for (; left >= 8; at += 8, left -= 8) {
        memcpy(&word, at, 8);
        hash = folded(hash ^ word, 0xD6E8FEB86659FD93ull);
    }
    word = 0;
    memcpy(&word, at, left);
    return folded(hash ^ word, 0xA0761D6478BD642Full ^ key);
}

// Gives ids from 1 to the lines that are added; any other line has the id 0. Texts are not copied.
class LineIds {
  public:
    LineIds(uint64_t key, bool blanks_aside) : key_(key), aside_(blanks_aside), slots_(64) {}

    uint32_t add(Bytes line) { return find(line, true); }
    uint32_t find(Bytes line) { return find(line, false); }
    uint32_t count() const { return static_cast<uint32_t>(known_.size()) + 1; }

  private:
    struct Slot {
        uint64_t hash = 0;
        uint32_t id = 0;
    };
    struct Known {
        Bytes text;
        bool cr;
    };

    uint32_t find(Bytes line, bool make) {
        bool cr = false;
        Bytes text = aside_ ? without_blanks(line, &cr) : line;
        uint64_t hash = hashed(text, key_ + cr);
        size_t mask = slots_.size() - 1, at = hash & mask;
        for (; slots_[at].id; at = (at + 1) & mask) {
            if (slots_[at].hash != hash) continue;
            const Known& known = known_[slots_[at].id - 1];
            if (known.cr == cr && same(known.text, text)) return slots_[at].id;
        }
        if (!make) return 0;
        known_.push_back({text, cr});
        slots_[at] = {hash, static_cast<uint32_t>(known_.size())};
        uint32_t id = slots_[at].id;
        if (known_.size() * 2 > slots_.size()) widen();
        return id;
    }

    void widen() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        size_t mask = slots_.size() - 1;
        for (const Slot& slot : old) {
            if (!slot.id) continue;
            size_t at = slot.hash & mask;
            while (slots_[at].id) at = (at + 1) & mask;
            slots_[at] = slot;
        }
    }

    uint64_t key_;
    bool aside_;
    std::vector<Slot> slots_;
    std::vector<Known> known_;
};

}  // namespace udiff
