# Counting lines, checking UTF-8, writing JSON strings, for other kernels; all inline C++, nothing needs the GIL.

from libc.stdint cimport uint8_t, uint64_t

cdef extern from "lines.h" namespace "lines" nogil:
    # Bytes that grow. Declare it zeroed (`memset`), `release` it on every path; `data` belongs to the declarer.
    cppclass Text:
        uint8_t* data
        size_t used
        size_t capacity

    # Make room for `more` bytes. -1: no memory, the text stays as it is.
    int reserve(Text* text, size_t more) noexcept
    # Free the bytes; the text is then empty and may be used again.
    void release(Text* text) noexcept
    # Append bytes as they are. -1: no memory.
    int append(Text* text, const char* data, size_t size) noexcept
    # Append a number in decimal. -1: no memory.
    int append_number(Text* text, uint64_t number) noexcept
    # Append bytes as the inside of a JSON string, without its quotes; U+FFFD for each maximal ill-formed part of UTF-8.
    # LF and CR are escaped like any control. -1: no memory.
    int append_json(Text* text, const char* data, size_t size) noexcept

    # How many LFs there are.
    size_t count_lf(const char* data, size_t size) noexcept
    # How many bytes at the beginning are well-formed UTF-8 and end with a whole character; all of them: `size`.
    size_t utf8_prefix(const char* data, size_t size) noexcept
