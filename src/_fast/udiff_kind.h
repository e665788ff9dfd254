// What the lines of a unified diff outside of hunks are: headers, hunk headers or text (specification, section 4).
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
    BEHIND = 512,      // its header states old lines and it has none, so it may go before or after the stated line
};

struct Hunk {
    uint32_t header;       // line of the diff, from 0, as the two below
    uint32_t first, last;  // its body, `last` not included
    uint32_t tail;         // where the lines end that follow the body and read as prose, but may belong to it; 0 without
    uint32_t stated;       // old line as stated
    uint32_t old_lines, added;
    uint32_t flags;
};

// How the text from a line on ends.
enum Ending : int {
    AT_PART,   // at the next part of the diff
    AT_END,    // at the end of the diff
    AT_HUNK,   // at a line that only a hunk has
};

class DiffLines {
  public:
    LineTable lines;

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

    // Whether a mail ends here as git writes it: two dashes and a blank, which may be lost, then git's version.
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

    // Whether a line has a meaning in a git header.
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

    // Whether a line that begins with `-` or `+` reads as prose: an item of a list, a rule, half a file header, or `-- `
    // before a signature.
    bool prose(uint32_t line) const {
        Bytes text = without_cr(lines[line]);
        if (text.size < 3) return false;
        if (text.at[1] == ' ') return text.at[2] != ' ' && text.at[2] != '\t';
        return half(line) || same(text, {"-- ", 3}) || std::all_of(text.at, text.at + text.size, [](char c) { return c == '-' || c == '+'; });
    }

    // Returns how the text from `line` on ends. The result is kept for all lines up to that end, so that asking for each
    // line in turn takes linear time.
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

    // Whether a line that begins with @@ is a sentence and not a malformed hunk header: no file header comes directly
    // before it, no line of a hunk after it, and another part follows.
    bool sentence(uint32_t line) {
        char mark;
        if (well_formed(line) || (line >= 2 && pair(line - 2))) return false;
        if (line + 1 < count() && sign(line + 1, &mark) && mark != 'E' && !part(line + 1)) return false;
        return ending(line + 1) == AT_PART;
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

    // Returns the first line from `line` on that is not text; halves of headers only if `halves`.
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

    // Whether a part begins here with names and a line that follows them in diffs which programs write.
    bool whole_part(uint32_t line) const {
        if (pair(line)) return starts(line + 2, "@@");
        return starts(line, "diff --git ") && (extended(line + 1) || starts(line + 1, "--- ") || starts(line + 1, "similarity index "));
    }

    // Returns the line after the message of the mail that begins at `line`. The message is text, hunk headers included, up
    // to the last line of three dashes before the first part of the mail; without such a line it is the first line alone.
    uint32_t message_end(uint32_t line) const {
        uint32_t end = line + 1;
        bool cr;
        for (line++; line < count() && !mail(line) && !whole_part(line); line++)
            if (same(without_blanks(lines[line], &cr), {"---", 3})) end = line + 1;
        return end;
    }

  private:
    uint32_t ending_from_ = 1, ending_at_ = 0;
    Ending ending_ = AT_END;
};

}  // namespace udiff
