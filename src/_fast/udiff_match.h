// All places of a file where the hunks of one part fit. Nothing is chosen here.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "udiff_read.h"

namespace udiff {

enum Misfit : int {
    PLACED = 0,
    NOWHERE,       // the old lines are nowhere in the file
    OUT_OF_ORDER,  // they fit only before an earlier hunk, after a later one or over one
    SEVERAL,       // they fit in several places and no rule selects one
    BLANKS,        // they fit exactly elsewhere, and at the stated line but for blanks
    NO_LINE,       // no old lines, and no usable line after which the new ones go
    TOO_MUCH,      // more candidates than MAX_LOOKS
    GOES_ON,       // the lines after its body read as prose, but the file has them there too
};

constexpr uint32_t NONE = UINT32_MAX;
constexpr size_t LISTED = 10;
// Limits on the candidates looked at and the places kept, after which a part is refused. Diffs of real files stay below
// a hundredth of these.
constexpr size_t MAX_LOOKS = 100000000, MAX_KEPT = 16000000;

// Why the hunks are not applied, and what the error says about it.
struct Refusal {
    Misfit misfit = PLACED;
    uint32_t hunk = 0;
    std::vector<uint32_t> places;  // lines of the file, from 0, at most LISTED
    size_t count = 0;              // number of all such places
    uint32_t expected = NONE;      // the line of the diff that differs at the stated line
    uint32_t found = NONE;         // the line of the file there; the number of its lines where the file ends before
    uint32_t absent = NONE;        // a line of the diff that is nowhere in the file

    // Returns false, so that callers can return the result.
    bool refuse(Misfit what, size_t number) {
        misfit = what;
        hunk = static_cast<uint32_t>(number);
        return false;
    }

    void list(const uint32_t* from, const uint32_t* to) {
        count = static_cast<size_t>(to - from);
        places.assign(from, from + std::min(count, LISTED));
    }
};

// Calls `each(text, line of the diff)` for the old lines of a hunk until it returns false.
template <typename Each>
inline bool old_lines(const DiffReader& reader, const Hunk& hunk, bool cr_for_lost, Each each) {
    for (uint32_t line = hunk.first; line < hunk.last; line++) {
        char mark;
        reader.sign(line, &mark);
        if (mark == '+' || mark == '\\') continue;
        Bytes text = reader.lines[line];
        if (mark != 'E') {
            text.at++;
            text.size--;
        } else if (cr_for_lost) {
            text = {"\r", 1};  // the line lost its CR with its blank
        }
        if (!each(text, line)) return false;
    }
    return true;
}

// Polynomial hashes of runs of line ids, modulo the prime 2^61 - 1, from prefix sums.
class Sums {
  public:
    explicit Sums(uint64_t key) : base_((key >> 4) % PRIME | 1) {}

    uint64_t add(uint64_t sum, uint32_t name) const { return reduced(times(sum, base_) + name + 1); }

    void power_up(size_t most) {
        while (powers_.size() <= most) powers_.push_back(powers_.empty() ? 1 : times(powers_.back(), base_));
    }

    // The hash of the `length` ids that were added between two prefix sums.
    uint64_t between(uint64_t before, uint64_t after, size_t length) const {
        return reduced(after + PRIME - times(before, powers_[length]));
    }

  private:
    static constexpr uint64_t PRIME = (1ull << 61) - 1;
    static uint64_t reduced(uint64_t sum) {
        sum = (sum & PRIME) + (sum >> 61);
        return sum >= PRIME ? sum - PRIME : sum;
    }
    static uint64_t times(uint64_t a, uint64_t b) {
        unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
        return reduced(static_cast<uint64_t>(product & PRIME) + static_cast<uint64_t>(product >> 61));
    }
    uint64_t base_;
    std::vector<uint64_t> powers_;
};

// The file and the old lines of all hunks as line ids, and the lines of the file at which each id occurs.
struct Occurrences {
    LineIds ids;
    Sums sums;
    std::vector<uint32_t> wanted;     // ids of old lines, hunk after hunk
    std::vector<uint32_t> of_hunk;    // where in `wanted` each hunk begins
    std::vector<uint32_t> ends_at;     // by id: where its places end in `places`; they begin where those of the id before end
    std::vector<uint32_t> places;
    std::vector<uint64_t> prefix;     // prefix sums of the file's ids

    Occurrences(uint64_t key, bool aside) : ids(key, aside), sums(key) {}

    uint32_t often(uint32_t name) const { return ends_at[name] - ends_at[name - 1]; }
};

class Matcher {
  public:
    // The places where the old lines of a hunk fit, in file order. Hunks with the same old lines share one.
    struct Fits {
        const uint32_t* begin;
        const uint32_t* end;
        bool aside;  // they fit only with blanks set aside

        bool has(uint32_t place) const { return std::binary_search(begin, end, place); }
    };

    Matcher(const DiffReader& diff, const std::vector<Hunk>& hunks, uint64_t key)
        : reader(diff), hunks(hunks), key_(key) {}

    const DiffReader& reader;
    const std::vector<Hunk>& hunks;
    LineTable file;
    std::vector<Fits> fits;  // of each hunk, after find_fits
    size_t looks = 0;        // candidates looked at so far
    bool lf_for_crlf = false;  // LF in the diff stands for the file's CRLF
    bool lost_cr = false;      // an empty context line that lost its blank lost its CR too

    // Decides which line ends the diff means. Call it once `file` is set, before the methods below.
    void compare_line_ends() {
        bool cr = std::any_of(hunks.begin(), hunks.end(), [](const Hunk& hunk) { return (hunk.flags & HAS_CR) != 0; });
        lf_for_crlf = file.crlf && !cr;
        lost_cr = file.crlf && cr;
    }

    Bytes file_line(uint32_t line) const {
        Bytes text = file[line];
        bool has_end = line + 1 < file.count() || file.ended();
        return lf_for_crlf && has_end ? without_cr(text) : text;
    }

    static bool same_but_blanks(Bytes a, Bytes b) {
        bool a_cr, b_cr;
        Bytes a_bare = without_blanks(a, &a_cr), b_bare = without_blanks(b, &b_cr);
        return a_cr == b_cr && same(a_bare, b_bare);
    }

    bool end_fits(const Hunk& hunk, uint32_t place) const {
        if (!(hunk.flags & (OLD_UNENDED | NEW_UNENDED))) return true;
        return place + hunk.old_lines == file.count() && !((hunk.flags & OLD_UNENDED) && file.ended());
    }

    bool fits_at(const Hunk& hunk, uint64_t place, bool aside) const {
        if (place + hunk.old_lines > file.count() || !end_fits(hunk, static_cast<uint32_t>(place))) return false;
        uint32_t line = static_cast<uint32_t>(place);
        return old_lines(reader, hunk, lost_cr, [&](Bytes text, uint32_t) {
            Bytes there = file_line(line++);
            return aside ? same_but_blanks(text, there) : same(text, there);
        });
    }

    // Returns the place that a stated line means, NONE where it means none.
    static uint32_t place_of(const Hunk& hunk, int64_t stated) {
        int64_t place = stated - (hunk.old_lines > 0);
        return place < 0 || place >= NONE ? NONE : static_cast<uint32_t>(place);
    }

    static int64_t line_of(const Hunk& hunk, uint32_t place) { return static_cast<int64_t>(place) + (hunk.old_lines > 0); }

    // Whether the header says where the hunk goes. If the hunk has no old lines, the header must state none either.
    bool has_line(const Hunk& hunk) const {
        return (hunk.flags & NUMBERED) && (!(hunk.flags & BEHIND) || file.count() == 0);
    }

    // Fills `fits`. Returns false where the hunks are refused.
    bool find_fits(Refusal* refusal) {
        Occurrences exact(key_, false);
        build(&exact);
        std::unordered_map<uint64_t, size_t> known;
        std::vector<Kept> kept;
        std::vector<size_t> of_hunk(hunks.size());
        for (uint32_t at = 0; at < hunks.size(); at++) {
            const Hunk& hunk = hunks[at];
            const uint32_t* wanted = exact.wanted.data() + exact.of_hunk[at];
            uint32_t marks = hunk.flags & (OLD_UNENDED | NEW_UNENDED);
            uint64_t sum = hunk.old_lines;
            for (uint32_t line = 0; line < hunk.old_lines; line++) sum = folded(sum ^ wanted[line], key_ | 1);
            auto [entry, fresh] = known.try_emplace(folded(sum ^ marks, key_ | 1), kept.size());
            if (!fresh) {
                const Hunk& other = hunks[kept[entry->second].hunk];
                const uint32_t* others = exact.wanted.data() + exact.of_hunk[kept[entry->second].hunk];
                if (other.old_lines == hunk.old_lines && (other.flags & (OLD_UNENDED | NEW_UNENDED)) == marks &&
                    std::equal(wanted, wanted + hunk.old_lines, others)) {
                    of_hunk[at] = entry->second;
                    continue;
                }
            }
            of_hunk[at] = kept.size();
            size_t from = kept_.size();
            bool aside = false;
            if (hunk.old_lines == 0) {
                if ((hunk.flags & NEW_UNENDED) || file.count() == 0) kept_.push_back(file.count());
            } else {
                if (!look(exact, at, &kept_)) return refusal->refuse(TOO_MUCH, at);
                if (kept_.size() == from) {
                    aside = true;
                    if (loose_.empty()) {
                        loose_.emplace_back(key_, true);
                        build(&loose_.back());
                    }
                    if (!look(loose_.back(), at, &kept_)) return refusal->refuse(TOO_MUCH, at);
                }
                if (kept_.size() == from) {
                    differs(at, loose_.back(), refusal);
                    return refusal->refuse(NOWHERE, at);
                }
            }
            kept.push_back({from, kept_.size(), at, aside});
        }
        for (size_t place : of_hunk)
            fits.push_back({kept_.data() + kept[place].from, kept_.data() + kept[place].to, kept[place].aside});
        return true;
    }

    // Appends to `out` the places where a hunk fits with blanks set aside, none if no hunk needs that. Returns false for
    // too many candidates.
    bool look_loosely(uint32_t at, std::vector<uint32_t>* out) { return loose_.empty() || look(loose_.back(), at, out); }

  private:
    struct Kept {
        size_t from, to;
        uint32_t hunk;
        bool aside;
    };

    uint64_t key_;
    std::vector<uint32_t> kept_;
    std::vector<Occurrences> loose_;  // empty, or one with blanks set aside: built once a hunk fits exactly nowhere

    void build(Occurrences* index) const {
        size_t total = 0;
        uint32_t most = 0;
        for (const Hunk& hunk : hunks) {
            total += hunk.old_lines;
            most = std::max(most, hunk.old_lines);
        }
        index->wanted.reserve(total);
        for (const Hunk& hunk : hunks) {
            index->of_hunk.push_back(static_cast<uint32_t>(index->wanted.size()));
            old_lines(reader, hunk, lost_cr, [&](Bytes text, uint32_t) {
                index->wanted.push_back(index->ids.add(text));
                return true;
            });
        }
        index->sums.power_up(most);
        std::vector<uint32_t> named(file.count());
        index->ends_at.assign(index->ids.count() + 1, 0);
        index->prefix.reserve(file.count() + 1);
        index->prefix.push_back(0);
        for (uint32_t line = 0; line < file.count(); line++) {
            named[line] = index->ids.find(file_line(line));
            index->ends_at[named[line]]++;
            index->prefix.push_back(index->sums.add(index->prefix.back(), named[line]));
        }
        // the counts become the starts of runs in `places`, and filling these in moves each start to the end of its run
        uint32_t sum = 0;
        index->ends_at[0] = 0;
        for (uint32_t name = 1; name < index->ends_at.size(); name++) {
            uint32_t count = index->ends_at[name];
            index->ends_at[name] = sum;
            sum += count;
        }
        index->places.resize(sum);
        for (uint32_t line = 0; line < file.count(); line++)
            if (named[line]) index->places[index->ends_at[named[line]]++] = line;
    }

    // Appends to `out` all places where a hunk fits. Returns false for too many candidates.
    bool look(const Occurrences& index, uint32_t at, std::vector<uint32_t>* out) {
        const Hunk& hunk = hunks[at];
        uint32_t length = hunk.old_lines;
        if (length > file.count()) return true;
        const uint32_t* wanted = index.wanted.data() + index.of_hunk[at];
        uint64_t sum = 0;
        uint32_t rarest = 0;
        for (uint32_t line = 0; line < length; line++) {
            sum = index.sums.add(sum, wanted[line]);
            if (index.often(wanted[line]) < index.often(wanted[rarest])) rarest = line;
        }
        auto check = [&](uint32_t place) {
            if (index.sums.between(index.prefix[place], index.prefix[place + length], length) == sum)
                out->push_back(place);
        };
        if (hunk.flags & (OLD_UNENDED | NEW_UNENDED)) {
            if (end_fits(hunk, file.count() - length)) check(file.count() - length);
            return true;
        }
        const uint32_t* from = index.places.data() + index.ends_at[wanted[rarest] - 1];
        const uint32_t* to = index.places.data() + index.ends_at[wanted[rarest]];
        looks += static_cast<size_t>(to - from);
        if (looks > MAX_LOOKS) return false;
        for (; from < to; from++)
            if (*from >= rarest && *from - rarest + length <= file.count()) check(*from - rarest);
        return out->size() <= MAX_KEPT;
    }

    // Finds what differs at the stated line of a hunk that fits nowhere, and a line of it that is nowhere in the file.
    void differs(uint32_t at, const Occurrences& loose, Refusal* refusal) const {
        const Hunk& hunk = hunks[at];
        uint32_t place = place_of(hunk, hunk.stated);
        if ((hunk.flags & NUMBERED) && place != NONE) {
            uint32_t line = std::min(place, file.count());
            refusal->found = line;
            old_lines(reader, hunk, lost_cr, [&](Bytes text, uint32_t body) {
                refusal->expected = body;
                refusal->found = line;
                return line < file.count() && same_but_blanks(text, file_line(line++));
            });
        }
        uint32_t number = loose.of_hunk[at];
        old_lines(reader, hunk, lost_cr, [&](Bytes, uint32_t body) {
            if (loose.often(loose.wanted[number++])) return true;
            refusal->absent = body;
            return false;
        });
    }
};

}  // namespace udiff
