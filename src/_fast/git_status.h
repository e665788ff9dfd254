/* Compares the entries of git's index with the files of a tree, and finds the files that it does not hold.
 *
 * Directories are visited once, by several threads: the entries of one are compared by their stat alone, and what is
 * among its names but not in the index is judged by the ignore rules. Contents are never read. Nothing here calls Python
 * or takes the GIL.
 */
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "names.h"
#include "walk.h"

namespace git_status {

/* What is told of a path. CHANGED: its stat is not the index's, its content may be. */
enum Verdict : uint8_t { CLEAN = 0, CHANGED, MODE, TYPE, DELETED, UNMERGED, SUBMODULE, INTENDED, UNTRACKED, REPOSITORY };

/* An entry of the index, in its order: path and the entry as it is stored. */
struct Entry {
    const char *path;
    uint32_t size;
    const uint8_t *raw;
    uint16_t extended;
};

inline int fill(std::vector<Entry> *entries, size_t count) noexcept {
    try {
        entries->resize(count);
    } catch (...) {
        return -2;
    }
    return 0;
}

struct Found {
    std::string path;  /* of what is not in the index */
    int64_t entry;     /* of what is; else -1 */
    Verdict verdict;
};

constexpr uint16_t ASSUME_VALID = 0x8000, EXTENDED = 0x4000, STAGE = 0x3000, SKIP_WORKTREE = 0x4000, INTENT_TO_ADD = 0x2000;
constexpr uint32_t FORMAT = 0170000, REGULAR = 0100000, SYMLINK = 0120000, GITLINK = 0160000;

inline uint32_t be32(const uint8_t *at) noexcept {
    return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

/* How an entry stands to the stat of the file at its place. `racy`: nanoseconds since the epoch at or after which a file
 * may have been written again in the same instant as the index. */
inline Verdict judge(const Entry &entry, const struct stat &status, bool trust_mode, int64_t racy) noexcept {
    const uint8_t *raw = entry.raw;
    const uint32_t mode = be32(raw + 24);
    const bool link = (mode & FORMAT) == SYMLINK;
    if (link ? !S_ISLNK(status.st_mode) : !S_ISREG(status.st_mode)) {
        return S_ISREG(status.st_mode) || S_ISLNK(status.st_mode) ? TYPE : DELETED;
    }
    if (!link && trust_mode && ((mode & 0100) != 0) != ((status.st_mode & 0100) != 0)) return MODE;
    const uint32_t seconds = be32(raw + 8), nanoseconds = be32(raw + 12);
    const bool same = seconds == static_cast<uint32_t>(status.st_mtim.tv_sec) &&
                      nanoseconds == static_cast<uint32_t>(status.st_mtim.tv_nsec) &&
                      be32(raw) == static_cast<uint32_t>(status.st_ctim.tv_sec) &&
                      be32(raw + 4) == static_cast<uint32_t>(status.st_ctim.tv_nsec) &&
                      be32(raw + 20) == static_cast<uint32_t>(status.st_ino) && be32(raw + 28) == status.st_uid &&
                      be32(raw + 32) == status.st_gid && be32(raw + 36) == static_cast<uint32_t>(status.st_size);
    if (!same) return CHANGED;
    return int64_t{seconds} * 1000000000 + nanoseconds >= racy ? CHANGED : CLEAN;
}

/* Rules of ignore files, as `ignore.pxd` has them. */
struct Rules {
    void *(*enter)(void *parent, const char *path, size_t size, int fd, unsigned ignore_files);
    void (*retain)(void *rules);
    void (*release)(void *rules);
    int (*ignored)(const void *rules, const char *path, size_t size, const char *name, size_t name_size, int directory);
};

struct Directory {
    std::string path;
    size_t first, last;  /* its entries of the index */
    void *rules;         /* those of the directory above, a reference; null: all that is not in the index is ignored */
};

class Scan {
public:
    Scan(int root, const Entry *entries, size_t count, const Rules &rules, void *base, bool leave_agents, bool trust_mode,
         int64_t racy)
        : root_(root), entries_(entries), rules_(rules), leave_agents_(leave_agents), trust_mode_(trust_mode), racy_(racy) {
        rules_.retain(base);
        todo_.push_back(Directory{std::string(), 0, count, base});
    }

    ~Scan() {
        for (Directory &directory : todo_) release(directory.rules);
    }

    /* Visit everything; 0, or the errno of a shortage. */
    int run(unsigned threads, std::vector<Found> *found) noexcept {
        std::vector<std::vector<Found>> parts;
        std::vector<std::thread> others;
        try {
            parts.resize(threads);
            for (unsigned i = 1; i < threads; i++) others.emplace_back([this, &parts, i] { work(&parts[i]); });
        } catch (...) {
            fail(ENOMEM);
        }
        if (!parts.empty()) work(&parts[0]);
        for (std::thread &other : others) other.join();
        try {
            for (std::vector<Found> &part : parts) {
                found->insert(found->end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
            }
        } catch (...) {
            fail(ENOMEM);
        }
        return failed_.load();
    }

private:
    void release(void *rules) noexcept {
        if (rules != nullptr) rules_.release(rules);
    }

    void fail(int error) noexcept {
        int none = 0;
        failed_.compare_exchange_strong(none, error);
        ready_.notify_all();
    }

    void work(std::vector<Found> *found) noexcept {
        walk::Listing listing{};
        std::vector<Directory> below;
        while (true) {
            Directory next;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                ready_.wait(lock, [this] { return !todo_.empty() || busy_ == 0 || failed_.load(); });
                if (failed_.load() || todo_.empty()) break;
                next = std::move(todo_.back());
                todo_.pop_back();
                busy_++;
            }
            try {
                visit(next, &listing, &below, found);
            } catch (...) {
                fail(ENOMEM);
            }
            release(next.rules);
            {
                std::lock_guard<std::mutex> lock(mutex_);
                busy_--;
                try {
                    for (Directory &directory : below) todo_.push_back(std::move(directory));
                } catch (...) {
                    fail(ENOMEM);
                }
            }
            below.clear();
            ready_.notify_all();
        }
        walk::discard(&listing);
    }

    void visit(Directory &at, walk::Listing *listing, std::vector<Directory> *below, std::vector<Found> *found) {
        const int fd = walk::open_directory(root_, at.path.data(), at.path.size());
        if (fd < 0) {
            const int error = errno;
            if (beneath::shortage(error)) fail(error);
            if (error != EACCES) gone(at.first, at.last, found);
            return;
        }
        struct Closed {
            int fd;
            ~Closed() { close(fd); }
        } closed{fd};
        if (walk::list(fd, true, listing) != 0) return fail(ENOMEM);
        if (at.first == at.last && !at.path.empty() && is_repository(fd)) {
            if (at.rules != nullptr) found->push_back(Found{at.path + '/', -1, REPOSITORY});
            return;
        }
        void *own = nullptr;
        if (at.rules != nullptr) {
            own = rules_.enter(at.rules, at.path.data(), at.path.size(), fd, listing->ignore_files);
            if (own == nullptr) return fail(errno ? errno : ENOMEM);
        }
        try {
            compare(at, fd, own, listing, below, found);
            if (own != nullptr) strangers(at, own, listing, below, found);
        } catch (...) {
            release(own);
            throw;
        }
        release(own);
    }

    /* Compare the entries of the index that lie in a directory, and leave those further below to later visits. */
    void compare(const Directory &at, int fd, void *own, walk::Listing *listing, std::vector<Directory> *below,
                 std::vector<Found> *found) {
        const size_t prefix = at.path.empty() ? 0 : at.path.size() + 1;
        for (size_t i = at.first; i < at.last;) {
            const char *name = entries_[i].path + prefix;
            const size_t left = entries_[i].size - prefix;
            const void *slash = std::memchr(name, '/', left);
            const size_t size = slash ? static_cast<size_t>(static_cast<const char *>(slash) - name) : left;
            walk::Entry *listed = find(listing, name, size);
            if (!slash) {
                if (listed != nullptr && listed->kind != walk::DIRECTORY) listed->state = 1;
                one(i++, fd, name, size, listed, found);
                continue;
            }
            size_t end = i + 1;
            const size_t common = prefix + size + 1;
            while (end < at.last && entries_[end].size > common &&
                   std::memcmp(entries_[end].path, entries_[i].path, common) == 0) {
                end++;
            }
            if (listed != nullptr && listed->kind == walk::DIRECTORY) {
                listed->state = 1;
                const bool hidden = own == nullptr || rules_.ignored(own, at.path.data(), at.path.size(), name, size, 1);
                if (!hidden) rules_.retain(own);
                add(below, at, name, size, i, end, hidden ? nullptr : own);
            } else {
                gone(i, end, found);
            }
            i = end;
        }
    }

    void one(size_t i, int fd, const char *name, size_t size, walk::Entry *listed, std::vector<Found> *found) {
        const Entry &entry = entries_[i];
        const uint16_t flags = static_cast<uint16_t>(entry.raw[FLAGS_AT] << 8 | entry.raw[FLAGS_AT + 1]);
        if (flags & STAGE) return tell(i, UNMERGED, found);
        if (flags & ASSUME_VALID || entry.extended & SKIP_WORKTREE) return;
        const uint32_t format = be32(entry.raw + 24) & FORMAT;
        if (format == GITLINK) {
            if (listed != nullptr && listed->kind == walk::DIRECTORY) listed->state = 1;
            return tell(i, listed == nullptr ? DELETED : listed->kind == walk::DIRECTORY ? SUBMODULE : TYPE, found);
        }
        if (format != REGULAR && format != SYMLINK) return;  /* a folded directory of a sparse index */
        if (entry.extended & INTENT_TO_ADD) return tell(i, listed == nullptr ? DELETED : INTENDED, found);
        char copy[NAME_MAX + 1];
        if (size > NAME_MAX || listed == nullptr) return tell(i, DELETED, found);
        std::memcpy(copy, name, size);
        copy[size] = 0;
        struct stat status;
        if (fstatat(fd, copy, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) return tell(i, DELETED, found);
        const Verdict verdict = judge(entry, status, trust_mode_, racy_);
        if (verdict != CLEAN) tell(i, verdict, found);
    }

    /* What is among the names of a directory and not in the index. */
    void strangers(const Directory &at, void *own, walk::Listing *listing, std::vector<Directory> *below,
                   std::vector<Found> *found) {
        for (size_t i = 0; i < listing->count; i++) {
            const walk::Entry &entry = listing->entries[i];
            if (entry.state) continue;
            const char *name = listing->raw + entry.at;
            const bool directory = entry.kind == walk::DIRECTORY;
            if (names::is_git(name, entry.size) || names::is_kd(name, entry.size)) continue;
            if (leave_agents_ && at.path.empty() && names::is_agents(name, entry.size)) continue;
            if (rules_.ignored(own, at.path.data(), at.path.size(), name, entry.size, directory)) continue;
            if (directory) {
                rules_.retain(own);
                add(below, at, name, entry.size, 0, 0, own);
            } else {
                found->push_back(Found{joined(at, name, entry.size), -1, UNTRACKED});
            }
        }
    }

    static std::string joined(const Directory &at, const char *name, size_t size) {
        std::string path;
        path.reserve(at.path.size() + 1 + size);
        if (!at.path.empty()) path.append(at.path).push_back('/');
        return path.append(name, size);
    }

    /* Takes over the reference to `rules`. */
    void add(std::vector<Directory> *below, const Directory &at, const char *name, size_t size, size_t first, size_t last,
             void *rules) {
        try {
            below->push_back(Directory{joined(at, name, size), first, last, rules});
        } catch (...) {
            release(rules);
            throw;
        }
    }

    void tell(size_t i, Verdict verdict, std::vector<Found> *found) {
        found->push_back(Found{std::string(), static_cast<int64_t>(i), verdict});
    }

    /* The directory of these entries is not there (any more). */
    void gone(size_t first, size_t last, std::vector<Found> *found) {
        for (size_t i = first; i < last; i++) {
            const Entry &entry = entries_[i];
            const uint16_t flags = static_cast<uint16_t>(entry.raw[FLAGS_AT] << 8 | entry.raw[FLAGS_AT + 1]);
            if (flags & STAGE) {
                tell(i, UNMERGED, found);
            } else if (!(flags & ASSUME_VALID) && !(entry.extended & SKIP_WORKTREE)) {
                tell(i, DELETED, found);
            }
        }
    }

    static walk::Entry *find(walk::Listing *listing, const char *name, size_t size) noexcept {
        size_t low = 0, high = listing->count;
        while (low < high) {
            const size_t middle = (low + high) / 2;
            walk::Entry *entry = &listing->entries[middle];
            int order = std::memcmp(listing->raw + entry->at, name, std::min<size_t>(entry->size, size));
            if (order == 0) order = entry->size < size ? -1 : entry->size > size;
            if (order == 0) return entry;
            if (order < 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return nullptr;
    }

    /* Whether a directory that holds nothing of the index is a repository of its own, which git shows as one thing. */
    static bool is_repository(int fd) noexcept {
        struct stat status;
        if (fstatat(fd, names::GIT, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
        if (S_ISREG(status.st_mode)) return true;
        return S_ISDIR(status.st_mode) && faccessat(fd, ".git/HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
               faccessat(fd, ".git/objects", F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
               faccessat(fd, ".git/refs", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    }

    static constexpr size_t FLAGS_AT = 60;

    const int root_;
    const Entry *const entries_;
    const Rules rules_;
    const bool leave_agents_, trust_mode_;
    const int64_t racy_;
    std::mutex mutex_;
    std::condition_variable ready_;
    std::vector<Directory> todo_;
    size_t busy_ = 0;
    std::atomic<int> failed_{0};
};

}  // namespace git_status
