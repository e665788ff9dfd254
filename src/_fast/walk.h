/* System calls of a walk: directories read whole and sorted, opened so that they provably lie below a descriptor.
 *
 * Nothing here calls Python or takes the GIL.
 */
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <climits>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "beneath.h"
#include "growth.h"
#include "names.h"
#include "ticks.h"

namespace walk {

using beneath::FILE_FLAGS;
using beneath::open_beneath;
using beneath::open_resolved;
using beneath::shortage;

/* Kinds of a name; those that are neither are left out. */
enum Kind : uint8_t { OTHER = 0, FILE = 1, DIRECTORY = 2, LINK = 3 };

constexpr int DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
constexpr int PASSING_FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

inline int flag(const int *at) noexcept { return __atomic_load_n(at, __ATOMIC_RELAXED); }
inline void raise_flag(int *at, int value = 1) noexcept { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
inline void retain(long *count) noexcept { __atomic_add_fetch(count, 1, __ATOMIC_RELAXED); }
/* Whether that was the last reference. */
inline bool release(long *count) noexcept { return __atomic_sub_fetch(count, 1, __ATOMIC_ACQ_REL) == 0; }

/* What was given to the kernel to open directories. */
struct Opened {
    uint64_t calls, bytes;
};

/* Open a directory below `root` without following any link; `path` is relative and of names alone, empty for `root`
 * itself. So each name is one of the directory before it, and nothing leads up: RESOLVE_BENEATH would only cost time. In
 * parts where the path is longer than the kernel takes at once, which are single names where it has no openat2. -1 and
 * errno. */
inline int open_directory(int root, const char *path, size_t size, int flags = DIRECTORY_FLAGS,
                          Opened *opened = nullptr) noexcept {
    if (size == 0) return openat(root, ".", flags);
    int at = root, got = -1;
    bool whole = true;  /* the kernel has openat2 */
    for (size_t begin = 0; begin < size;) {
        const size_t rest = size - begin;
        const void *slash = !whole             ? std::memchr(path + begin, '/', rest)
                            : rest >= PATH_MAX ? memrchr(path + begin, '/', PATH_MAX)
                                               : nullptr;
        const size_t end = slash ? static_cast<size_t>(static_cast<const char *>(slash) - path) : size;
        char part[PATH_MAX];
        got = -1;
        errno = ENAMETOOLONG;
        if (end - begin < sizeof part) {
            std::memcpy(part, path + begin, end - begin);
            part[end - begin] = 0;
            const int how = end == size ? flags : PASSING_FLAGS;
            got = whole ? open_resolved(at, part, how, 0, RESOLVE_NO_SYMLINKS) : openat(at, part, how);
            if (opened) {
                opened->calls++;
                opened->bytes += end - begin;
            }
            if (got < 0 && whole && (errno == ENOSYS || errno == EPERM)) {
                whole = false;
                continue;
            }
        }
        const int failed = errno;
        if (at != root) close(at);
        errno = failed;
        if (got < 0) return -1;
        at = got;
        begin = end + 1;
    }
    return got;
}

/* Spell the name under which the kernel shows an open descriptor. */
inline void name_descriptor(int fd, char (&out)[32]) noexcept { std::snprintf(out, sizeof out, "/proc/self/fd/%d", fd); }

/* Open, as O_PATH, what a link leads to, if it lies below the root, whose absolute path is `above`. The link is `name` in
 * `directory`, and `path` below `from`, which is the root or a directory between the two. -1: it leads nowhere or
 * elsewhere, ENAMETOOLONG: that cannot be told, or errno tells of a shortage. */
inline int follow_link(int from, const char *above, size_t above_size, int directory, const char *path,
                       const char *name) noexcept {
    /* most links stay below their own directory, and most others go up a little */
    int fd = open_beneath(directory, name, O_PATH | O_CLOEXEC);
    if (fd < 0 && errno == EXDEV) fd = open_beneath(from, path, O_PATH | O_CLOEXEC);
    /* an absolute link, or one that leaves and comes back; else there is nothing to follow */
    if (fd >= 0 || (errno != EXDEV && errno != ENOSYS && errno != EPERM && errno != ENAMETOOLONG)) return fd;
    fd = openat(directory, name, O_PATH | O_CLOEXEC);
    if (fd < 0) return -1;
    char shown[32], found[PATH_MAX];
    name_descriptor(fd, shown);
    const ssize_t size = readlink(shown, found, sizeof found);
    const int failed = size < 0 ? errno : EXDEV;
    if (size > 0 && static_cast<size_t>(size) > above_size && static_cast<size_t>(size) < sizeof found &&
        std::memcmp(found, above, above_size) == 0 && (above_size == 1 || found[above_size] == '/'))
        return fd;
    close(fd);
    errno = failed;
    return -1;
}

/* Open, as O_PATH, the regular file that a link leads to, if it lies below `root`. The link's `path` is known from there,
 * and `from` is a directory on it, after `skip` bytes. */
inline int open_target(int root, const char *above, size_t above_size, int from, size_t skip, int directory, const char *path,
                       const char *name, Opened *opened) noexcept {
    int fd = follow_link(from, above, above_size, directory, path + skip, name);
    if (fd < 0 && errno == ENAMETOOLONG) {
        /* the target's path is longer than the kernel tells: try from as high as it takes the rest of the link's path */
        const size_t size = std::strlen(path);
        const char *slash = size >= PATH_MAX ? std::strchr(path + size - PATH_MAX, '/') : nullptr;
        const size_t high_size = slash ? static_cast<size_t>(slash - path) : 0;
        const int high = open_directory(root, path, high_size, PASSING_FLAGS, opened);
        if (high < 0) return -1;
        fd = open_beneath(high, path + (slash ? high_size + 1 : 0), O_PATH | O_CLOEXEC);
        const int failed = errno;
        close(high);
        errno = failed;
    }
    if (fd < 0) return -1;
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        errno = EISDIR;
        return -1;
    }
    return fd;
}

/* Open for reading what an O_PATH descriptor stands for; it is closed in any case. */
inline int reopen(int path_fd) noexcept {
    char shown[32];
    name_descriptor(path_fd, shown);
    const int fd = open(shown, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const int failed = errno;
    close(path_fd);
    errno = failed;
    return fd;
}

/* A name of a directory: where its bytes begin in Listing::raw, and its first eight as a number that sorts like them.
 * `state` is the walk's. */
struct Entry {
    uint64_t key;
    uint32_t at;
    uint16_t size;
    uint8_t kind;
    uint8_t state;
};

/* A directory, read whole, and which ignore files are among its names (a bit for each kind). Zeroed to begin with;
 * `discard` frees it. */
struct Listing {
    char *raw;
    size_t capacity;
    Entry *entries;
    size_t count, room;
    unsigned ignore_files;
};

inline void discard(Listing *listing) noexcept {
    std::free(listing->raw);
    std::free(listing->entries);
    *listing = Listing{};
}

struct Record {  /* what getdents64 writes */
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[1];
};

inline uint8_t kind_of(int directory, const Record *record) noexcept {
    switch (record->type) {
        case DT_REG: return FILE;
        case DT_DIR: return DIRECTORY;
        case DT_LNK: return LINK;
        case DT_UNKNOWN: break;
        default: return OTHER;
    }
    struct stat status;
    if (fstatat(directory, record->name, &status, AT_SYMLINK_NOFOLLOW) != 0) return OTHER;
    return S_ISREG(status.st_mode) ? FILE : S_ISDIR(status.st_mode) ? DIRECTORY : S_ISLNK(status.st_mode) ? LINK : OTHER;
}

inline uint64_t key_of(const char *name, size_t size) noexcept {
    unsigned char first[8] = {};
    std::memcpy(first, name, std::min<size_t>(size, 8));
    uint64_t key;
    std::memcpy(&key, first, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    key = __builtin_bswap64(key);
#endif
    return key;
}

inline int no_memory() noexcept {
    errno = ENOMEM;
    return -1;
}

/* Read all names of a directory, bytewise in order where `sorted`; `.`, `..` and special files are left out. An error on
 * the way ends the list there. -1: no memory, errno tells so. */
inline int list(int directory, bool sorted, Listing *listing) noexcept {
    size_t used = 0;
    int64_t offset = 0;
    listing->count = 0;
    listing->ignore_files = 0;
    /* ext4 and btrfs tell of the end by the greatest offset there is, which saves the call that would find nothing */
    while (offset != INT64_MAX) {
        if (listing->capacity - used < 32768) {
            /* entries say by 32 bits where a name begins */
            if (used + 32768 > UINT32_MAX || growth::grow(&listing->raw, &listing->capacity, used + 32768, 65536) < 0)
                return no_memory();
        }
        const long got = syscall(SYS_getdents64, directory, listing->raw + used, listing->capacity - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == ENOMEM) return -1;
        if (got <= 0) break;
        for (const size_t end = used + static_cast<size_t>(got); used < end;) {
            const Record *record = reinterpret_cast<const Record *>(listing->raw + used);
            const size_t name = used + offsetof(Record, name);
            used += record->size;
            offset = record->offset;
            if (record->name[0] == '.' && (record->name[1] == 0 || (record->name[1] == '.' && record->name[2] == 0)))
                continue;
            const uint8_t kind = kind_of(directory, record);
            if (kind == OTHER) continue;
            if (growth::grow(&listing->entries, &listing->room, listing->count + 1, 256) < 0) return no_memory();
            const size_t size = std::strlen(record->name);
            if (kind == FILE) listing->ignore_files |= names::ignore_file(record->name, size);
            listing->entries[listing->count++] = Entry{sorted ? key_of(record->name, size) : 0,
                                                       static_cast<uint32_t>(name), static_cast<uint16_t>(size), kind, 0};
        }
    }
    if (!sorted) return 0;
    const char *raw = listing->raw;
    std::sort(listing->entries, listing->entries + listing->count, [raw](const Entry &a, const Entry &b) {
        if (a.key != b.key) return a.key < b.key;
        const int order = std::memcmp(raw + a.at, raw + b.at, std::min(a.size, b.size));
        return order ? order < 0 : a.size < b.size;
    });
    return 0;
}

/* A moment, as the kernel tells it: years past 2262 do not fit into nanoseconds. */
struct Moment {
    int64_t seconds;
    uint32_t nanoseconds;
};

/* The mtime of a name itself, if it is (still) of `kind`. Whether it is. */
inline bool age(int directory, const char *name, uint8_t kind, Moment *mtime) noexcept {
    struct stat status;  /* what statx fills takes longer to fill */
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) return false;
    if (kind == FILE ? !S_ISREG(status.st_mode) : !S_ISLNK(status.st_mode)) return false;
    *mtime = Moment{status.st_mtim.tv_sec, static_cast<uint32_t>(status.st_mtim.tv_nsec)};
    return true;
}

}  // namespace walk
