// Applying the hunks of one part to a file: finding their places and writing the result.
#pragma once

#include "udiff_choose.h"

namespace udiff {

class Placer {
  public:
    Placer(const DiffReader& reader, const std::vector<Hunk>& hunks, uint64_t key)
        : matcher_(reader, hunks, key), chooser_(&matcher_), file(matcher_.file), spots(chooser_.spots),
          refusal(chooser_.refusal) {}

    Placer(const Placer&) = delete;
    Placer& operator=(const Placer&) = delete;

  private:
    Matcher matcher_;
    Chooser chooser_;

  public:
    LineTable& file;  // to be indexed before `place`
    std::vector<Spot>& spots;
    Refusal& refusal;

    // Finds a place in `file` for every hunk. Returns false where `refusal` says why there is none.
    bool place() {
        matcher_.compare_line_ends();
        return chooser_.choose();
    }

    // Writes the file with all hunks applied, and returns its size; a null `out` only counts.
    uint64_t write(char* out) {
        uint64_t used = 0;
        uint32_t line = 0;
        bool open = false;  // what is written so far ends without a line end
        auto put = [&](const char* from, size_t size) {
            if (out != nullptr && size) memcpy(out + used, from, size);
            used += size;
        };
        auto put_end = [&](bool crlf) { put(crlf ? "\r\n" : "\n", crlf ? 2 : 1); };
        auto keep = [&](uint32_t to) {
            if (to <= line) return;
            put(file.data + file.starts[line], file.starts[to] - file.starts[line]);
            line = to;
            open = line == file.count() && !file.ended();
        };
        for (size_t at = 0; at < matcher_.hunks.size(); at++) {
            const Hunk& hunk = matcher_.hunks[at];
            Spot& spot = spots[at];
            keep(spot.place);
            bool to_end = spot.place + hunk.old_lines == file.count() && !file.ended();
            if (to_end && !(hunk.flags & OLD_UNENDED)) spot.notes |= NO_END;
            bool unended = (hunk.flags & NEW_LAST) && ((hunk.flags & NEW_UNENDED) || (spot.notes & NO_END));
            uint32_t left = hunk.added, upto = line;
            for (uint32_t body = hunk.first; body < hunk.last; body++) {
                char mark;
                matcher_.reader.sign(body, &mark);
                if (mark == '\\') continue;
                if (mark != '+') {
                    if (mark == '-') {
                        keep(upto);
                        line++;
                    }
                    upto++;
                    continue;
                }
                keep(upto);
                if (open) put_end(file.crlf);
                Bytes text = matcher_.reader.lines[body];
                put(text.at + 1, text.size - 1);
                open = --left == 0 && unended;
                if (!open) put_end(matcher_.lf_for_crlf);
            }
            keep(upto);
        }
        keep(file.count());
        return used;
    }
};

}  // namespace udiff
