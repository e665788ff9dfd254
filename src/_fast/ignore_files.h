/* Reading a directory's ignore files: the one reader of them, for walks and watches alike.
 *
 * Nothing here calls Python or takes the GIL.
 */
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "growth.h"
#include "names.h"

namespace ignore_files {

/* Bytes of a rule file; git leaves out a larger one, too. */
constexpr size_t MOST = 100 << 20;

/* The contents of a file; `data` is from malloc, NULL where there is no such file. */
struct Contents {
    char *data;
    size_t size;
};

/* Read to the end of an open regular file of at most MOST bytes. 0; -1: it is none, is larger or cannot be read; errno. */
inline int read_open(int fd, Contents *out) noexcept {
    struct stat status;
    if (fstat(fd, &status) != 0) return -1;
    errno = EINVAL;
    if (!S_ISREG(status.st_mode)) return -1;
    size_t capacity = 0, used = 0;
    char *data = nullptr;
    /* one byte more than the file is said to have, and than it may have, shows that it has grown */
    for (size_t want = static_cast<uint64_t>(status.st_size) < MOST ? static_cast<size_t>(status.st_size) + 1 : MOST + 1;;) {
        if (growth::grow(&data, &capacity, want, want) < 0) break;
        const ssize_t got = read(fd, data + used, capacity - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        if (got == 0) {
            *out = Contents{data, used};
            return 0;
        }
        used += static_cast<size_t>(got);
        if (used > MOST) {
            errno = EFBIG;
            break;
        }
        want = used + 1;
    }
    std::free(data);
    return -1;
}

/* Read the ignore file `name` of a directory. One that is no regular file, a link too, too large or unreadable holds no
 * rules. 0; -1: a shortage, which errno tells. The caller frees `out->data`. */
inline int read_one(int directory, const char *name, Contents *out) noexcept {
    *out = Contents{nullptr, 0};
    const int fd = openat(directory, name, beneath::FILE_FLAGS);
    if (fd < 0) return beneath::shortage(errno) ? -1 : 0;
    const int failed = read_open(fd, out) < 0 ? errno : 0;
    close(fd);
    errno = failed;
    return beneath::shortage(failed) ? -1 : 0;
}

inline void discard(Contents *files) noexcept {
    for (int kind = 0; kind < names::IGNORE_KINDS; kind++) {
        std::free(files[kind].data);
        files[kind] = Contents{nullptr, 0};
    }
}

/* Read those ignore files of a directory whose bits are set, one for each kind into `files`, which `discard` frees. 0; -1:
 * a shortage, which errno tells, and nothing is to be freed. */
inline int read_all(int directory, unsigned mask, Contents *files) noexcept {
    for (int kind = 0; kind < names::IGNORE_KINDS; kind++) files[kind] = Contents{nullptr, 0};
    for (int kind = 0; kind < names::IGNORE_KINDS; kind++) {
        if ((mask >> kind & 1) && read_one(directory, names::IGNORE_FILES[kind], &files[kind]) < 0) {
            const int failed = errno;
            discard(files);
            errno = failed;
            return -1;
        }
    }
    return 0;
}

}  // namespace ignore_files
