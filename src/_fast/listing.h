/* The newest of many files: paths with their ages, kept within bounds by each worker, in order at the end. */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "walk.h"

namespace listing {

/* Order paths by their components, bytewise: a slash sorts before any other byte. */
inline bool before(const char *a, size_t a_size, const char *b, size_t b_size) noexcept {
    const size_t both = std::min(a_size, b_size);
    size_t at = 0;
    for (; at + 8 <= both; at += 8) {  /* paths of one tree begin alike */
        uint64_t one, other;
        std::memcpy(&one, a + at, 8);
        std::memcpy(&other, b + at, 8);
        if (one != other) break;
    }
    for (; at < both; at++) {
        if (a[at] == b[at]) continue;
        if (a[at] == '/') return true;
        if (b[at] == '/') return false;
        return static_cast<unsigned char>(a[at]) < static_cast<unsigned char>(b[at]);
    }
    return a_size < b_size;
}

struct Aged {
    walk::Moment mtime;
    uint32_t size;
    size_t at;
};

constexpr size_t USUAL = 64;  /* bytes of a path, for which room is made beforehand, and of so many files at most: */
constexpr size_t RESERVED = 16384;

/* The newest files seen by one worker: never more than about twice `most`. */
class Newest {
  public:
    size_t most = 0;

    /* Add a path given in two parts. -1: no memory. */
    int add(walk::Moment mtime, const char *directory, size_t directory_size, const char *name, size_t name_size) noexcept {
        if (bounded_ && older(mtime, bound_.mtime)) return 0;
        try {
            if (files_.empty()) reserve();
            if (files_.size() >= room()) shrink();
            const size_t at = text_.size();
            if (directory_size) text_.append(directory, directory_size).push_back('/');
            text_.append(name, name_size);
            const Aged added{mtime, static_cast<uint32_t>(text_.size() - at), at};
            if (bounded_ && !newer()(added, bound_)) {
                text_.resize(at);
            } else {
                files_.push_back(added);
            }
            return 0;
        } catch (const std::bad_alloc &) {
            return -1;
        }
    }

    /* Put the newest in order, at most `most` of them; after the last `add`. */
    void finish() noexcept {
        if (files_.size() > most) {
            std::nth_element(files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(most), files_.end(), newer());
            files_.resize(most);
        }
        std::sort(files_.begin(), files_.end(), newer());
    }

    /* Whether a file comes before one of another worker. */
    bool before(size_t which, const Newest &other, size_t its) const noexcept {
        return precedes(files_[which], text_.data(), other.files_[its], other.text_.data());
    }
    size_t count() const noexcept { return files_.size(); }
    const char *path(size_t which) const noexcept { return text_.data() + files_[which].at; }
    size_t path_size(size_t which) const noexcept { return files_[which].size; }

  private:
    static bool older(walk::Moment a, walk::Moment b) noexcept {
        return a.seconds != b.seconds ? a.seconds < b.seconds : a.nanoseconds < b.nanoseconds;
    }
    static bool precedes(const Aged &a, const char *a_text, const Aged &b, const char *b_text) noexcept {
        if (older(b.mtime, a.mtime)) return true;
        if (older(a.mtime, b.mtime)) return false;
        return listing::before(a_text + a.at, a.size, b_text + b.at, b.size);
    }
    struct Order {
        const char *text;
        bool operator()(const Aged &a, const Aged &b) const noexcept { return precedes(a, text, b, text); }
    };
    Order newer() const noexcept { return Order{text_.data()}; }

    size_t room() const noexcept { return 2 * most + 64; }

    /* Growing by copies would touch several times the memory that is needed; what is only reserved is not touched. */
    void reserve() {
        files_.reserve(std::min(room(), RESERVED));
        text_.reserve(std::min(room(), RESERVED) * USUAL);
    }

    void shrink() {
        std::nth_element(files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(most), files_.end(), newer());
        bound_ = files_[most];
        files_.resize(most);
        std::string kept;
        kept.reserve(text_.capacity());
        const auto keep = [&](Aged &file) {
            const size_t at = kept.size();
            kept.append(text_, file.at, file.size);
            file.at = at;
        };
        for (Aged &file : files_) keep(file);
        keep(bound_);
        text_.swap(kept);
        bounded_ = true;
    }

    std::string text_;
    std::vector<Aged> files_;
    Aged bound_{};  /* once `bounded_`: `most` files that are newer have been seen */
    bool bounded_ = false;
    char apart_[128];  /* from what the next worker writes, so that no cache line is shared */
};

}  // namespace listing
