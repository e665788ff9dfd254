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

/* A path in two parts; that of the directory is empty for the top, and has no slash at its end. */
struct Path {
    const char *directory;
    size_t directory_size;
    const char *name;
    size_t size;
};

/* Order two bytes of paths: a slash sorts before any other byte, so that paths sort by their components. */
inline bool byte_before(char a, char b) noexcept {
    if (a == '/') return b != '/';
    return b != '/' && static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
}

/* Where two texts begin to differ, `size` at most. */
inline size_t common(const char *a, const char *b, size_t size) noexcept {
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {  /* directories of one tree begin alike */
        uint64_t one, other;
        std::memcpy(&one, a + at, 8);
        std::memcpy(&other, b + at, 8);
        if (one != other) break;
    }
    while (at < size && a[at] == b[at]) at++;
    return at;
}

/* Whether the file `name` in the directory of the first `above` bytes of the other's comes before that other. */
inline bool before_deeper(const char *name, size_t size, size_t above, const Path &other) noexcept {
    const char *rest = other.directory + above;
    size_t rest_size = other.directory_size - above;
    if (above) {
        if (*rest != '/') return true;  /* not above it: only its name begins like that */
        rest++;
        rest_size--;
    }
    const size_t at = common(name, rest, std::min(size, rest_size));
    if (at == size) return true;
    return at < rest_size && byte_before(name[at], rest[at]);
}

/* Order paths as if each were one text. */
inline bool before(const Path &a, const Path &b) noexcept {
    const size_t both = std::min(a.directory_size, b.directory_size);
    const size_t at = common(a.directory, b.directory, both);
    if (at < both) return byte_before(a.directory[at], b.directory[at]);
    if (a.directory_size < b.directory_size) return before_deeper(a.name, a.size, both, b);
    if (a.directory_size > b.directory_size) return !before_deeper(b.name, b.size, both, a);
    const size_t alike = common(a.name, b.name, std::min(a.size, b.size));
    if (alike == std::min(a.size, b.size)) return a.size < b.size;
    return byte_before(a.name[alike], b.name[alike]);
}

/* The first 16 bytes of a path, as two numbers that sort as paths do as far as they differ. */
struct Key {
    uint64_t high = 0, low = 0;

    Key() = default;
    explicit Key(const Path &path) noexcept {
        unsigned char bytes[16] = {};
        size_t used = std::min<size_t>(path.directory_size, 16);
        std::memcpy(bytes, path.directory, used);
        if (used && used < 16) bytes[used++] = '/';
        std::memcpy(bytes + used, path.name, std::min(path.size, 16 - used));
        for (unsigned char &byte : bytes) {
            if (byte == '/') byte = 0;
        }
        for (size_t i = 0; i < 8; i++) {
            high = high << 8 | bytes[i];
            low = low << 8 | bytes[i + 8];
        }
    }
};

struct Directory {
    size_t at;
    size_t size;
    Key key;  /* of all that lies in it, if its own path fills one */
};

struct Aged {
    walk::Moment mtime;
    Key key;
    size_t at;
    uint32_t directory;
    uint32_t size;
};

/* Files with their paths; a directory's path is kept once for the files that came from it in a row. */
class Files {
  public:
    std::vector<Aged> all;

    void reserve(size_t count) {
        all.reserve(count);
        text_.reserve(count * 16);
    }
    /* `visit` is another number for each directory that files come from. */
    void add(walk::Moment mtime, const Path &path, uint64_t visit) {
        if (visit != visit_) enter(path);
        visit_ = visit;
        const Directory &last = directories_.back();
        const Key key = last.size >= 15 ? last.key : Key(path);
        all.push_back(Aged{mtime, key, text_.size(), static_cast<uint32_t>(directories_.size() - 1),
                           static_cast<uint32_t>(path.size)});
        text_.append(path.name, path.size);
    }
    Path path(const Aged &file) const noexcept {
        const Directory &directory = directories_[file.directory];
        return Path{text_.data() + directory.at, directory.size, text_.data() + file.at, file.size};
    }
    /* Whether all paths can stand in JSON as they are. */
    bool plain() const noexcept {
        unsigned odd = 0;
        for (const char byte : text_) {
            odd |= static_cast<unsigned>(byte < ' ') | static_cast<unsigned>(byte == '"') |
                   static_cast<unsigned>(byte == '\\') | static_cast<unsigned>(byte == 0x7f);
        }
        return odd == 0;
    }
    /* Let go of the paths that only files taken out of `all` had; `also` is one of those that is still needed. */
    void compact(Aged *also) {
        std::string text;
        std::vector<Directory> directories;
        std::vector<size_t> moved(directories_.size(), SIZE_MAX);
        text.reserve(text_.capacity());
        const auto move = [&](Aged &file) {
            const Path was = path(file);
            if (moved[file.directory] == SIZE_MAX) {
                moved[file.directory] = directories.size();
                directories.push_back(Directory{text.size(), was.directory_size, directories_[file.directory].key});
                text.append(was.directory, was.directory_size);
            }
            file.directory = static_cast<uint32_t>(moved[file.directory]);
            file.at = text.size();
            text.append(was.name, was.size);
        };
        for (Aged &file : all) move(file);
        move(*also);
        text_.swap(text);
        directories_.swap(directories);
        visit_ = NONE;
    }

  private:
    void enter(const Path &path) {
        directories_.push_back(Directory{text_.size(), path.directory_size, Key(path)});
        text_.append(path.directory, path.directory_size);
    }

    static constexpr uint64_t NONE = UINT64_MAX;
    std::string text_;
    std::vector<Directory> directories_;
    uint64_t visit_ = NONE;  /* of the last of them */
};

inline bool older(walk::Moment a, walk::Moment b) noexcept {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.nanoseconds < b.nanoseconds;
}

/* Whether a file comes before another: it is newer, or as old and its path is before. */
inline bool precedes(const Aged &a, const Files &a_files, const Aged &b, const Files &b_files) noexcept {
    if (older(b.mtime, a.mtime)) return true;
    if (older(a.mtime, b.mtime)) return false;
    if (a.key.high != b.key.high) return a.key.high < b.key.high;
    if (a.key.low != b.key.low) return a.key.low < b.key.low;
    return before(a_files.path(a), b_files.path(b));
}

constexpr size_t RESERVED = 16384;  /* files that room is made for beforehand, at most */

/* The newest files seen by one worker: never more than about twice `most`. */
class Newest {
  public:
    size_t most = 0;

    /* Add a file; `visit` is another number for each directory. -1: no memory. */
    int add(walk::Moment mtime, uint64_t visit, const char *directory, size_t directory_size, const char *name,
            size_t size) noexcept {
        const Path path{directory, directory_size, name, size};
        if (bounded_ && (older(mtime, bound_.mtime) ||
                         (!older(bound_.mtime, mtime) && !listing::before(path, files_.path(bound_)))))
            return 0;
        try {
            /* growing by copies would touch several times the memory that is needed; what is reserved is not touched */
            if (files_.all.empty()) files_.reserve(std::min(room(), RESERVED));
            if (files_.all.size() >= room()) shrink();
            files_.add(mtime, path, visit);
            return 0;
        } catch (const std::bad_alloc &) {
            return -1;
        }
    }

    /* Put the newest in order, at most `most` of them; after the last `add`. */
    void finish() noexcept {
        if (files_.all.size() > most) {
            part();
            files_.all.erase(files_.all.begin() + static_cast<std::ptrdiff_t>(most), files_.all.end());
        }
        std::sort(files_.all.begin(), files_.all.end(), Order{files_});
        plain_ = files_.plain();
    }

    /* Whether a file comes before one of another worker. */
    bool before(size_t which, const Newest &other, size_t its) const noexcept {
        return precedes(files_.all[which], files_, other.files_.all[its], other.files_);
    }
    size_t count() const noexcept { return files_.all.size(); }
    /* Whether the paths can stand in JSON as they are; after `finish`. */
    bool plain() const noexcept { return plain_; }
    Path path(size_t which) const noexcept { return files_.path(files_.all[which]); }

  private:
    struct Order {
        const Files &files;
        bool operator()(const Aged &a, const Aged &b) const noexcept { return precedes(a, files, b, files); }
    };

    size_t room() const noexcept { return 2 * most + 64; }

    /* Bring the newest `most` to the front, in no order; what is at `most`, if anything, comes behind all of them. */
    void part() noexcept {
        std::vector<Aged> &all = files_.all;
        std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(most), all.end(), Order{files_});
    }

    void shrink() {
        part();
        bound_ = files_.all[most];
        files_.all.erase(files_.all.begin() + static_cast<std::ptrdiff_t>(most), files_.all.end());
        files_.compact(&bound_);
        bounded_ = true;
    }

    Files files_;
    Aged bound_{};  /* once `bounded_`: `most` files that come before it have been seen */
    bool bounded_ = false;
    bool plain_ = false;
    char apart_[128];  /* from what the next worker writes, so that no cache line is shared */
};

}  // namespace listing
