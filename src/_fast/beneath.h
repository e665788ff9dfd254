/* Opening below a directory so that the kernel proves it: openat2(2), and what stands in for it.
 *
 * Nothing here calls Python or takes the GIL.
 */
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

namespace beneath {

/* For a regular file that is only read: never waits on a FIFO, never becomes the controlling terminal. */
constexpr int FILE_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
/* How often an opening is tried again that failed because something was renamed meanwhile. */
constexpr int TRIES = 128;

/* Whether a failure is the server's, which has no descriptor or no memory left, and not of what was asked for. */
inline bool shortage(int error) noexcept { return error == EMFILE || error == ENFILE || error == ENOMEM; }

/* openat2(2); -1 and errno, ENOSYS before Linux 5.6. */
inline int open_resolved(int directory, const char *path, int flags, int mode, uint64_t resolve) noexcept {
    open_how how;
    std::memset(&how, 0, sizeof how);
    how.flags = static_cast<uint64_t>(flags);
    how.mode = static_cast<uint64_t>(mode);
    how.resolve = resolve;
    for (int tries = 0;;) {
        const long fd = syscall(SYS_openat2, directory, path, &how, sizeof how);
        if (fd >= 0) return static_cast<int>(fd);
        /* EAGAIN: the kernel could not prove that the `..` of a link stays below, since something was renamed */
        if (errno == EINTR || (errno == EAGAIN && tries++ < TRIES)) continue;
        return -1;
    }
}

/* Open what lies below `directory`, links followed as long as they stay there. */
inline int open_beneath(int directory, const char *path, int flags, int mode = 0, uint64_t resolve = 0) noexcept {
    return open_resolved(directory, path, flags | O_CLOEXEC, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve);
}

}  // namespace beneath
