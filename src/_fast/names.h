/* The names that mean something to the kernels. `toolserver/workspace/names.py` has them for Python; a unit test
 * compares the two.
 */
#pragma once

#include <cstddef>
#include <cstring>

namespace names {

constexpr char GIT[] = ".git";
constexpr char KD[] = ".kd";
constexpr char AGENTS[] = ".agents";

/* Files of ignore rules, weakest first: any rule of a later kind beats any of an earlier one, whatever the depth
 * (specification, section 5). The excludes file and info/exclude rank below the first. A further kind is one line here;
 * Python takes the list from the kernel. */
constexpr const char *IGNORE_FILES[] = {
    ".gitignore",
    ".ignore",
};
enum { IGNORE_KINDS = sizeof IGNORE_FILES / sizeof *IGNORE_FILES };
static_assert(IGNORE_KINDS <= 32, "a directory's ignore files are a mask of 32 bits");

template <size_t N> inline bool same(const char *name, size_t size, const char (&known)[N]) noexcept {
    return size == N - 1 && std::memcmp(name, known, N - 1) == 0;
}
inline bool is_git(const char *name, size_t size) noexcept { return same(name, size, GIT); }
inline bool is_kd(const char *name, size_t size) noexcept { return same(name, size, KD); }
inline bool is_agents(const char *name, size_t size) noexcept { return same(name, size, AGENTS); }

/* The kind of an ignore file as a bit, 0 for any other name. */
inline unsigned ignore_file(const char *name, size_t size) noexcept {
    for (unsigned kind = 0; kind < IGNORE_KINDS; kind++) {
        if (std::strlen(IGNORE_FILES[kind]) == size && std::memcmp(name, IGNORE_FILES[kind], size) == 0) return 1u << kind;
    }
    return 0;
}

}  // namespace names
