/* The newest of many files: paths with their ages, kept within bounds, in order at the end. */
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
    for (size_t at = 0; at < both; at++) {
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

/* The newest files seen by one worker: never more than twice `most`. */
class Newest {
  public:
    size_t most = 0;

    /* Add a path given in two parts. -1: no memory. */
    int add(walk::Moment mtime, const char *directory, size_t directory_size, const char *name, size_t name_size) noexcept {
        try {
            if (files_.size() >= 2 * most + 64) shrink();
            const size_t at = text_.size();
            if (directory_size) text_.append(directory, directory_size).push_back('/');
            text_.append(name, name_size);
            files_.push_back(Aged{mtime, static_cast<uint32_t>(text_.size() - at), at});
            return 0;
        } catch (const std::bad_alloc &) {
            return -1;
        }
    }

    /* Take over all of another's. -1: no memory. */
    int merge(const Newest &other) noexcept {
        for (const Aged &file : other.files_) {
            if (add(file.mtime, nullptr, 0, other.text_.data() + file.at, file.size)) return -1;
        }
        return 0;
    }

    /* Put the newest in order, at most `most` of them. */
    void finish() noexcept {
        if (files_.size() > most) {
            std::nth_element(files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(most), files_.end(), newer());
            files_.resize(most);
        }
        std::sort(files_.begin(), files_.end(), newer());
    }

    size_t count() const noexcept { return files_.size(); }
    const char *path(size_t which) const noexcept { return text_.data() + files_[which].at; }
    size_t path_size(size_t which) const noexcept { return files_[which].size; }

  private:
    struct Order {
        const char *text;
        bool operator()(const Aged &a, const Aged &b) const noexcept {
            if (a.mtime.seconds != b.mtime.seconds) return a.mtime.seconds > b.mtime.seconds;
            if (a.mtime.nanoseconds != b.mtime.nanoseconds) return a.mtime.nanoseconds > b.mtime.nanoseconds;
            return before(text + a.at, a.size, text + b.at, b.size);
        }
    };
    Order newer() const noexcept { return Order{text_.data()}; }

    void shrink() {
        std::nth_element(files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(most), files_.end(), newer());
        files_.resize(most);
        std::string kept;
        for (Aged &file : files_) {
            const size_t at = kept.size();
            kept.append(text_, file.at, file.size);
            file.at = at;
        }
        text_.swap(kept);
    }

    std::string text_;
    std::vector<Aged> files_;
};

}  // namespace listing
