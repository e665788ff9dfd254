"""Text files as numbered lines in JSON: counted, checked as UTF-8 and escaped without the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset

from toolserver._fast.lines cimport Text, append, append_json, count_lf, release, utf8_prefix

cdef extern from "lines.h" namespace "lines" nogil:
    cppclass Measure:
        size_t size
        size_t feeds
    cppclass Kernels:
        size_t count(const uint8_t* at, const uint8_t* end) noexcept
        const uint8_t* skip(const uint8_t* at, const uint8_t* end, size_t* feeds) noexcept
        Measure measure(const uint8_t* at, const uint8_t* end) noexcept
        uint8_t* number(const uint8_t* at, const uint8_t* end, uint8_t* out, uint64_t first) noexcept
    cppclass Part:
        size_t size
        size_t text
        size_t lines
    const size_t SLACK
    Part part_within(const uint8_t* begin, const uint8_t* end, size_t most) noexcept
    size_t decimal(uint8_t* out, uint64_t number) noexcept
    void prefer_huge_pages(uint8_t* data, size_t size) noexcept
    uint8_t* from_utf16(const uint8_t* at, const uint8_t* end, bint big, uint8_t* out) noexcept
    bint available(int kind) noexcept
    Kernels chosen(int kind) noexcept
    Kernels& kernels() noexcept

cdef extern from "Python.h":
    # as pointers: resizing needs the only reference
    PyObject* PyBytes_FromStringAndSize(const char* data, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject** made, Py_ssize_t size) except -1
    const Py_ssize_t PY_SSIZE_T_MAX

# The requested lines: their bytes, a bound on their size as JSON, and the number of lines of the whole text.
cdef struct Window:
    const uint8_t* begin
    const uint8_t* end
    size_t bound
    size_t total

# Texts up to this size are numbered under the GIL: releasing and taking it would take longer.
cdef Py_ssize_t INLINE = 65536

_KINDS = {"plain": 1, "sse2": 2, "avx2": 3}


cdef void find_window(const uint8_t* data, const uint8_t* end, size_t offset, size_t limit, Window* out) noexcept nogil:
    """Find the lines `offset` (from 1) and at most `limit` on. `data` stays the caller's; `out` points into it."""
    cdef uint8_t digits[20]
    cdef size_t before = offset - 1, within = limit
    cdef Measure found
    out.begin = kernels().skip(data, end, &before)
    if limit >= <size_t>(end - out.begin):
        out.end = end
        found = kernels().measure(out.begin, end)
        out.total = before + found.feeds
    else:
        out.end = kernels().skip(out.begin, end, &within)
        found = kernels().measure(out.begin, out.end)
        out.total = before + found.feeds + kernels().count(out.end, end)
    if end > data and (end - 1)[0] != c"\n":
        out.total += 1
    out.bound = found.size + (found.feeds + 1) * (4 + decimal(digits, offset + found.feeds)) + SLACK


def number(bytes data not None, Py_ssize_t offset, Py_ssize_t limit, *, Py_ssize_t start=0):
    cdef const uint8_t* begin = <const uint8_t*>PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef Window window
    cdef uint8_t* out
    cdef uint8_t* used
    cdef PyObject* made
    if offset < 1 or limit < 0 or start < 0 or start > size:
        raise ValueError("offset counts from 1, limit from 0, start lies inside the data")
    if size - start <= INLINE:
        find_window(begin + start, begin + size, offset, limit, &window)
    else:
        with nogil:
            find_window(begin + start, begin + size, offset, limit, &window)
    truncated = window.end < begin + size
    if window.begin == window.end:
        return b'""', window.total, truncated
    made = room(window.bound + 2)
    out = begin_of(made)
    out[0] = c'"'
    if window.end - window.begin <= INLINE:
        used = kernels().number(window.begin, window.end, out + 1, offset)
    else:
        with nogil:
            used = kernels().number(window.begin, window.end, out + 1, offset)
    used[0] = c'"'
    return finished(made, used + 1 - out), window.total, truncated


def text_within(bytes numbered not None, size_t most):
    cdef const uint8_t* begin = <const uint8_t*>PyBytes_AS_STRING(numbered) + 1
    cdef const uint8_t* end = begin + PyBytes_GET_SIZE(numbered) - 2
    cdef Part part
    if end < begin:
        raise ValueError("not a JSON string")
    with nogil:
        part = part_within(begin, end, most)
    return part.text, part.size + 1, part.lines


def utf8_of_utf16(bytes data not None, *, bint big, Py_ssize_t start=0):
    cdef const uint8_t* begin = <const uint8_t*>PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef PyObject* made
    cdef uint8_t* out
    cdef uint8_t* used
    if start < 0 or start > size:
        raise ValueError("start lies inside the data")
    made = room((<size_t>(size - start) + 1) // 2 * 3)
    out = begin_of(made)
    with nogil:
        used = from_utf16(begin + start, begin + size, big, out)
    return finished(made, used - out)


def json_string(bytes data not None):
    cdef const char* begin = PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef Text text
    cdef bint failed
    memset(&text, 0, sizeof(text))
    try:
        with nogil:
            failed = append(&text, b'"', 1) or append_json(&text, begin, size) or append(&text, b'"', 1)
        if failed:
            raise MemoryError
        return (<char*>text.data)[:text.used]
    finally:
        release(&text)


def count(bytes data not None):
    return count_lf(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


def well_formed(bytes data not None):
    return utf8_prefix(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


def kinds():
    return [name for name, kind in _KINDS.items() if available(kind)]


def use(str name not None):
    global _used
    if name not in kinds():
        raise ValueError(f"this processor has no {name}")
    cdef Kernels* table = &kernels()
    table[0] = chosen(_KINDS[name])
    before, _used = _used, name
    return before


_used = max(kinds(), key=_KINDS.get)


cdef PyObject* room(size_t most) except NULL:
    """Allocate a bytes object for the worst case; what is not written is never touched."""
    cdef PyObject* made
    if most > <size_t>PY_SSIZE_T_MAX // 2:
        raise MemoryError
    made = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>most)
    prefer_huge_pages(begin_of(made), most)
    return made


cdef inline uint8_t* begin_of(PyObject* made) noexcept:
    return <uint8_t*>PyBytes_AS_STRING(<object>made)


cdef bytes finished(PyObject* made, Py_ssize_t size):
    """Shrink an object of `room` to `size` and return it; steals the reference."""
    _PyBytes_Resize(&made, size)
    answer = <bytes>made
    Py_DECREF(answer)
    return answer
