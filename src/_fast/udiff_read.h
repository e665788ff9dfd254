// Where the bodies of hunks end, by their counts or in spite of them (specification, section 4).
#pragma once

#include "udiff_kind.h"

namespace udiff {

enum Fault : int {
    FINE = 0,
    BAD_HEADER,      // begins with @@ and is no hunk header
    NO_LINES,        // a hunk without lines
    ONLY_CONTEXT,    // a hunk that changes nothing
    HALF_HEADER,     // --- without +++ or the other way round
    STRANGE_LINE,    // a line without a sign, and the body goes on after it
    EARLY_MARKER,    // a no-newline marker before the first line
    LATE_LINE,       // a line of a side that a marker has ended
};

class DiffReader : public DiffLines {
  public:
    uint32_t fault_line = 0;  // the line that a fault is about

    // Whether the signed lines from `line` on are prose: a list, rules of dashes, or a diff quoted with two blanks before
    // each line. They come after a body whose counts are used up and an empty line. `end` is set to where they end.
    bool quoted(uint32_t line, uint32_t* end) {
        static const char* const QUOTED[] = {"--- ", "+++ ", "diff ", "@@", "Index: "};
        Ending after = ending(line);
        bool marked = false;
        char mark;
        for (; line < count() && sign(line, &mark) && !part(line); line++) {
            Bytes text = lines[line];
            if (mark == 'E') continue;
            *end = line + 1;
            if (mark != ' ') {
                marked = true;
                continue;
            }
            if (text.size < 2 || text.at[1] != ' ') return false;
            while (text.size && text.at[0] == ' ') text = {text.at + 1, text.size - 1};
            for (const char* with : QUOTED) marked |= begins(text, with, static_cast<uint32_t>(strlen(with)));
        }
        return marked && (after == AT_PART || (after == AT_END && line < count()));
    }

    // Returns where a body ends by its counts, 0 where these cannot be right.
    uint32_t counted(uint32_t line, uint32_t old_left, uint32_t new_left, uint32_t* tail, Fault* fault) {
        char mark;
        uint32_t first = line;
        for (; old_left || new_left; line++) {
            if (line >= count() || !sign(line, &mark)) return 0;
            bool in_old = mark != '+' && mark != '\\', in_new = mark != '-' && mark != '\\';
            if ((in_old && !old_left) || (in_new && !new_left)) return 0;
            old_left -= in_old;
            new_left -= in_new;
        }
        while (line > first && starts(line, "\\")) line++;
        // empty lines may be context without its blank, if the body goes on after them
        uint32_t next = line;
        while (next < count() && sign(next, &mark) && mark == 'E') next++;
        if (next == count() || !sign(next, &mark) || pair(next) || signature(next)) return line;
        if (next == line && half(next)) {
            *fault = HALF_HEADER;
            fault_line = line;
            return line;
        }
        if (next == line) return 0;
        if (quoted(next, tail)) return line;
        *tail = 0;
        return half(next) && ending(next) != AT_HUNK ? line : 0;
    }

    // Whether a line without a sign is one that programs write between the diffs of two files.
    bool between_files(uint32_t line) const {
        return any_of(line, {"diff ", "Index: ", "=====", "Only in ", "commit ", "Common sub"});
    }

    // Whether a line without a sign is context that lost its blank and not text after the body: a context line follows, or
    // the counts are used up exactly by it and the lines after it.
    bool lost_sign(uint32_t line, int64_t old_left, int64_t new_left) {
        char mark;
        for (; line < count() && !fence(line) && !between_files(line) && !pair(line); line++) {
            Kind found = kind(line, false);
            if (found == HUNK || found == GIT || found == MAIL || !lines[line].size) return false;
            bool signed_line = sign(line, &mark);
            if (signed_line && mark == ' ') return true;
            if (signed_line && mark == 'E') return false;
            old_left -= !signed_line || mark == '-';
            new_left -= !signed_line || mark == '+';
            if (old_left == 0 && new_left == 0) return true;
        }
        return false;
    }

    // Returns where a body ends whose counts are wrong or missing.
    uint32_t recounted(uint32_t line, int64_t old_left, int64_t new_left, Fault* fault) {
        uint32_t first = line, filled = line;
        char mark;
        while (line < count() && sign(line, &mark) && !pair(line) && !signature(line)) {
            line++;
            if (mark != 'E') filled = line;
            old_left -= mark != '+' && mark != '\\';
            new_left -= mark != '-' && mark != '\\';
        }
        if (filled > first && half(filled - 1)) {
            *fault = HALF_HEADER;
            fault_line = filled - 1;
        } else if (line < count() && !sign(line, &mark)) {
            fault_line = line;
            bool strange = filled == first ? kind(line, false) == TEXT && !fence(line) && !between_files(line)
                                           : filled == line && lost_sign(line, old_left, new_left);
            if (strange) *fault = STRANGE_LINE;
            for (; line < count() && !fence(line) && !signature(line); line++) {
                Kind found = kind(line, false);
                if (found == HUNK || found == PAIR || found == GIT || found == MAIL) break;
                char first_byte = lines[line].size ? lines[line].at[0] : 0;
                if (first_byte == '+' || first_byte == '-') {
                    *fault = STRANGE_LINE;
                    break;
                }
            }
        }
        return filled;
    }

    // Counts the lines of a body and sets its flags.
    Fault survey(Hunk* hunk) {
        bool old_over = false, new_over = false;
        char mark, before = 0;
        for (uint32_t line = hunk->first; line < hunk->last; line++) {
            fault_line = line;
            sign(line, &mark);
            if (mark == '\\') {
                if (before == 0) return EARLY_MARKER;
                old_over |= before != '+';
                new_over |= before != '-';
                continue;
            }
            bool in_old = mark != '+', in_new = mark != '-';
            if ((in_old && old_over) || (in_new && new_over)) return LATE_LINE;
            Bytes text = lines[line];
            hunk->old_lines += in_old;
            hunk->added += mark == '+';
            if (mark == 'E') hunk->flags |= LOST_BLANK;
            if (text.size && text.at[text.size - 1] == '\r') hunk->flags |= HAS_CR;
            if (in_old != in_new) hunk->flags |= CHANGES;
            if (in_new) hunk->flags = mark == '+' ? hunk->flags | NEW_LAST : hunk->flags & ~NEW_LAST;
            before = mark;
        }
        if (old_over) hunk->flags |= OLD_UNENDED;
        if (new_over) hunk->flags |= NEW_UNENDED;
        if (hunk->last == count() && !lines.ended()) hunk->flags |= CUT;
        fault_line = hunk->header;
        if (hunk->first == hunk->last) return NO_LINES;
        return hunk->flags & CHANGES ? FINE : ONLY_CONTEXT;
    }

    // Reads the hunk whose header is `line`.
    Fault hunk(uint32_t line, Hunk* hunk) {
        *hunk = {line, line + 1, line + 1, 0, 0, 0, 0, 0};
        uint32_t old_count = 0, new_count = 0;
        fault_line = line;
        if (!header(line, hunk, &old_count, &new_count)) return BAD_HEADER;
        Fault fault = FINE;
        uint32_t end = hunk->flags & NUMBERED ? counted(line + 1, old_count, new_count, &hunk->tail, &fault) : 0;
        if (end == 0) {
            fault = FINE;
            hunk->flags |= RECOUNTED;
            end = recounted(line + 1, old_count, new_count, &fault);
        }
        hunk->last = end;
        if (fault != FINE) return fault;
        fault = survey(hunk);
        if (hunk->old_lines == 0 && old_count > 0) hunk->flags |= BEHIND;
        return fault;
    }

    // Reads hunks from `line` on, with text between them. `line` is set to the first line that is neither.
    Fault hunks(uint32_t* line, std::vector<Hunk>* out) {
        Kind found = HUNK;
        while (found == HUNK) {
            Hunk one;
            Fault fault = hunk(*line, &one);
            if (fault != FINE) return fault;
            out->push_back(one);
            *line = starts(one.last, "@@") ? one.last : next(one.last, false, true, &found);
        }
        return FINE;
    }
};

}  // namespace udiff
