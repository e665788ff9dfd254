"""The results of grep: rows on the runs of a walk, and the answer that is written from them."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from toolserver._fast.lines cimport Text, append, append_json, append_number, count_lf
from toolserver._fast.rows cimport LONG, held_t, line_end, line_start, text_end
from toolserver._fast.walk cimport walk_t

cdef extern from "lines.h" namespace "lines" nogil:
    size_t utf8_prefix(const char* data, size_t size) noexcept

cdef enum:
    # What a row is: the path that the following rows belong to; a line; a count.
    ROW_PATH = 1
    ROW_LINE = 2
    ROW_COUNT = 3


cdef struct row_t:
    # The head of a row; `text` and `context` bytes follow it.
    uint64_t number
    uint32_t tag
    uint32_t text
    uint32_t context
    uint32_t cut

cdef uint32_t NO_CONTEXT = 0xffffffff


cdef size_t path_size(const held_t* file) noexcept nogil:
    return file.item.dir.size + 1 + file.name_size


cdef bint inside(uint8_t byte) noexcept nogil:
    """Whether a byte continues a character."""
    return byte & 0xc0 == 0x80


cdef size_t back_to_character(const uint8_t* data, size_t at, size_t low, size_t end) noexcept nogil:
    """Step back from the middle of a character to its start, by 3 bytes at most."""
    cdef int steps = 0
    cdef size_t moved = at
    while moved > low and moved < end and inside(data[moved]) and steps < 3:
        moved -= 1
        steps += 1
    return moved if moved >= end or not inside(data[moved]) else at


cdef void choose_piece(
    const uint8_t* data, size_t start, size_t stop, size_t first, size_t last, size_t* begin, size_t* end
) noexcept nogil:
    """Choose what is shown of a long line [start, stop) whose first match is [first, last)."""
    cdef size_t spare, low
    cdef int steps = 0
    if last - first >= LONG:
        begin[0] = first
        end[0] = back_to_character(data, first + LONG, first, stop)
        return
    spare = (LONG - (last - first)) // 2
    low = first - spare if first - start > spare else start
    if stop - low < LONG:
        low = stop - LONG
    end[0] = low + LONG
    while low < first and inside(data[low]) and steps < 3:
        low += 1
        steps += 1
    begin[0] = low
    end[0] = back_to_character(data, min(low + LONG, stop), max(last, low), stop)


cdef int add_path(held_t* file) noexcept nogil:
    """Say which file the following rows belong to. -1: no memory."""
    cdef row_t row
    cdef size_t above = file.item.dir.size + 1 if file.item.dir.size else 0
    file.told = True
    memset(&row, 0, sizeof(row))
    row.tag = ROW_PATH
    row.text = <uint32_t>(above + file.name_size)
    if append(&file.item.rows, <const char*>&row, sizeof(row)):
        return -1
    if above and (append(&file.item.rows, file.item.dir.path, above - 1) or append(&file.item.rows, b"/", 1)):
        return -1
    return append(&file.item.rows, file.name, file.name_size)


cdef int add_file(held_t* file) noexcept nogil:
    """See the pxd."""
    file.item.entries += 1
    file.item.weight += path_size(file)
    return add_path(file)


cdef int add_count(held_t* file) noexcept nogil:
    """See the pxd."""
    cdef row_t row
    if add_path(file):
        return -1
    memset(&row, 0, sizeof(row))
    row.tag = ROW_COUNT
    row.number = file.count
    file.item.entries += 1
    file.item.weight += path_size(file)
    return append(&file.item.rows, <const char*>&row, sizeof(row))


cdef int append_line(Text* to, const uint8_t* data, size_t start, size_t stop, size_t end, bint plain) noexcept nogil:
    """Append a line of a context, cut at LONG bytes. -1: no memory."""
    cdef size_t last = text_end(data, start, stop, end, plain)
    if last - start > LONG:
        last = back_to_character(data, start + LONG, start, last)
    return append(to, <const char*>data + start, last - start)


cdef int append_context(
    Text* to,
    const held_t* file,
    const uint8_t* data,
    size_t start,
    size_t stop,
    size_t begin,
    size_t shown,
    size_t lines,
) noexcept nogil:
    """Append the lines around [start, stop), of which [begin, shown) is shown. -1: no memory."""
    cdef size_t end = file.at + file.size, at = start, next, count = 0
    while count < lines and at > file.at:
        at = line_start(data, file.at, at - 1)
        count += 1
    while at < start:
        next = line_end(data, at, end)
        if append_line(to, data, at, next, end, file.plain) or append(to, b"\n", 1):
            return -1
        at = next + 1
    if append(to, <const char*>data + begin, shown - begin):
        return -1
    at = stop + 1
    count = 0
    while count < lines and at < end:
        next = line_end(data, at, end)
        if append(to, b"\n", 1) or append_line(to, data, at, next, end, file.plain):
            return -1
        at = next + 1
        count += 1
    return 0


cdef int add_line(
    held_t* file, const uint8_t* data, size_t start, size_t stop, size_t first, size_t last, size_t lines
) noexcept nogil:
    """See the pxd."""
    cdef row_t row
    cdef Text* rows = &file.item.rows
    cdef size_t begin = start, shown = text_end(data, start, stop, file.at + file.size, file.plain), head
    memset(&row, 0, sizeof(row))
    if not file.told and add_path(file):
        return -1
    file.line += count_lf(<const char*>data + file.counted, start - file.counted)
    file.counted = start
    if shown - start > LONG:
        row.cut = 1
        choose_piece(data, start, shown, first, last, &begin, &shown)
    row.tag = ROW_LINE
    row.number = file.line
    row.text = <uint32_t>(shown - begin)
    row.context = NO_CONTEXT
    head = rows.used
    if append(rows, <const char*>&row, sizeof(row)) or append(rows, <const char*>data + begin, shown - begin):
        return -1
    if lines:
        if append_context(rows, file, data, start, stop, begin, shown, lines):
            return -1
        row.context = <uint32_t>(rows.used - head - sizeof(row) - row.text)
        memcpy(rows.data + head, &row, sizeof(row))
    file.item.entries += 1
    file.item.weight += rows.used - head + path_size(file)
    return 0


# ------------------------------------------------------------------------------------------------- the answer as JSON


cdef int append_base64(Text* to, const uint8_t* data, size_t size) noexcept nogil:
    """Append bytes in RFC 4648's standard alphabet, padded. -1: no memory."""
    cdef const char* alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    cdef char four[4]
    cdef size_t at = 0, have
    cdef uint32_t bits
    while at < size:
        have = min(size - at, <size_t>3)
        bits = <uint32_t>data[at] << 16
        if have > 1:
            bits |= <uint32_t>data[at + 1] << 8
        if have > 2:
            bits |= data[at + 2]
        four[0] = alphabet[bits >> 18]
        four[1] = alphabet[bits >> 12 & 63]
        four[2] = alphabet[bits >> 6 & 63] if have > 1 else c"="
        four[3] = alphabet[bits & 63] if have > 2 else c"="
        if append(to, four, 4):
            return -1
        at += 3
    return 0


cdef int append_text(Text* to, const char* text) noexcept nogil:
    cdef size_t size = 0
    while text[size]:
        size += 1
    return append(to, text, size)


cdef int begin_entry(Text* path, const char* data, size_t size, bint rows) noexcept nogil:
    """Write what each entry of a file begins with: its path, where entries are rows as a member. -1: no memory."""
    path.used = 0
    if append_text(path, b'{"path":"' if rows else b'"') or append_json(path, data, size) or append(path, b'"', 1):
        return -1
    if not rows or utf8_prefix(data, size) == size:
        return 0
    if append_text(path, b',"path_b64":"') or append_base64(path, <const uint8_t*>data, size):
        return -1
    return append(path, b'"', 1)


cdef int append_entry(Text* to, const Text* path, const row_t* row, const char* text) noexcept nogil:
    """Write one entry. -1: no memory."""
    if append(to, <const char*>path.data, path.used):
        return -1
    if row.tag == ROW_PATH:
        return 0
    if row.tag == ROW_COUNT:
        return append_text(to, b',"count":') or append_number(to, row.number) or append(to, b"}", 1)
    if append_text(to, b',"line":') or append_number(to, row.number) or append_text(to, b',"text":"'):
        return -1
    if append_json(to, text, row.text) or append_text(to, b'","context":'):
        return -1
    if row.context == NO_CONTEXT:
        if append_text(to, b"null"):
            return -1
    elif append(to, b'"', 1) or append_json(to, text + row.text, row.context) or append(to, b'"', 1):
        return -1
    return append_text(to, b',"cut":true}' if row.cut else b"}")


cdef int write_answer(
    const walk_t* walk, Text* to, Text* path, bint files, size_t most, size_t limit, bint* truncated
) noexcept nogil:
    """See the pxd."""
    cdef const item_t* it = walk.first
    cdef row_t row
    cdef const char* rows
    cdef size_t at, count = 0, before
    if append(to, b"[", 1):
        return -1
    while it != NULL:
        rows = <const char*>it.rows.data
        at = 0
        while at < it.rows.used:
            memcpy(&row, rows + at, sizeof(row))
            at += sizeof(row)
            if row.tag == ROW_PATH and begin_entry(path, rows + at, row.text, not files):
                return -1
            if row.tag != ROW_PATH or files:
                before = to.used
                if count < most:
                    if (count and append(to, b",", 1)) or append_entry(to, path, &row, rows + at):
                        return -1
                if count == most or to.used >= limit:
                    to.used = before
                    truncated[0] = True
                    return append(to, b"]", 1)
                count += 1
            at += row.text + (0 if row.tag != ROW_LINE or row.context == NO_CONTEXT else row.context)
        it = it.after
    return append(to, b"]", 1)
