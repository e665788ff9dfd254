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

inline int flag(const int *at) noexcept { return __atomic_load_n(at, __ATOMIC_RELAXED); }
inline void raise_flag(int *at, int value = 1) noexcept { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
inline void retain(long *count) noexcept { __atomic_add_fetch(count, 1, __ATOMIC_RELAXED); }
/* Whether that was the last reference. */
inline bool release(long *count) noexcept { return __atomic_sub_fetch(count, 1, __ATOMIC_ACQ_REL) == 0; }

/* Open a directory below `root` without following any link; `path` is relative and of names alone, empty for `root`
 * itself. So each name is one of the directory before it, and nothing leads up: RESOLVE_BENEATH would only cost time. One
 * component at a time where the kernel has no openat2, or the path is longer than it takes at once. -1 and errno. */
inline int open_directory(int root, const char *path, size_t size) noexcept {
    if (size == 0) return openat(root, ".", DIRECTORY_FLAGS);
    const int direct = open_resolved(root, path, DIRECTORY_FLAGS, 0, RESOLVE_NO_SYMLINKS);
    if (direct >= 0 || (errno != ENOSYS && errno != EPERM && errno != ENAMETOOLONG)) return direct;
    int at = root;
    for (size_t begin = 0; begin < size;) {
        const void *slash = std::memchr(path + begin, '/', size - begin);
        const size_t end = slash ? static_cast<size_t>(static_cast<const char *>(slash) - path) : size;
        char name[NAME_MAX + 1];
        if (end - begin > NAME_MAX) {
            if (at != root) close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        std::memcpy(name, path + begin, end - begin);
        name[end - begin] = 0;
        const int next = openat(at, name, DIRECTORY_FLAGS);
        const int failed = errno;
        if (at != root) close(at);
        if (next < 0) {
            errno = failed;
            return -1;
        }
        at = next;
        begin = end + 1;
    }
    return at;
}

/* Spell the name under which the kernel shows an open descriptor. */
inline void name_descriptor(int fd, char (&out)[32]) noexcept { std::snprintf(out, sizeof out, "/proc/self/fd/%d", fd); }

/* Open, as O_PATH, the regular file that a link leads to over other links, if that lies below `root`, whose absolute path
 * is `above`. -1: it does not, or errno tells of a shortage. */
inline int open_target(int root, const char *above, size_t above_size, int directory, const char *path,
                       const char *name) noexcept {
    /* most links stay below their own directory */
    int fd = open_beneath(directory, name, O_PATH | O_CLOEXEC);
    if (fd < 0 && errno == EXDEV) fd = open_beneath(root, path, O_PATH | O_CLOEXEC);
    if (fd < 0 && errno == ENAMETOOLONG) {
        /* from as high as the kernel takes the rest of the path at once; few links go up further than that */
        const size_t size = std::strlen(path);
        const char *slash = size >= PATH_MAX ? std::strchr(path + size - PATH_MAX, '/') : nullptr;
        const int from = slash ? open_directory(root, path, static_cast<size_t>(slash - path)) : -1;
        if (from >= 0) {
            fd = open_beneath(from, slash + 1, O_PATH | O_CLOEXEC);
            const int failed = errno;
            close(from);
            errno = failed;
        }
    }
    if (fd < 0) {
        /* an absolute link, or one that leaves and comes back; else there is nothing to follow */
        if (errno != EXDEV && errno != ENOSYS && errno != EPERM && errno != ENAMETOOLONG) return -1;
        fd = openat(directory, name, O_PATH | O_CLOEXEC);
        if (fd < 0) return -1;
        char shown[32], found[PATH_MAX];
        name_descriptor(fd, shown);
        const ssize_t size = readlink(shown, found, sizeof found);
        const bool below = size > 0 && static_cast<size_t>(size) > above_size && static_cast<size_t>(size) < sizeof found &&
                           std::memcmp(found, above, above_size) == 0 &&
                           (above_size == 1 || found[above_size] == '/');
        if (!below) {
            close(fd);
            errno = EXDEV;
            return -1;
        }
    }
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
