// Placing the hunks of one part in a file and writing the result (specification, section 4).
#pragma once

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "udiff_read.h"

namespace udiff {

enum Misfit : int {
    PLACED = 0,
    NOWHERE,       // the old lines are nowhere in the file
    OUT_OF_ORDER,  // they are, but only before an earlier hunk, behind a later one or over one
    SEVERAL,       // several places fit and nothing decides
    BLANKS,        // exact elsewhere only, and at the stated line but for blanks
    NO_LINE,       // no old lines and no usable line to put the new ones behind
    TOO_MUCH,      // more candidates than are looked at
    GOES_ON,       // the lines that read as prose after its body are those of the file there
};

enum Note : uint32_t { MOVED = 1, BLANKS_ASIDE = 2, NO_END = 4 };

constexpr uint32_t NONE = UINT32_MAX;
constexpr size_t LISTED = 10;
// How many candidates are looked at and how many found places are kept before a part is given up. Real diffs of real
// files stay below a hundredth of these.
constexpr size_t MAX_LOOKS = 100000000, MAX_KEPT = 16000000;

// Where a hunk lies: its first line in the file, from 0; for one without old lines, how many lines stand before it.
struct Spot {
    uint32_t place = NONE;
    uint32_t notes = 0;
};

struct Refusal {
    Misfit misfit = PLACED;
    uint32_t hunk = 0;
    std::vector<uint32_t> places;  // as in Spot, at most LISTED
    size_t count = 0;              // of all of them
    uint32_t expected = NONE;      // the line of the diff that differs at the stated line
    uint32_t found = NONE;         // the line of the file there; its number of lines: past its end
    uint32_t absent = NONE;        // a line of the diff that is nowhere in the file
};

// Calls `each(text, line of the diff)` for the old lines of a hunk until it answers false.
template <typename Each>
inline bool old_lines(const Reader& reader, const Hunk& hunk, bool cr_for_lost, Each each) {
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

// Sums over runs of line names that can be compared instead of the runs, modulo the prime 2^61 - 1.
class Sums {
  public:
    explicit Sums(uint64_t key) : base_((key >> 4) % PRIME | 1) {}

    uint64_t add(uint64_t sum, uint32_t name) const { return reduced(times(sum, base_) + name + 1); }

    void power_up(size_t most) {
        while (powers_.size() <= most) powers_.push_back(powers_.empty() ? 1 : times(powers_.back(), base_));
    }

    // The sum of what was added between two sums, `length` names apart.
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

// The file and the old lines of all hunks as names, and where in the file each name stands.
struct Index {
    Names names;
    Sums sums;
    std::vector<uint32_t> wanted;     // names of old lines, hunk after hunk
    std::vector<uint32_t> of_hunk;    // where in `wanted` each hunk begins
    std::vector<uint32_t> behind;     // by name: where its places end in `places`; they begin where the last name's end
    std::vector<uint32_t> places;
    std::vector<uint64_t> prefix;     // sums of the file's names up to each line

    Index(uint64_t key, bool aside) : names(key, aside), sums(key) {}

    uint32_t often(uint32_t name) const { return behind[name] - behind[name - 1]; }
};

class Placer {
  public:
    Placer(const Reader& reader, const std::vector<Hunk>& hunks, uint64_t key)
        : reader_(reader), hunks_(hunks), key_(key) {}

    std::vector<Spot> spots;
    Refusal refusal;
    Lines file;

    // Finds a place in `file` for every hunk; false: `refusal` says why not.
    bool place() {
        bool cr = false;
        for (const Hunk& hunk : hunks_) cr |= (hunk.flags & HAS_CR) != 0;
        lf_for_crlf_ = file.crlf && !cr;
        lost_cr_ = file.crlf && cr;
        spots.assign(hunks_.size(), Spot());
        return (all_as_stated() || search()) && ends_as_counted();
    }

    // Writes the file with all hunks in it, or only counts its bytes where `out` is null.
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
        for (size_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            Spot& spot = spots[at];
            keep(spot.place);
            bool to_end = spot.place + hunk.old_lines == file.count() && !file.ended();
            if (to_end && !(hunk.flags & OLD_UNENDED)) spot.notes |= NO_END;
            bool unended = (hunk.flags & NEW_LAST) && ((hunk.flags & NEW_UNENDED) || (spot.notes & NO_END));
            uint32_t left = hunk.added, upto = line;
            for (uint32_t body = hunk.first; body < hunk.last; body++) {
                char mark;
                reader_.sign(body, &mark);
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
                Bytes text = reader_.lines[body];
                put(text.at + 1, text.size - 1);
                open = --left == 0 && unended;
                if (!open) put_end(lf_for_crlf_);
            }
            keep(upto);
        }
        keep(file.count());
        return used;
    }

  private:
    // The places where a run of old lines fits, in file order. Hunks with the same old lines share one.
    struct Fits {
        const uint32_t* begin;
        const uint32_t* end;
        bool aside;  // only with blanks set aside

        bool has(uint32_t place) const { return std::binary_search(begin, end, place); }
    };
    struct Kept {
        size_t from, to;
        uint32_t hunk;
        bool aside;
    };

    const Reader& reader_;
    const std::vector<Hunk>& hunks_;
    uint64_t key_;
    bool lf_for_crlf_ = false, lost_cr_ = false;
    size_t looks_ = 0;
    std::vector<uint32_t> kept_;
    std::vector<Index> loose_;  // none, or one with blanks set aside, made when a hunk fits exactly nowhere
    std::vector<Fits> fits_;
    std::vector<uint32_t> latest_;
    std::vector<uint32_t> most_before_, least_behind_;  // stated lines, to tell whether they contradict the order

    Bytes file_line(uint32_t line) const {
        Bytes text = file[line];
        bool has_end = line + 1 < file.count() || file.ended();
        return lf_for_crlf_ && has_end ? without_cr(text) : text;
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
        return old_lines(reader_, hunk, lost_cr_, [&](Bytes text, uint32_t) {
            Bytes there = file_line(line++);
            return aside ? same_but_blanks(text, there) : same(text, there);
        });
    }

    // The place that a stated line means; NONE where there is none.
    static uint32_t place_of(const Hunk& hunk, int64_t stated) {
        int64_t place = stated - (hunk.old_lines > 0);
        return place < 0 || place >= NONE ? NONE : static_cast<uint32_t>(place);
    }

    static int64_t line_of(const Hunk& hunk, uint32_t place) { return static_cast<int64_t>(place) + (hunk.old_lines > 0); }

    // Whether its header says where a hunk goes; one without old lines goes behind a line only where it states none.
    bool has_line(const Hunk& hunk) const {
        return (hunk.flags & NUMBERED) && (!(hunk.flags & BEHIND) || file.count() == 0);
    }

    bool all_as_stated() {
        uint32_t end = 0;
        for (size_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            uint32_t place = place_of(hunk, hunk.stated);
            if (!has_line(hunk) || place == NONE || place < end || !fits_at(hunk, place, false)) return false;
            spots[at].place = place;
            end = place + hunk.old_lines;
        }
        return true;
    }

    // ------------------------------------------------------------------------------------------ where hunks fit

    void build(Index* index) const {
        size_t total = 0;
        uint32_t most = 0;
        for (const Hunk& hunk : hunks_) {
            total += hunk.old_lines;
            most = std::max(most, hunk.old_lines);
        }
        index->wanted.reserve(total);
        for (const Hunk& hunk : hunks_) {
            index->of_hunk.push_back(static_cast<uint32_t>(index->wanted.size()));
            old_lines(reader_, hunk, lost_cr_, [&](Bytes text, uint32_t) {
                index->wanted.push_back(index->names.add(text));
                return true;
            });
        }
        index->sums.power_up(most);
        std::vector<uint32_t> named(file.count());
        index->behind.assign(index->names.count() + 1, 0);
        index->prefix.reserve(file.count() + 1);
        index->prefix.push_back(0);
        for (uint32_t line = 0; line < file.count(); line++) {
            named[line] = index->names.find(file_line(line));
            index->behind[named[line]]++;
            index->prefix.push_back(index->sums.add(index->prefix.back(), named[line]));
        }
        // counts become beginnings, and filling in the places makes ends of them
        uint32_t sum = 0;
        index->behind[0] = 0;
        for (uint32_t name = 1; name < index->behind.size(); name++) {
            uint32_t count = index->behind[name];
            index->behind[name] = sum;
            sum += count;
        }
        index->places.resize(sum);
        for (uint32_t line = 0; line < file.count(); line++)
            if (named[line]) index->places[index->behind[named[line]]++] = line;
    }

    // Appends to `out` all places where a hunk fits; false: too many candidates.
    bool look(const Index& index, uint32_t at, std::vector<uint32_t>* out) {
        const Hunk& hunk = hunks_[at];
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
        const uint32_t* from = index.places.data() + index.behind[wanted[rarest] - 1];
        const uint32_t* to = index.places.data() + index.behind[wanted[rarest]];
        looks_ += static_cast<size_t>(to - from);
        if (looks_ > MAX_LOOKS) return false;
        for (; from < to; from++)
            if (*from >= rarest && *from - rarest + length <= file.count()) check(*from - rarest);
        return out->size() <= MAX_KEPT;
    }

    bool refuse(Misfit misfit, size_t hunk) {
        refusal.misfit = misfit;
        refusal.hunk = static_cast<uint32_t>(hunk);
        return false;
    }

    void list(const uint32_t* from, const uint32_t* to) {
        refusal.count = static_cast<size_t>(to - from);
        refusal.places.assign(from, from + std::min(refusal.count, LISTED));
    }

    // Fills `fits_`; false: refused.
    bool find_fits() {
        Index exact(key_, false);
        build(&exact);
        std::unordered_map<uint64_t, size_t> known;
        std::vector<Kept> kept;
        std::vector<size_t> of_hunk(hunks_.size());
        for (uint32_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            const uint32_t* wanted = exact.wanted.data() + exact.of_hunk[at];
            uint32_t marks = hunk.flags & (OLD_UNENDED | NEW_UNENDED);
            uint64_t sum = hunk.old_lines;
            for (uint32_t line = 0; line < hunk.old_lines; line++) sum = folded(sum ^ wanted[line], key_ | 1);
            auto [entry, fresh] = known.try_emplace(folded(sum ^ marks, key_ | 1), kept.size());
            if (!fresh) {
                const Hunk& other = hunks_[kept[entry->second].hunk];
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
                if (!look(exact, at, &kept_)) return refuse(TOO_MUCH, at);
                if (kept_.size() == from) {
                    aside = true;
                    if (loose_.empty()) {
                        loose_.emplace_back(key_, true);
                        build(&loose_.back());
                    }
                    if (!look(loose_.back(), at, &kept_)) return refuse(TOO_MUCH, at);
                }
                if (kept_.size() == from) {
                    differs(at, loose_.back());
                    return refuse(NOWHERE, at);
                }
            }
            kept.push_back({from, kept_.size(), at, aside});
        }
        for (size_t place : of_hunk)
            fits_.push_back({kept_.data() + kept[place].from, kept_.data() + kept[place].to, kept[place].aside});
        return true;
    }

    // Says for a hunk that fits nowhere what differs at its stated line, and which of its lines is nowhere at all.
    void differs(uint32_t at, const Index& loose) {
        const Hunk& hunk = hunks_[at];
        uint32_t place = place_of(hunk, hunk.stated);
        if ((hunk.flags & NUMBERED) && place != NONE) {
            uint32_t line = std::min(place, file.count());
            refusal.found = line;
            old_lines(reader_, hunk, lost_cr_, [&](Bytes text, uint32_t body) {
                refusal.expected = body;
                refusal.found = line;
                return line < file.count() && same_but_blanks(text, file_line(line++));
            });
        }
        uint32_t number = loose.of_hunk[at];
        old_lines(reader_, hunk, lost_cr_, [&](Bytes, uint32_t body) {
            if (loose.often(loose.wanted[number++])) return true;
            refusal.absent = body;
            return false;
        });
    }

    // --------------------------------------------------------------------------------------- choosing among places

    // Computes for each hunk the latest place that leaves room for those behind it; false: refused.
    bool chain() {
        uint32_t limit = file.count();
        latest_.assign(hunks_.size(), 0);
        for (size_t at = hunks_.size(); at-- > 0;) {
            const Hunk& hunk = hunks_[at];
            if (spots[at].place != NONE) {
                limit = latest_[at] = spots[at].place;
            } else if (hunk.old_lines == 0 && fits_[at].begin == fits_[at].end) {
                latest_[at] = limit;
            } else {
                if (limit < hunk.old_lines) return no_room();
                const uint32_t* behind = std::upper_bound(fits_[at].begin, fits_[at].end, limit - hunk.old_lines);
                if (behind == fits_[at].begin) return no_room();
                limit = latest_[at] = behind[-1];
            }
        }
        return true;
    }

    // Names the first hunk that finds no room behind those before it.
    bool no_room() {
        uint32_t low = 0;
        for (size_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            const Fits& fits = fits_[at];
            if (spots[at].place != NONE) {
                low = spots[at].place;
            } else if (fits.begin != fits.end) {
                const uint32_t* first = std::lower_bound(fits.begin, fits.end, low);
                if (first == fits.end) {
                    list(fits.begin, fits.end);
                    return refuse(OUT_OF_ORDER, at);
                }
                low = *first;
            }
            low += hunk.old_lines;
        }
        return refuse(OUT_OF_ORDER, hunks_.size() - 1);
    }

    void note_stated() {
        uint32_t most = 0, least = NONE;
        most_before_.assign(hunks_.size(), 0);
        least_behind_.assign(hunks_.size(), NONE);
        for (size_t at = 0; at < hunks_.size(); at++) {
            most_before_[at] = most;
            if (hunks_[at].flags & NUMBERED) most = std::max(most, hunks_[at].stated);
        }
        for (size_t at = hunks_.size(); at-- > 0;) {
            least_behind_[at] = least;
            if (hunks_[at].flags & NUMBERED) least = std::min(least, hunks_[at].stated);
        }
    }

    // Puts a hunk at a place, unless its stated line speaks against it; `low`: where the hunk before it ends.
    bool settle(size_t at, uint32_t place, uint32_t low) {
        const Hunk& hunk = hunks_[at];
        const Fits& fits = fits_[at];
        uint32_t stated = place_of(hunk, hunk.stated);
        if ((hunk.flags & NUMBERED) && hunk.old_lines && stated != place && stated != NONE) {
            bool exact = !fits.aside && fits.has(stated);
            if (blanks_differ(at, stated, low)) return blanks(at, stated, place);
            bool out_of_range = stated < low || stated > latest_[at];
            if (exact && out_of_range && (most_before_[at] > hunk.stated || least_behind_[at] < hunk.stated)) {
                list(&stated, &stated + 1);
                return refuse(OUT_OF_ORDER, at);
            }
        }
        spots[at].place = place;
        bool moved = (hunk.flags & NUMBERED) && line_of(hunk, place) != hunk.stated && file.count();
        spots[at].notes = (moved ? MOVED : 0u) | (fits.aside ? BLANKS_ASIDE : 0u);
        return true;
    }

    // Whether a hunk that fits exactly elsewhere fits at its stated line but for blanks.
    bool blanks_differ(size_t at, uint32_t stated, uint32_t low) const {
        const Fits& fits = fits_[at];
        return (hunks_[at].flags & NUMBERED) && !fits.aside && stated != NONE && stated >= low && !fits.has(stated) &&
               fits_at(hunks_[at], stated, true);
    }

    bool blanks(size_t at, uint32_t but_for_blanks, uint32_t exact) {
        uint32_t both[2] = {std::min(but_for_blanks, exact), std::max(but_for_blanks, exact)};
        list(both, both + 2);
        return refuse(BLANKS, at);
    }

    bool may_be(size_t at, uint32_t place, uint32_t low) const {
        if (place == NONE || place < low || place > latest_[at]) return false;
        return hunks_[at].old_lines == 0 && fits_[at].begin == fits_[at].end ? true : fits_[at].has(place);
    }

    // Goes through the hunks once and settles those that their stated line, moved or not, or the room left decides.
    bool round(bool* progress) {
        uint32_t low = 0;
        bool known = true;  // the hunk before is settled
        int64_t shift = 0;
        for (size_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            const Fits& fits = fits_[at];
            if (spots[at].place == NONE) {
                bool free = fits.begin == fits.end;
                uint32_t earliest = free ? low : *std::lower_bound(fits.begin, fits.end, low);
                uint32_t place = NONE;
                if (!free && earliest == latest_[at] && (hunk.old_lines || file.count() == 0)) {
                    place = earliest;
                } else if (known && (hunk.flags & NUMBERED)) {
                    uint32_t moved = place_of(hunk, hunk.stated + shift), stated = place_of(hunk, hunk.stated);
                    place = may_be(at, moved, low) ? moved : may_be(at, stated, low) ? stated : NONE;
                }
                if (place == NONE) {
                    known = false;
                    low = earliest + hunk.old_lines;
                    continue;
                }
                if (!settle(at, place, low)) return false;
                *progress = true;
            }
            known = true;
            low = spots[at].place + hunk.old_lines;
            if (hunk.flags & NUMBERED) shift = line_of(hunk, spots[at].place) - hunk.stated;
        }
        return true;
    }

    // Settles the first open hunk of which one place only is moved as far as another hunk was; false: refused.
    bool follow() {
        std::unordered_set<int64_t> shifts;
        for (size_t at = 0; at < hunks_.size(); at++)
            if (spots[at].place != NONE && (hunks_[at].flags & NUMBERED))
                shifts.insert(line_of(hunks_[at], spots[at].place) - hunks_[at].stated);
        uint32_t low = 0;
        bool known = true;
        size_t open = hunks_.size();
        uint32_t open_low = 0;
        for (size_t at = 0; at < hunks_.size(); at++) {
            if (spots[at].place != NONE) {
                known = true;
                low = spots[at].place + hunks_[at].old_lines;
                continue;
            }
            if (known) {
                if (open == hunks_.size()) {
                    open = at;
                    open_low = low;
                }
                uint32_t place = followed(at, low, shifts);
                if (looks_ > MAX_LOOKS) return refuse(TOO_MUCH, at);
                if (place != NONE) return settle(at, place, low);
            }
            known = false;
        }
        const Fits& fits = fits_[open];
        const Hunk& hunk = hunks_[open];
        if (hunk.old_lines == 0) return refuse(NO_LINE, open);
        list(std::lower_bound(fits.begin, fits.end, open_low), std::upper_bound(fits.begin, fits.end, latest_[open]));
        uint32_t stated = place_of(hunk, hunk.stated);
        if (!blanks_differ(open, stated, open_low)) return refuse(SEVERAL, open);
        refusal.places.insert(std::lower_bound(refusal.places.begin(), refusal.places.end(), stated), stated);
        if (refusal.places.size() > LISTED) refusal.places.erase(refusal.places.end() - (refusal.places.back() == stated ? 2 : 1));
        refusal.count++;
        return refuse(BLANKS, open);
    }

    uint32_t followed(size_t at, uint32_t low, const std::unordered_set<int64_t>& shifts) {
        const Hunk& hunk = hunks_[at];
        if (!(hunk.flags & NUMBERED) || hunk.old_lines == 0 || shifts.empty()) return NONE;
        uint32_t only = NONE;
        for (const uint32_t* place = std::lower_bound(fits_[at].begin, fits_[at].end, low);
             place < fits_[at].end && *place <= latest_[at]; place++) {
            looks_++;
            if (!shifts.count(line_of(hunk, *place) - hunk.stated)) continue;
            if (only != NONE) return NONE;
            only = *place;
        }
        return only;
    }

    bool search() {
        spots.assign(hunks_.size(), Spot());
        for (size_t at = 0; at < hunks_.size(); at++)
            if (hunks_[at].old_lines == 0 && !has_line(hunks_[at]) && file.count()) return refuse(NO_LINE, at);
        if (!find_fits()) return false;
        note_stated();
        for (; looks_ <= MAX_LOOKS; looks_ += hunks_.size()) {
            bool progress = false;
            if (!chain() || !round(&progress)) return false;
            if (std::none_of(spots.begin(), spots.end(), [](const Spot& spot) { return spot.place == NONE; }))
                return consistent() && unambiguous() && verify();
            if (!progress && !follow()) return false;
        }
        return refuse(TOO_MUCH, 0);
    }

    // Refuses a hunk that fits in several places and lies where it is moved otherwise than the nearest hunk, before or
    // behind it, that fits in one place only, while it fits so too: then the stated lines are wrong for one of the two.
    bool consistent() {
        size_t count = hunks_.size();
        std::vector<int64_t> sure_behind(count, INT64_MAX);
        int64_t sure = INT64_MAX;
        for (size_t at = count; at-- > 0;) {
            sure_behind[at] = sure;
            if (is_sure(at)) sure = shift_of(at);
        }
        sure = INT64_MAX;
        for (size_t at = 0; at < count; at++) {
            if (is_sure(at)) {
                sure = shift_of(at);
                continue;
            }
            const Hunk& hunk = hunks_[at];
            if (!(hunk.flags & NUMBERED) || hunk.old_lines == 0) continue;
            uint32_t low = at ? spots[at - 1].place + hunks_[at - 1].old_lines : 0;
            uint32_t high = at + 1 < count ? spots[at + 1].place : file.count();
            for (int64_t shift : {sure, sure_behind[at]}) {
                if (shift == INT64_MAX || shift == shift_of(at)) continue;
                uint32_t place = place_of(hunk, hunk.stated + shift);
                if (place < low || place > high || high - place < hunk.old_lines || !fits_[at].has(place)) continue;
                uint32_t both[2] = {std::min(place, spots[at].place), std::max(place, spots[at].place)};
                list(both, both + 2);
                return refuse(SEVERAL, at);
            }
        }
        return true;
    }

    // Refuses a hunk that fits exactly, but neither at its stated line nor moved as the hunk before it, where blanks may
    // have made it fit there alone: it would be moved as the hunk before it but for blanks, or the diff has lost blanks,
    // since another hunk fits only with them set aside, and this one also fits elsewhere but for blanks.
    bool unambiguous() {
        std::vector<uint32_t> places;
        int64_t shift = 0;
        for (size_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            bool numbered = (hunk.flags & NUMBERED) != 0;
            int64_t own = numbered ? shift_of(at) : 0;
            bool expected = numbered && (own == 0 || own == shift);
            uint32_t moved = numbered ? place_of(hunk, hunk.stated + shift) : NONE;
            if (numbered) shift = own;
            if (expected || hunk.old_lines == 0 || fits_[at].aside) continue;
            uint32_t low = at ? spots[at - 1].place + hunks_[at - 1].old_lines : 0;
            uint32_t high = at + 1 < hunks_.size() ? spots[at + 1].place : file.count();
            auto outside = [&](uint32_t place) {
                return place < low || place > high || high - place < hunk.old_lines;
            };
            if (moved != NONE && !outside(moved) && !fits_[at].has(moved) && fits_at(hunk, moved, true))
                return blanks(at, moved, spots[at].place);
            if (loose_.empty()) continue;
            places.clear();
            if (!look(loose_.back(), static_cast<uint32_t>(at), &places)) return refuse(TOO_MUCH, at);
            places.erase(std::remove_if(places.begin(), places.end(), outside), places.end());
            if (places.size() < 2) continue;
            list(places.data(), places.data() + places.size());
            return refuse(BLANKS, at);
        }
        return true;
    }

    // Refuses a hunk where the lines after its body, which its counts leave out, stand in the file after it too: prose
    // that looks like lines of a hunk, or counts that are wrong, nobody knows.
    bool ends_as_counted() {
        for (size_t at = 0; at < hunks_.size(); at++) {
            Hunk tail = hunks_[at];
            if (!tail.tail) continue;
            tail.first = tail.last;
            tail.last = tail.tail;
            uint32_t line = spots[at].place + tail.old_lines;
            bool more_than_blanks = false;
            bool same_lines = old_lines(reader_, tail, lost_cr_, [&](Bytes text, uint32_t) {
                bool cr;
                more_than_blanks |= without_blanks(text, &cr).size > 0;
                return line < file.count() && same_but_blanks(text, file_line(line++));
            });
            if (same_lines && more_than_blanks) return refuse(GOES_ON, at);
        }
        return true;
    }

    bool is_sure(size_t at) const {
        return (hunks_[at].flags & NUMBERED) && hunks_[at].old_lines && fits_[at].end - fits_[at].begin == 1;
    }

    int64_t shift_of(size_t at) const { return line_of(hunks_[at], spots[at].place) - hunks_[at].stated; }

    // Sums may, if hardly ever, agree where lines do not: what is written rests on the lines alone.
    bool verify() {
        for (size_t at = 0; at < hunks_.size(); at++)
            if (!fits_at(hunks_[at], spots[at].place, fits_[at].aside)) return refuse(NOWHERE, at);
        return true;
    }
};

}  // namespace udiff
