"""Git's ignore rules, for a walk without the GIL.

Everything here is read-only once made and may be asked from any number of threads. Paths are bytes, relative to the
tree's root, `/`-separated, without a slash at either end; the root itself is empty. No path is ever built: an entry is
named by the path of its directory and its own name.
"""

cdef extern from "ignore_files.h" namespace "names" nogil:
    enum:
        IGNORE_KINDS    # of ignore files: `.gitignore`, `.ignore`

cdef extern from "ignore_files.h" namespace "ignore_files" nogil:
    # The contents of an ignore file; `data` is NULL where there is none.
    struct Contents:
        char* data
        size_t size

cdef enum:
    EVERY_KIND = 0xffffffff     # of ignore file, as a mask
    GIT_KIND = 1                # git's own, the first

# The rules that hold in one directory: those of its own files and a counted reference to those above.
cdef struct rules_t

# The weakest rules, of the tree's top: contents of the excludes file and of info/exclude, NULL = no such file.
# The caller owns one reference. NULL = out of memory; without any rule an empty object, which any walk starts from.
cdef rules_t* rules_base(
    const char* excludes, size_t n, const char* info_exclude, size_t m
) noexcept nogil

# The rules that hold in the directory `dir_path`: `parent`'s (not NULL, of an enclosing directory, not necessarily
# the next; a reference is taken) and those of its ignore files, IGNORE_KINDS of them. The caller owns one reference to
# the rules returned, which are `parent` itself where no file holds a rule. NULL = out of memory. Contents are copied as
# far as needed.
cdef rules_t* rules_push(
    rules_t* parent, const char* dir_path, size_t dir_len, const Contents* files
) noexcept nogil

# The same with the ignore files read from the directory `fd`, those whose bit of `kinds` is set. Only regular files of
# at most 100 MiB hold rules. NULL = out of memory or descriptors, which errno tells.
cdef rules_t* rules_enter(
    rules_t* parent, const char* dir_path, size_t dir_len, int fd, unsigned kinds
) noexcept nogil

# Takes one more reference, from any thread.
cdef void rules_retain(rules_t* rules) noexcept nogil

# Gives one reference back, from any thread; the last one frees. NULL is allowed.
cdef void rules_release(rules_t* rules) noexcept nogil

# 1 = the entry is ignored by the last rule that fits it, 0 = it is not: no rule fits or that one begins with `!`.
# `rules` are those of the directory `dir_path` (from rules_push with that path or one above it). A link is no
# directory. What lies below an ignored directory is ignored as a whole and must not be asked. `.git` is no special
# name here.
cdef int rules_ignored(
    const rules_t* rules, const char* dir_path, size_t dir_len, const char* name, size_t name_len, int is_dir
) noexcept nogil

cdef class Rules:
    # Owns one reference; `p` is never NULL and lives as long as the object.
    cdef rules_t* p

cdef class BaseRules(Rules):
    # What rules_base makes.
    pass
