// Chooses one place for each hunk among those where it fits, or says why none can be chosen (specification, section 4).
//
// The rules, in their order:
//
//   1. If all hunks fit exactly at their stated lines, in order, they go there (all_as_stated).
//   2. A place counts only if the hunks before and after it keep a place in order (chain). If one is left, it is taken.
//   3. The stated line moved by as much as the hunk before was moved; otherwise the stated line itself (round).
//   4. Of several places, the only one that moves the hunk by as much as another hunk of the file was moved (follow).
//   5. Otherwise the hunk is refused and its places are listed. The nearest place is never taken.
//
// Rules 2 and 3 are applied to all hunks in turn until they settle no more, then rule 4 to one hunk, and so on.
//
// A hunk is refused in spite of these rules where
//   - it fits at its stated line but for blanks, or blanks may have made it fit elsewhere (settle, unambiguous);
//   - it fits at its stated line, but the hunks are listed out of order (settle);
//   - the nearest hunk with one possible place was moved by another distance, and this one fits so too (consistent);
//   - the lines after its body may belong to it (ends_as_counted).
#pragma once

#include <unordered_set>

#include "udiff_match.h"

namespace udiff {

// What the notes say about where a hunk went.
enum Note : uint32_t { MOVED = 1, BLANKS_ASIDE = 2, NO_END = 4 };

// Where a hunk goes: its first line in the file, from 0; without old lines, the number of lines before it.
struct Spot {
    uint32_t place = NONE;
    uint32_t notes = 0;
};

class Chooser {
  public:
    explicit Chooser(Matcher* matcher) : matcher_(*matcher), hunks_(matcher->hunks) {}

    std::vector<Spot> spots;  // of each hunk
    Refusal refusal;

    // Chooses a place for every hunk. Returns false where `refusal` says why there is none.
    bool choose() {
        spots.assign(hunks_.size(), Spot());
        return (all_as_stated() || search()) && ends_as_counted();
    }

  private:
    Matcher& matcher_;
    const std::vector<Hunk>& hunks_;
    std::vector<uint32_t> latest_;                     // of each hunk, the last place that leaves room for those after it
    std::vector<uint32_t> most_before_, least_after_;  // the largest stated line before each hunk, the least after it

    bool all_as_stated() {
        uint32_t end = 0;
        for (size_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            uint32_t place = Matcher::place_of(hunk, hunk.stated);
            if (!matcher_.has_line(hunk) || place == NONE || place < end || !matcher_.fits_at(hunk, place, false)) return false;
            spots[at].place = place;
            end = place + hunk.old_lines;
        }
        return true;
    }

    bool search() {
        spots.assign(hunks_.size(), Spot());
        for (size_t at = 0; at < hunks_.size(); at++)
            if (hunks_[at].old_lines == 0 && !matcher_.has_line(hunks_[at]) && matcher_.file.count()) return refusal.refuse(NO_LINE, at);
        if (!matcher_.find_fits(&refusal)) return false;
        note_stated();
        for (; matcher_.looks <= MAX_LOOKS; matcher_.looks += hunks_.size()) {
            bool progress = false;
            if (!chain() || !round(&progress)) return false;
            if (std::none_of(spots.begin(), spots.end(), [](const Spot& spot) { return spot.place == NONE; }))
                return consistent() && unambiguous() && verify();
            if (!progress && !follow()) return false;
        }
        return refusal.refuse(TOO_MUCH, 0);
    }

    // Fills `latest_`. Returns false where a hunk has no place in order.
    bool chain() {
        uint32_t limit = matcher_.file.count();
        latest_.assign(hunks_.size(), 0);
        for (size_t at = hunks_.size(); at-- > 0;) {
            const Hunk& hunk = hunks_[at];
            if (spots[at].place != NONE) {
                limit = latest_[at] = spots[at].place;
            } else if (hunk.old_lines == 0 && matcher_.fits[at].begin == matcher_.fits[at].end) {
                latest_[at] = limit;
            } else {
                if (limit < hunk.old_lines) return no_room();
                const uint32_t* after = std::upper_bound(matcher_.fits[at].begin, matcher_.fits[at].end, limit - hunk.old_lines);
                if (after == matcher_.fits[at].begin) return no_room();
                limit = latest_[at] = after[-1];
            }
        }
        return true;
    }

    // Refuses the first hunk that has no place after those before it.
    bool no_room() {
        uint32_t low = 0;
        for (size_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            const Matcher::Fits& fits = matcher_.fits[at];
            if (spots[at].place != NONE) {
                low = spots[at].place;
            } else if (fits.begin != fits.end) {
                const uint32_t* first = std::lower_bound(fits.begin, fits.end, low);
                if (first == fits.end) {
                    refusal.list(fits.begin, fits.end);
                    return refusal.refuse(OUT_OF_ORDER, at);
                }
                low = *first;
            }
            low += hunk.old_lines;
        }
        return refusal.refuse(OUT_OF_ORDER, hunks_.size() - 1);
    }

    void note_stated() {
        uint32_t most = 0, least = NONE;
        most_before_.assign(hunks_.size(), 0);
        least_after_.assign(hunks_.size(), NONE);
        for (size_t at = 0; at < hunks_.size(); at++) {
            most_before_[at] = most;
            if (hunks_[at].flags & NUMBERED) most = std::max(most, hunks_[at].stated);
        }
        for (size_t at = hunks_.size(); at-- > 0;) {
            least_after_[at] = least;
            if (hunks_[at].flags & NUMBERED) least = std::min(least, hunks_[at].stated);
        }
    }

    // Puts a hunk at a place unless its stated line contradicts that. `low` is where the hunk before it ends.
    bool settle(size_t at, uint32_t place, uint32_t low) {
        const Hunk& hunk = hunks_[at];
        const Matcher::Fits& fits = matcher_.fits[at];
        uint32_t stated = Matcher::place_of(hunk, hunk.stated);
        if ((hunk.flags & NUMBERED) && hunk.old_lines && stated != place && stated != NONE) {
            bool exact = !fits.aside && fits.has(stated);
            if (blanks_differ(at, stated, low)) return blanks(at, stated, place);
            bool out_of_range = stated < low || stated > latest_[at];
            if (exact && out_of_range && (most_before_[at] > hunk.stated || least_after_[at] < hunk.stated)) {
                refusal.list(&stated, &stated + 1);
                return refusal.refuse(OUT_OF_ORDER, at);
            }
        }
        spots[at].place = place;
        bool moved = (hunk.flags & NUMBERED) && Matcher::line_of(hunk, place) != hunk.stated && matcher_.file.count();
        spots[at].notes = (moved ? MOVED : 0u) | (fits.aside ? BLANKS_ASIDE : 0u);
        return true;
    }

    // Whether a hunk that fits exactly elsewhere fits at its stated line but for blanks.
    bool blanks_differ(size_t at, uint32_t stated, uint32_t low) const {
        const Matcher::Fits& fits = matcher_.fits[at];
        return (hunks_[at].flags & NUMBERED) && !fits.aside && stated != NONE && stated >= low && !fits.has(stated) &&
               matcher_.fits_at(hunks_[at], stated, true);
    }

    bool blanks(size_t at, uint32_t but_for_blanks, uint32_t exact) {
        uint32_t both[2] = {std::min(but_for_blanks, exact), std::max(but_for_blanks, exact)};
        refusal.list(both, both + 2);
        return refusal.refuse(BLANKS, at);
    }

    bool may_be(size_t at, uint32_t place, uint32_t low) const {
        if (place == NONE || place < low || place > latest_[at]) return false;
        return hunks_[at].old_lines == 0 && matcher_.fits[at].begin == matcher_.fits[at].end ? true : matcher_.fits[at].has(place);
    }

    // Applies rules 2 and 3 to all hunks once. Returns false where one is refused.
    bool round(bool* progress) {
        uint32_t low = 0;
        bool known = true;  // the hunk before is settled
        int64_t shift = 0;
        for (size_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            const Matcher::Fits& fits = matcher_.fits[at];
            if (spots[at].place == NONE) {
                bool free = fits.begin == fits.end;
                uint32_t earliest = free ? low : *std::lower_bound(fits.begin, fits.end, low);
                uint32_t place = NONE;
                if (!free && earliest == latest_[at] && (hunk.old_lines || matcher_.file.count() == 0)) {
                    place = earliest;
                } else if (known && (hunk.flags & NUMBERED)) {
                    uint32_t moved = Matcher::place_of(hunk, hunk.stated + shift), stated = Matcher::place_of(hunk, hunk.stated);
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
            if (hunk.flags & NUMBERED) shift = Matcher::line_of(hunk, spots[at].place) - hunk.stated;
        }
        return true;
    }

    // Applies rule 4 to the first hunk that it settles. Returns false where there is none, and by rule 5.
    bool follow() {
        std::unordered_set<int64_t> shifts;
        for (size_t at = 0; at < hunks_.size(); at++)
            if (spots[at].place != NONE && (hunks_[at].flags & NUMBERED))
                shifts.insert(Matcher::line_of(hunks_[at], spots[at].place) - hunks_[at].stated);
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
                if (matcher_.looks > MAX_LOOKS) return refusal.refuse(TOO_MUCH, at);
                if (place != NONE) return settle(at, place, low);
            }
            known = false;
        }
        const Matcher::Fits& fits = matcher_.fits[open];
        const Hunk& hunk = hunks_[open];
        if (hunk.old_lines == 0) return refusal.refuse(NO_LINE, open);
        refusal.list(std::lower_bound(fits.begin, fits.end, open_low), std::upper_bound(fits.begin, fits.end, latest_[open]));
        uint32_t stated = Matcher::place_of(hunk, hunk.stated);
        if (!blanks_differ(open, stated, open_low)) return refusal.refuse(SEVERAL, open);
        refusal.places.insert(std::lower_bound(refusal.places.begin(), refusal.places.end(), stated), stated);
        if (refusal.places.size() > LISTED) refusal.places.erase(refusal.places.end() - (refusal.places.back() == stated ? 2 : 1));
        refusal.count++;
        return refusal.refuse(BLANKS, open);
    }

    uint32_t followed(size_t at, uint32_t low, const std::unordered_set<int64_t>& shifts) {
        const Hunk& hunk = hunks_[at];
        if (!(hunk.flags & NUMBERED) || hunk.old_lines == 0 || shifts.empty()) return NONE;
        uint32_t only = NONE;
        for (const uint32_t* place = std::lower_bound(matcher_.fits[at].begin, matcher_.fits[at].end, low);
             place < matcher_.fits[at].end && *place <= latest_[at]; place++) {
            matcher_.looks++;
            if (!shifts.count(Matcher::line_of(hunk, *place) - hunk.stated)) continue;
            if (only != NONE) return NONE;
            only = *place;
        }
        return only;
    }

    // Refuses a hunk of several places whose nearest neighbour with one place only was moved by another distance, if the
    // hunk fits when moved by that distance too: the stated line of one of the two is wrong.
    bool consistent() {
        size_t count = hunks_.size();
        std::vector<int64_t> sure_after(count, INT64_MAX);
        int64_t sure = INT64_MAX;
        for (size_t at = count; at-- > 0;) {
            sure_after[at] = sure;
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
            uint32_t high = at + 1 < count ? spots[at + 1].place : matcher_.file.count();
            for (int64_t shift : {sure, sure_after[at]}) {
                if (shift == INT64_MAX || shift == shift_of(at)) continue;
                uint32_t place = Matcher::place_of(hunk, hunk.stated + shift);
                if (place < low || place > high || high - place < hunk.old_lines || !matcher_.fits[at].has(place)) continue;
                uint32_t both[2] = {std::min(place, spots[at].place), std::max(place, spots[at].place)};
                refusal.list(both, both + 2);
                return refusal.refuse(SEVERAL, at);
            }
        }
        return true;
    }

    // Refuses a hunk that fits exactly, but neither at its stated line nor moved as the hunk before it, if blanks may be
    // the reason: but for blanks it fits where the hunk before it was moved; or the diff has lost blanks, which another
    // hunk shows, and this one fits elsewhere too but for blanks.
    bool unambiguous() {
        std::vector<uint32_t> places;
        int64_t shift = 0;
        for (size_t at = 0; at < hunks_.size(); at++) {
            const Hunk& hunk = hunks_[at];
            bool numbered = (hunk.flags & NUMBERED) != 0;
            int64_t own = numbered ? shift_of(at) : 0;
            bool expected = numbered && (own == 0 || own == shift);
            uint32_t moved = numbered ? Matcher::place_of(hunk, hunk.stated + shift) : NONE;
            if (numbered) shift = own;
            if (expected || hunk.old_lines == 0 || matcher_.fits[at].aside) continue;
            uint32_t low = at ? spots[at - 1].place + hunks_[at - 1].old_lines : 0;
            uint32_t high = at + 1 < hunks_.size() ? spots[at + 1].place : matcher_.file.count();
            auto outside = [&](uint32_t place) {
                return place < low || place > high || high - place < hunk.old_lines;
            };
            if (moved != NONE && !outside(moved) && !matcher_.fits[at].has(moved) && matcher_.fits_at(hunk, moved, true))
                return blanks(at, moved, spots[at].place);
            places.clear();
            if (!matcher_.look_loosely(static_cast<uint32_t>(at), &places)) return refusal.refuse(TOO_MUCH, at);
            places.erase(std::remove_if(places.begin(), places.end(), outside), places.end());
            if (places.size() < 2) continue;
            refusal.list(places.data(), places.data() + places.size());
            return refusal.refuse(BLANKS, at);
        }
        return true;
    }

    // Refuses a hunk if the file has the lines that follow its body, though its counts leave them out: they are prose, or
    // the counts are wrong.
    bool ends_as_counted() {
        for (size_t at = 0; at < hunks_.size(); at++) {
            Hunk tail = hunks_[at];
            if (!tail.tail) continue;
            tail.first = tail.last;
            tail.last = tail.tail;
            uint32_t line = spots[at].place + tail.old_lines;
            bool more_than_blanks = false;
            bool same_lines = old_lines(matcher_.reader, tail, matcher_.lost_cr, [&](Bytes text, uint32_t) {
                bool cr;
                more_than_blanks |= without_blanks(text, &cr).size > 0;
                return line < matcher_.file.count() && Matcher::same_but_blanks(text, matcher_.file_line(line++));
            });
            if (same_lines && more_than_blanks) return refusal.refuse(GOES_ON, at);
        }
        return true;
    }

    bool is_sure(size_t at) const {
        return (hunks_[at].flags & NUMBERED) && hunks_[at].old_lines && matcher_.fits[at].end - matcher_.fits[at].begin == 1;
    }

    int64_t shift_of(size_t at) const { return Matcher::line_of(hunks_[at], spots[at].place) - hunks_[at].stated; }

    // Compares the lines themselves: hashes may collide.
    bool verify() {
        for (size_t at = 0; at < hunks_.size(); at++)
            if (!matcher_.fits_at(hunks_[at], spots[at].place, matcher_.fits[at].aside)) return refusal.refuse(NOWHERE, at);
        return true;
    }
};

}  // namespace udiff
