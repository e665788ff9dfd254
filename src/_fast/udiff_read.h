// Reading a unified diff: what each line outside a hunk is, and where each hunk ends (specification, section 4).
#pragma once

#include <algorithm>
#include <initializer_list>

#include "udiff_lines.h"

namespace udiff {

// What a line outside a body is.
enum Kind : int {
    TEXT = 0,
    GIT,        // diff --git
    PAIR,       // --- with +++ after it
    HALF,       // --- or +++ alone
    HUNK,       // begins with @@
    BINARY,     // GIT binary patch
    DIFFER,     // Binary files ... differ
    MAIL,       // From <id> ... or commit <id>: the next diff of a series
    EXTENDED,   // a line that only a git header has
    END,        // past the last line
};

enum Flag : uint32_t {
    NUMBERED = 1,      // the header states lines
    RECOUNTED = 2,     // its counts were wrong
    LOST_BLANK = 4,    // an empty context line without its blank
    OLD_UNENDED = 8,   // no-newline marker on the old side
    NEW_UNENDED = 16,  // and on the new side
    HAS_CR = 32,       // a line of it ends in CR
    CUT = 64,          // the diff's last line end is missing within it
    CHANGES = 128,     // it holds more than context
    NEW_LAST = 256,    // its last line on the new side is an added one
    BEHIND = 512,      // its header states old lines and it has none: before or behind the stated line, nobody knows
};

struct Hunk {
    uint32_t header;       // line of the diff, from 0, as the two below
    uint32_t first, last;  // its body, `last` not included
    uint32_t tail;         // where lines end that follow the body and read as prose, but may belong to it; 0: none
    uint32_t stated;       // old line as stated
    uint32_t old_lines, added;
    uint32_t flags;
};

enum Fault : int {
    FINE = 0,
    BAD_HEADER,      // begins with @@ and is no hunk header
    NO_LINES,        // a hunk without lines
    ONLY_CONTEXT,    // a hunk that changes nothing
    HALF_HEADER,     // --- without +++ or the other way round
    STRANGE_LINE,    // a line without a sign, and the body goes on behind it
    EARLY_MARKER,    // a no-newline marker before the first line
    LATE_LINE,       // a line of a side that a marker has ended
};

// How the text from a line on ends.
enum Ending : int {
    AT_PART,   // at the next part of the diff
    AT_END,    // at the end of the diff
    AT_HUNK,   // at a line that only a hunk has
};

struct Reader {
    Lines lines;
    uint32_t fault_line = 0;

    uint32_t count() const { return lines.count(); }

    bool sign(uint32_t line, char* mark) const {
        Bytes text = lines[line];
        if (text.size == 0 || (text.size == 1 && text.at[0] == '\r')) {
            *mark = 'E';
            return true;
        }
        *mark = text.at[0];
        return *mark == ' ' || *mark == '+' || *mark == '-' || *mark == '\\';
    }

    bool starts(uint32_t line, const char* with) const {
        return line < count() && begins(lines[line], with, static_cast<uint32_t>(strlen(with)));
    }

    bool pair(uint32_t line) const { return starts(line, "--- ") && starts(line + 1, "+++ "); }

    bool half(uint32_t line) const {
        if (starts(line, "--- ")) return !starts(line + 1, "+++ ");
        return starts(line, "+++ ") && !(line > 0 && starts(line - 1, "--- "));
    }

    // A mail's end as git writes it: dashes and a blank, which may be lost, then git's version.
    bool signature(uint32_t line) const {
        if (line + 1 >= count()) return false;
        Bytes dashes = without_cr(lines[line]), version = lines[line + 1];
        if (!(begins(dashes, "--") && (dashes.size == 2 || (dashes.size == 3 && dashes.at[2] == ' ')))) return false;
        uint32_t at = 0;
        while (at < version.size && version.at[at] >= '0' && version.at[at] <= '9') at++;
        return at > 0 && at + 1 < version.size && version.at[at] == '.' && version.at[at + 1] >= '0' &&
               version.at[at + 1] <= '9';
    }

    bool any_of(uint32_t line, std::initializer_list<const char*> beginnings) const {
        return std::any_of(beginnings.begin(), beginnings.end(), [&](const char* with) { return starts(line, with); });
    }

    // Whether a line says something in a git header.
    bool extended(uint32_t line) const {
        return any_of(line, {"old mode ", "new mode ", "deleted file mode ", "new file mode ", "rename from ", "rename to ",
                             "copy from ", "copy to ", "rename old ", "rename new ", "index "});
    }

    bool fence(uint32_t line) const { return starts(line, "```") || starts(line, "~~~"); }

    // `From ` or `commit ` and a full object id: the first line of a mail as git writes it, or of a commit in its log.
    bool mail(uint32_t line) const {
        bool from = starts(line, "From ");
        if (!from && !starts(line, "commit ")) return false;
        Bytes text = without_cr(lines[line]);
        uint32_t first = from ? 5 : 7, at = first;
        while (at < text.size && ((text.at[at] >= '0' && text.at[at] <= '9') || (text.at[at] >= 'a' && text.at[at] <= 'f')))
            at++;
        bool full = at - first == 40 || at - first == 64;
        return full && (at < text.size ? text.at[at] == ' ' : !from);
    }

    // Whether the next part begins here, or the mail that it comes in.
    bool part(uint32_t line) const { return starts(line, "diff --git ") || pair(line) || mail(line); }

    bool well_formed(uint32_t line) const {
        Hunk hunk{};
        uint32_t old_count, new_count;
        return header(line, &hunk, &old_count, &new_count);
    }

    // Whether a line that begins with `-` or `+` reads as prose: an item of a list, a rule, half a file header, `-- `
    // before a name that is signed with.
    bool prose(uint32_t line) const {
        Bytes text = without_cr(lines[line]);
        if (text.size < 3) return false;
        if (text.at[1] == ' ') return text.at[2] != ' ' && text.at[2] != '\t';
        return half(line) || same(text, {"-- ", 3}) || std::all_of(text.at, text.at + text.size, [](char c) { return c == '-' || c == '+'; });
    }

    // The last answer is kept, which holds for all lines up to that ending: asking for each line in turn stays linear.
    Ending ending(uint32_t line) {
        if (ending_from_ <= line && line <= ending_at_) return ending_;
        ending_from_ = line;
        for (ending_at_ = line; ending_at_ < count(); ending_at_++) {
            if (part(ending_at_) || signature(ending_at_)) return ending_ = AT_PART;
            char mark = lines[ending_at_].size ? lines[ending_at_].at[0] : 0;
            bool only_in_hunks = mark == '\\' || ((mark == '-' || mark == '+') && !prose(ending_at_)) ||
                                 (starts(ending_at_, "@@") && well_formed(ending_at_));
            if (only_in_hunks) return ending_ = AT_HUNK;
        }
        return ending_ = AT_END;
    }

    // Whether a line that begins with @@ is a sentence and not a hunk header gone wrong: neither a file header stands
    // before it nor lines of a hunk after it, and the next part follows.
    bool sentence(uint32_t line) {
        char mark;
        if (well_formed(line) || (line >= 2 && pair(line - 2))) return false;
        if (line + 1 < count() && sign(line + 1, &mark) && mark != 'E' && !part(line + 1)) return false;
        return ending(line + 1) == AT_PART;
    }

    // Whether signed lines that come after an empty line, after a body whose counts are used up, are prose: a list, rules
    // of dashes or a diff that is quoted with two blanks before it. `end` is where they end.
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

    Kind kind(uint32_t line, bool in_header) {
        Bytes text = lines[line];
        if (text.size < 2) return TEXT;
        switch (text.at[0]) {
            case '@':
                return text.at[1] == '@' && !sentence(line) ? HUNK : TEXT;
            case '-':
            case '+':
                return pair(line) ? PAIR : half(line) ? HALF : TEXT;
            case 'd':
                if (starts(line, "diff --git ")) return GIT;
                break;
            case 'F':
                return mail(line) ? MAIL : TEXT;
            case 'c':
                if (mail(line)) return MAIL;
                break;
            case 'G':
                return same(without_cr(text), {"GIT binary patch", 16}) ? BINARY : TEXT;
            case 'B': {
                Bytes bare = without_cr(text);
                bool ends = bare.size > 20 && memcmp(bare.at + bare.size - 7, " differ", 7) == 0;
                return ends && begins(bare, "Binary files ") ? DIFFER : TEXT;
            }
        }
        return in_header && extended(line) ? EXTENDED : TEXT;
    }

    // The first line from `line` on that is more than text. Halves of headers are left out where nobody asks for them.
    uint32_t next(uint32_t line, bool in_header, bool halves, Kind* found) {
        for (; line < count(); line++) {
            *found = kind(line, in_header);
            if (*found != TEXT && (*found != HALF || halves)) return line;
        }
        *found = END;
        return line;
    }

    static bool number(const char** at, const char* end, uint32_t* value) {
        const char* from = *at;
        uint64_t sum = 0;
        while (*at < end && **at >= '0' && **at <= '9' && sum < 1000000000) sum = sum * 10 + (*(*at)++ - '0');
        *value = static_cast<uint32_t>(sum);
        return *at > from && sum < 1000000000 && !(*at < end && **at >= '0' && **at <= '9');
    }

    static bool range(const char** at, const char* end, char mark, uint32_t* start, uint32_t* lines_of) {
        if (*at >= end || *(*at)++ != mark || !number(at, end, start)) return false;
        *lines_of = 1;
        if (*at < end && **at == ',') {
            (*at)++;
            return number(at, end, lines_of);
        }
        return true;
    }

    bool header(uint32_t line, Hunk* hunk, uint32_t* old_count, uint32_t* new_count) const {
        Bytes text = without_cr(lines[line]);
        const char *at = text.at + 2, *end = text.at + text.size;
        if (begins(text, "@@ @@") || begins(text, "@@ ... @@")) return true;
        while (end > at && (end[-1] == ' ' || end[-1] == '\t')) end--;
        if (at == end) return true;
        uint32_t new_start;
        if (*at++ != ' ' || !range(&at, end, '-', &hunk->stated, old_count)) return false;
        if (at >= end || *at++ != ' ' || !range(&at, end, '+', &new_start, new_count)) return false;
        if (end - at < 3 || memcmp(at, " @@", 3) != 0) return false;
        hunk->flags |= NUMBERED;
        return true;
    }

    // Whether a part begins here as programs write one: names, and a line that follows them in a diff.
    bool whole_part(uint32_t line) const {
        if (pair(line)) return starts(line + 2, "@@");
        return starts(line, "diff --git ") && (extended(line + 1) || starts(line + 1, "--- ") || starts(line + 1, "similarity index "));
    }

    // Where the message of the mail that begins at `line` ends: after the last line of three dashes before its first
    // part. All of it is text, hunk headers too. Without such a line it is the first line alone.
    uint32_t message_end(uint32_t line) const {
        uint32_t end = line + 1;
        bool cr;
        for (line++; line < count() && !mail(line) && !whole_part(line); line++)
            if (same(without_blanks(lines[line], &cr), {"---", 3})) end = line + 1;
        return end;
    }

    // The end of a body by its counts; 0 where they cannot be right.
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

    // Whether a line without a sign is one that programs put between the diffs of two files.
    bool between_files(uint32_t line) const {
        return any_of(line, {"diff ", "Index: ", "=====", "Only in ", "commit ", "Common sub"});
    }

    // Whether a line without a sign is context that lost its blank, rather than text behind the body: a context line
    // follows, or the counts, less the lines before it, come out even with it and the lines behind it.
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

    // The end of a body whose counts say nothing.
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

    // Reads the hunk whose header is `line`. `fault_line` is the line that a fault is about.
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

    // Reads hunks from `line` on, with text between them, until something else comes: `line` is then there.
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

  private:
    uint32_t ending_from_ = 1, ending_at_ = 0;
    Ending ending_ = AT_END;
};

}  // namespace udiff
