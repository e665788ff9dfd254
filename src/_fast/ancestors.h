/* Directories deep in a tree, opened at a cost that does not grow with their depth.
 *
 * To open a directory by its path from the root costs as much as that path is long, so a chain of directories would cost
 * the square of its depth. Here a few ancestors of the directory opened last stay open, and the next one is opened from
 * the nearest of them. Its path then leads below that ancestor, but the ancestor may have been moved out of the tree
 * meanwhile. Therefore:
 *
 * - A path shorter than twice the finest step is opened from the root, which proves where it lies.
 * - To close an ancestor its path is opened again. Where that fails or leads to another directory the ancestor has been
 *   moved: what was found since it was opened may lie outside of the tree and must not be used.
 * - All are closed once as many bytes of path were opened as that costs, and when the walker pauses.
 *
 * Nothing here calls Python or takes the GIL.
 */
#pragma once

#include "walk.h"

namespace walk {

constexpr int LEVELS = 4;
/* Bytes of path between a directory and the ancestor of a level: one to three times this. */
constexpr size_t STEPS[LEVELS] = {65536, 8192, 1024, 128};

struct Ancestor {
    int fd;
    size_t size;  /* of its path, a beginning of Ancestors::path; 0: none is open */
};

/* The open ancestors, coarse steps first. Zeroed to begin with; `discard` frees it. */
struct Ancestors {
    Ancestor at[LEVELS];
    char *path;
    size_t size, room;
    size_t spent;  /* bytes of path opened since all were closed */
    bool moved;  /* one was, at any time */
    Opened opened;
};

/* The deepest open ancestor of those before `level`; an empty one, if there is none. */
inline Ancestor nearest(const Ancestors *all, int level) noexcept {
    Ancestor found{-1, 0};
    for (int i = 0; i < level; i++) {
        if (all->at[i].size > found.size) found = all->at[i];
    }
    return found;
}

/* Open the directory of the first `size` bytes of `path` from an open ancestor of it, or from the root. -1 and errno. */
inline int open_from(Ancestors *all, int root, const Ancestor &from, const char *path, size_t size, int flags) noexcept {
    const size_t skip = from.size ? from.size + 1 : 0;
    return open_directory(from.size ? from.fd : root, path + skip, size - skip, flags, &all->opened);
}

/* Whether a directory that was opened as `was` is not the one that its path leads to now, which is `again`, -1 for none.
 * A removed directory is not moved: nothing can be found in it. */
inline bool has_moved(int was, int again) noexcept {
    struct stat before, now;
    if (fstat(was, &before) != 0) return true;
    if (before.st_nlink == 0) return false;
    return again < 0 || fstat(again, &now) != 0 || before.st_ino != now.st_ino || before.st_dev != now.st_dev;
}

/* Close the ancestor of a level, if one is open, and note whether it was moved. -1: a shortage, which errno tells. */
inline int close_ancestor(Ancestors *all, int root, int level) noexcept {
    const Ancestor it = all->at[level];
    if (it.size == 0) return 0;
    const int again = open_from(all, root, nearest(all, level), all->path, it.size, PASSING_FLAGS);
    const int failed = again < 0 ? errno : 0;
    if (!shortage(failed) && has_moved(it.fd, again)) all->moved = true;
    if (again >= 0) close(again);
    close(it.fd);
    all->at[level].size = 0;
    errno = failed;
    return shortage(failed) ? -1 : 0;
}

/* Close all ancestors, and note whether one was moved. -1: a shortage, which errno tells. */
inline int close_ancestors(Ancestors *all, int root) noexcept {
    all->spent = 0;
    for (int level = LEVELS; level-- > 0;) {
        if (close_ancestor(all, root, level)) return -1;
    }
    return 0;
}

/* Close all ancestors without a look at where they are, and free what they take. */
inline void discard(Ancestors *all) noexcept {
    for (const Ancestor &it : all->at) {
        if (it.size) close(it.fd);
    }
    std::free(all->path);
    *all = Ancestors{};
}

/* Close the ancestors that are none of the directory `path`, or far above it. -1: a shortage, which errno tells. */
inline int keep_near(Ancestors *all, int root, const char *path, size_t size) noexcept {
    bool keep[LEVELS];
    size_t same = 0;
    for (int level = 0; level < LEVELS; level++) {
        const size_t its = all->at[level].size;
        keep[level] = its && its < size && path[its] == '/' && size - its < 3 * STEPS[level] &&
                      (its <= same || std::memcmp(path + same, all->path + same, its - same) == 0);
        if (keep[level]) same = std::max(same, its);
    }
    for (int level = LEVELS; level-- > 0;) {
        if (!keep[level] && close_ancestor(all, root, level)) return -1;
    }
    if (all->room < size) {
        void *more = std::realloc(all->path, size * 2);
        if (more == nullptr) return no_memory();
        all->path = static_cast<char *>(more);
        all->room = size * 2;
    }
    std::memcpy(all->path + same, path + same, size - same);
    return 0;
}

/* The bytes of the longest directory path that `path` begins with, of at most `most` bytes. */
inline size_t directory_within(const char *path, size_t most) noexcept {
    const void *slash = memrchr(path, '/', most + 1);
    return slash ? static_cast<size_t>(static_cast<const char *>(slash) - path) : 0;
}

/* Open a directory below `root`, like `open_directory`. What is found in it must not be used unless `moved` is still false
 * after `close_ancestors`. -1 and errno. */
inline int open_deep(Ancestors *all, int root, const char *path, size_t size) noexcept {
    if (all->spent > size && close_ancestors(all, root)) return -1;
    if (keep_near(all, root, path, size)) return -1;
    for (int level = 0; level < LEVELS; level++) {
        const size_t step = STEPS[level];
        if (all->at[level].size || size < 2 * step) continue;
        const Ancestor above = nearest(all, level);
        const size_t wanted = directory_within(path, size / step * step - step);
        if (wanted <= above.size) continue;
        const int fd = open_from(all, root, above, path, wanted, PASSING_FLAGS);
        if (fd < 0) return -1;
        all->at[level] = Ancestor{fd, wanted};
    }
    const Ancestor above = nearest(all, LEVELS);
    if (above.size) all->spent += STEPS[LEVELS - 1];
    return open_from(all, root, above, path, size, DIRECTORY_FLAGS);
}

}  // namespace walk
