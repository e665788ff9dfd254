"""What differs between git's index and the files of a tree, told by stat alone, and what the index does not hold."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset
from libcpp cimport bool as cpp_bool
from libcpp.string cimport string
from libcpp.vector cimport vector

import os

from toolserver._fast.git_index cimport NO_MEMORY, index_t, read_index
from toolserver._fast.ignore cimport (
    GIT_KIND, BaseRules, rules_enter, rules_ignored, rules_release, rules_retain, rules_t
)

cdef extern from "git_status.h" namespace "git_status" nogil:
    cdef cppclass Entry:
        const char* path
        uint32_t size
        const uint8_t* raw
        uint16_t extended

    cdef cppclass Found:
        string path
        int64_t entry
        uint8_t verdict

    cdef cppclass Rules:
        void* (*enter)(void* parent, const char* path, size_t size, int fd, unsigned ignore_files) noexcept
        void (*retain)(void* rules) noexcept
        void (*release)(void* rules) noexcept
        int (*ignored)(
            const void* rules, const char* path, size_t size, const char* name, size_t name_size, int directory
        ) noexcept

    cdef cppclass Scan:
        Scan(
            int root, const Entry* entries, size_t count, const Rules& rules, void* base, cpp_bool leave_agents,
            cpp_bool trust_mode, int64_t racy
        ) except +
        int run(unsigned threads, vector[Found]* found)

    uint32_t be32(const uint8_t* at)
    int fill(vector[Entry]* entries, size_t count)      # 0, or NO_MEMORY
    uint8_t CHANGED_ "git_status::CHANGED"
    uint8_t MODE_ "git_status::MODE"
    uint8_t TYPE_ "git_status::TYPE"
    uint8_t DELETED_ "git_status::DELETED"
    uint8_t UNMERGED_ "git_status::UNMERGED"
    uint8_t SUBMODULE_ "git_status::SUBMODULE"
    uint8_t INTENDED_ "git_status::INTENDED"
    uint8_t UNTRACKED_ "git_status::UNTRACKED"
    uint8_t REPOSITORY_ "git_status::REPOSITORY"

CHANGED = CHANGED_
MODE = MODE_
TYPE = TYPE_
DELETED = DELETED_
UNMERGED = UNMERGED_
SUBMODULE = SUBMODULE_
INTENDED = INTENDED_
UNTRACKED = UNTRACKED_
REPOSITORY = REPOSITORY_

cdef enum:
    HASH = 20
    FIXED = 40
    EXTENDED = 0x4000
    INTENT_TO_ADD = 0x2000


cdef void* _enter(void* parent, const char* path, size_t size, int fd, unsigned ignore_files) noexcept nogil:
    return rules_enter(<rules_t*>parent, path, size, fd, ignore_files & GIT_KIND)


cdef void _retain(void* rules) noexcept nogil:
    rules_retain(<rules_t*>rules)


cdef void _release(void* rules) noexcept nogil:
    rules_release(<rules_t*>rules)


cdef int _ignored(
    const void* rules, const char* path, size_t size, const char* name, size_t name_size, int directory
) noexcept nogil:
    return rules_ignored(<const rules_t*>rules, path, size, name, name_size, directory)


cdef class Index:
    cdef bytes _data
    cdef index_t _x
    cdef vector[Entry] _entries

    def __cinit__(self, bytes data not None):
        cdef const uint8_t* bytes_of = <const uint8_t*>PyBytes_AS_STRING(data)
        cdef size_t n = PyBytes_GET_SIZE(data)
        cdef int rc
        self._data = data
        memset(&self._x, 0, sizeof(self._x))
        with nogil:
            rc = read_index(&self._x, bytes_of, n, HASH)
            if rc == 0:
                rc = fill(&self._entries, self._x.count)
        if rc == NO_MEMORY:
            raise MemoryError
        if rc < 0:
            raise ValueError("the index is broken")
        self._point(bytes_of)

    cdef void _point(self, const uint8_t* data) noexcept nogil:
        """Have every entry refer to the text and the bytes that this object owns."""
        cdef size_t i
        cdef Entry* entry
        cdef const uint8_t* flags
        for i in range(self._x.count):
            entry = &self._entries[i]
            entry.path = self._x.text + self._x.paths[i].at
            entry.size = self._x.paths[i].size
            entry.raw = data + self._x.paths[i].entry
            flags = entry.raw + FIXED + HASH
            entry.extended = <uint16_t>(flags[2] << 8 | flags[3]) if flags[0] & EXTENDED >> 8 else 0

    def __dealloc__(self):
        free(self._x.paths)
        free(self._x.text)

    def __len__(self):
        return self._x.count

    def entry(self, Py_ssize_t i):
        cdef Entry* entry
        if i < 0 or i >= <Py_ssize_t>self._entries.size():
            raise IndexError(i)
        entry = &self._entries[i]
        return (
            PyBytes_FromStringAndSize(entry.path, entry.size),
            be32(entry.raw + 24),
            PyBytes_FromStringAndSize(<const char*>entry.raw + FIXED, HASH),
            be32(entry.raw + 36),
            entry.raw[FIXED + HASH] >> 4 & 3,
        )

    def intended(self, Py_ssize_t i):
        if i < 0 or i >= <Py_ssize_t>self._entries.size():
            raise IndexError(i)
        return bool(self._entries[i].extended & INTENT_TO_ADD)

    def find(self, bytes path not None):
        cdef Py_ssize_t low = 0, high = self._entries.size(), middle
        cdef const char* text = PyBytes_AS_STRING(path)
        cdef size_t n = PyBytes_GET_SIZE(path)
        cdef Entry* entry
        cdef int order
        while low < high:
            middle = (low + high) // 2
            entry = &self._entries[middle]
            order = memcmp(entry.path, text, min(<size_t>entry.size, n))
            if order < 0 or (order == 0 and entry.size < n):
                low = middle + 1
            else:
                high = middle
        return low

    def extensions(self):
        return self._data[self._x.end:len(self._data) - HASH]

    def compare(self, int root, BaseRules rules not None, *, int64_t racy, bint leave_agents=False,
                bint trust_mode=True, unsigned threads=1):
        cdef vector[Found] found
        cdef Rules functions
        cdef Scan* scan
        cdef int rc
        cdef size_t i
        functions.enter = _enter
        functions.retain = _retain
        functions.release = _release
        functions.ignored = _ignored
        scan = new Scan(
            root, self._entries.data(), self._entries.size(), functions, rules.p, leave_agents, trust_mode, racy
        )
        with nogil:
            rc = scan.run(threads, &found)
            del scan
        if rc:
            raise OSError(rc, os.strerror(rc))
        return [
            (found[i].verdict, found[i].entry, <bytes>found[i].path if found[i].entry < 0 else None)
            for i in range(found.size())
        ]
