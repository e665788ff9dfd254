/* Differences between two texts by lines: Myers' algorithm in linear space, and the hunks of a unified diff.
 *
 * E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986: both ends of a box are searched for the middle
 * of a shortest path, and the halves are boxes again. A search that has cost too much takes the furthest point reached
 * so far instead, so texts with little in common take time in proportion to their size, and the result is still right,
 * though not the shortest. Nothing here calls Python or takes the GIL.
 */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace diff {

/* The least cost at which a search is given up; it grows with the square root of a box. */
constexpr int64_t LEAST_COST = 256;
/* Steps of all searches together after which each is given up early, and after which what is left counts as changed. */
constexpr int64_t MANY_STEPS = 20000000, MOST_STEPS = 60000000;
constexpr int64_t EARLY_COST = 16;

struct Side {
    std::vector<std::string_view> lines;  /* with their ends */
    std::vector<uint32_t> ids;            /* equal lines have equal ids */
    std::vector<uint8_t> changed;         /* a 0 more at the end */
    std::vector<uint32_t> kept;           /* the lines that the other side has, too */
};

inline void split(std::string_view text, Side *side) {
    while (!text.empty()) {
        const size_t end = text.find('\n');
        const size_t size = end == std::string_view::npos ? text.size() : end + 1;
        side->lines.push_back(text.substr(0, size));
        text.remove_prefix(size);
    }
    side->ids.resize(side->lines.size());
    side->changed.assign(side->lines.size() + 1, 0);
}

class Comparison {
public:
    Comparison(std::string_view old_text, std::string_view new_text) {
        split(old_text, &old_);
        split(new_text, &new_);
        number_lines();
        keep_common();
        const size_t n = old_.kept.size(), m = new_.kept.size();
        const size_t diagonals = n + m + 3;
        forward_.resize(diagonals);
        backward_.resize(diagonals);
        most_ = LEAST_COST;
        while (most_ * most_ < static_cast<int64_t>(diagonals)) most_ *= 2;
        compare(0, n, 0, m);
        slide(&old_, new_);
        slide(&new_, old_);
    }

    size_t additions() const noexcept { return static_cast<size_t>(std::count(new_.changed.begin(), new_.changed.end(), 1)); }
    size_t deletions() const noexcept { return static_cast<size_t>(std::count(old_.changed.begin(), old_.changed.end(), 1)); }

    /* Write hunks until `out` has at least `most` bytes. */
    void write(size_t context, size_t most, std::string *out) const {
        size_t i = 0, k = 0;
        const size_t n = old_.lines.size(), m = new_.lines.size();
        while ((i < n || k < m) && out->size() < most) {
            while (i < n && k < m && !old_.changed[i] && !new_.changed[k]) i++, k++;
            if (i == n && k == m) break;
            const size_t before = std::min({context, i, k});
            const size_t first = i - before, other = k - before;
            size_t last = i, last_new = k, same = 0;
            while (i < n || k < m) {
                if (old_.changed[i] || new_.changed[k]) {
                    while (old_.changed[i]) i++;
                    while (new_.changed[k]) k++;
                    last = i;
                    last_new = k;
                    same = 0;
                } else {
                    if (++same > 2 * context) break;
                    i++, k++;
                }
            }
            const size_t after = std::min(context, n - last);
            hunk(first, last + after, other, last_new + after, most, out);
            i = last + after;
            k = last_new + after;
        }
    }

private:
    void number_lines() {
        std::unordered_map<std::string_view, uint32_t> known;
        known.reserve(old_.lines.size() + new_.lines.size());
        for (Side *side : {&old_, &new_}) {
            for (size_t i = 0; i < side->lines.size(); i++) {
                side->ids[i] = known.emplace(side->lines[i], static_cast<uint32_t>(known.size())).first->second;
            }
        }
        distinct_ = known.size();
    }

    /* Leave equal lines at both ends out of the search, and mark lines as changed that the other side does not have. */
    void keep_common() {
        size_t start = 0, n = old_.ids.size(), m = new_.ids.size();
        while (start < n && start < m && old_.ids[start] == new_.ids[start]) start++;
        while (n > start && m > start && old_.ids[n - 1] == new_.ids[m - 1]) n--, m--;
        std::vector<uint8_t> in_old(distinct_), in_new(distinct_);
        for (size_t i = start; i < n; i++) in_old[old_.ids[i]] = 1;
        for (size_t i = start; i < m; i++) in_new[new_.ids[i]] = 1;
        keep(&old_, start, n, in_new);
        keep(&new_, start, m, in_old);
    }

    static void keep(Side *side, size_t start, size_t end, const std::vector<uint8_t> &in_other) {
        for (size_t i = start; i < end; i++) {
            if (in_other[side->ids[i]]) {
                side->kept.push_back(static_cast<uint32_t>(i));
            } else {
                side->changed[i] = 1;
            }
        }
    }

    uint32_t old_id(int64_t i) const noexcept { return old_.ids[old_.kept[static_cast<size_t>(i)]]; }
    uint32_t new_id(int64_t i) const noexcept { return new_.ids[new_.kept[static_cast<size_t>(i)]]; }

    /* Mark what differs in a box; the second half of each is the loop's, the first is put on a stack of its own. */
    void compare(size_t from, size_t to, size_t other_from, size_t other_to) {
        struct Box {
            int64_t x0, x1, y0, y1;
        };
        std::vector<Box> todo{Box{static_cast<int64_t>(from), static_cast<int64_t>(to), static_cast<int64_t>(other_from),
                                  static_cast<int64_t>(other_to)}};
        while (!todo.empty()) {
            Box box = todo.back();
            todo.pop_back();
            while (box.x0 < box.x1 && box.y0 < box.y1 && old_id(box.x0) == new_id(box.y0)) box.x0++, box.y0++;
            while (box.x0 < box.x1 && box.y0 < box.y1 && old_id(box.x1 - 1) == new_id(box.y1 - 1)) box.x1--, box.y1--;
            if (box.x0 == box.x1) {
                for (int64_t y = box.y0; y < box.y1; y++) new_.changed[new_.kept[static_cast<size_t>(y)]] = 1;
            } else if (box.y0 == box.y1) {
                for (int64_t x = box.x0; x < box.x1; x++) old_.changed[old_.kept[static_cast<size_t>(x)]] = 1;
            } else if (steps_ > MOST_STEPS) {
                for (int64_t x = box.x0; x < box.x1; x++) old_.changed[old_.kept[static_cast<size_t>(x)]] = 1;
                for (int64_t y = box.y0; y < box.y1; y++) new_.changed[new_.kept[static_cast<size_t>(y)]] = 1;
            } else {
                int64_t x, y;
                middle(box.x0, box.x1, box.y0, box.y1, &x, &y);
                todo.push_back(Box{box.x0, x, box.y0, y});
                todo.push_back(Box{x, box.x1, y, box.y1});
            }
        }
    }

    /* Find a point that a shortest path through a box goes through, or a good one where that costs too much. Diagonals
     * are x - y; each has the furthest x reached from the start and from the end. */
    void middle(int64_t x0, int64_t x1, int64_t y0, int64_t y1, int64_t *x, int64_t *y) noexcept {
        const int64_t offset = static_cast<int64_t>(new_.kept.size()) + 1;
        int64_t *const forward = forward_.data() + offset, *const backward = backward_.data() + offset;
        const int64_t least = x0 - y1, greatest = x1 - y0, start = x0 - y0, end = x1 - y1;
        int64_t forward_low = start, forward_high = start, backward_low = end, backward_high = end;
        const bool odd = ((start - end) & 1) != 0;
        forward[start] = x0;
        backward[end] = x1;
        for (int64_t cost = 1;; cost++) {
            widen(forward, least, greatest, &forward_low, &forward_high, -1);
            for (int64_t d = forward_high; d >= forward_low; d -= 2) {
                int64_t at = std::max(forward[d - 1] + 1, forward[d + 1]);
                while (at < x1 && at - d < y1 && old_id(at) == new_id(at - d)) at++;
                forward[d] = at;
                if (odd && backward_low <= d && d <= backward_high && backward[d] <= at) {
                    *x = at;
                    *y = at - d;
                    return;
                }
            }
            widen(backward, least, greatest, &backward_low, &backward_high, INT64_MAX);
            for (int64_t d = backward_high; d >= backward_low; d -= 2) {
                int64_t at = std::min(backward[d - 1], backward[d + 1] == INT64_MAX ? INT64_MAX : backward[d + 1] - 1);
                while (at > x0 && at - d > y0 && old_id(at - 1) == new_id(at - d - 1)) at--;
                backward[d] = at;
                if (!odd && forward_low <= d && d <= forward_high && at <= forward[d]) {
                    *x = at;
                    *y = at - d;
                    return;
                }
            }
            steps_ += forward_high - forward_low + backward_high - backward_low + 4;
            if (cost >= (steps_ > MANY_STEPS ? EARLY_COST : most_)) {
                furthest(x0, x1, y0, y1, forward_low, forward_high, backward_low, backward_high, x, y);
                return;
            }
        }
    }

    /* Take one more diagonal on either side, or one less where the box ends. */
    static void widen(int64_t *reached, int64_t least, int64_t greatest, int64_t *low, int64_t *high, int64_t nowhere) noexcept {
        if (*low > least) {
            reached[--*low - 1] = nowhere;
        } else {
            ++*low;
        }
        if (*high < greatest) {
            reached[++*high + 1] = nowhere;
        } else {
            --*high;
        }
    }

    /* The point furthest from either end that a search has reached. */
    void furthest(int64_t x0, int64_t x1, int64_t y0, int64_t y1, int64_t forward_low, int64_t forward_high,
                  int64_t backward_low, int64_t backward_high, int64_t *x, int64_t *y) const noexcept {
        const int64_t offset = static_cast<int64_t>(new_.kept.size()) + 1;
        const int64_t *const forward = forward_.data() + offset, *const backward = backward_.data() + offset;
        int64_t best = -1, best_back = INT64_MAX, back_x = x1, back_y = y1;
        for (int64_t d = forward_high; d >= forward_low; d -= 2) {
            int64_t at = std::min(forward[d], x1), other = at - d;
            if (other > y1) other = y1, at = y1 + d;
            if (at + other > best) best = at + other, *x = at, *y = other;
        }
        for (int64_t d = backward_high; d >= backward_low; d -= 2) {
            int64_t at = std::max(backward[d], x0), other = at - d;
            if (other < y0) other = y0, at = y0 + d;
            if (at + other < best_back) best_back = at + other, back_x = at, back_y = other;
        }
        if (x1 + y1 - best_back >= best - (x0 + y0)) *x = back_x, *y = back_y;
    }

    /* Move each group of changed lines as far down as it says the same, where git shows it, too. */
    static void slide(Side *side, const Side &other) {
        const size_t n = side->lines.size();
        size_t k = 0;  /* the line of the other side that stands beside the end of a group */
        for (size_t i = 0; i < n;) {
            if (!side->changed[i]) {
                while (other.changed[k]) k++;
                i++, k++;
                continue;
            }
            size_t start = i, end = i;
            while (end < n && side->changed[end]) end++;
            while (end < n && side->ids[start] == side->ids[end] && !other.changed[k]) {
                side->changed[start++] = 0;
                side->changed[end++] = 1;
                k++;
                while (end < n && side->changed[end]) end++;
            }
            i = end;
        }
    }

    void hunk(size_t first, size_t last, size_t other, size_t other_last, size_t most, std::string *out) const {
        char head[128];
        const int size = std::snprintf(head, sizeof head, "@@ -%s +%s @@\n", range(first, last - first).c_str(),
                                       range(other, other_last - other).c_str());
        out->append(head, static_cast<size_t>(size));
        size_t i = first, k = other;
        while ((i < last || k < other_last) && out->size() < most) {
            if (i < last && old_.changed[i]) {
                line('-', old_.lines[i++], out);
            } else if (k < other_last && new_.changed[k]) {
                line('+', new_.lines[k++], out);
            } else {
                line(' ', old_.lines[i++], out);
                k++;
            }
        }
    }

    static std::string range(size_t first, size_t count) {
        const std::string start = std::to_string(count ? first + 1 : first);
        return count == 1 ? start : start + ',' + std::to_string(count);
    }

    static void line(char sign, std::string_view text, std::string *out) {
        out->push_back(sign);
        out->append(text);
        if (text.back() != '\n') out->append("\n\\ No newline at end of file\n");
    }

    Side old_, new_;
    size_t distinct_ = 0;
    std::vector<int64_t> forward_, backward_;
    int64_t most_ = 0, steps_ = 0;
};

struct Result {
    size_t additions, deletions;
    std::string hunks;
};

/* 0, or -2 where memory runs out. `most` 0: no hunks are written. */
inline int compare(const char *old_text, size_t n, const char *new_text, size_t m, size_t context, size_t most,
                   Result *result) noexcept {
    try {
        const Comparison comparison(std::string_view(old_text, n), std::string_view(new_text, m));
        result->additions = comparison.additions();
        result->deletions = comparison.deletions();
        if (most) comparison.write(context, most, &result->hunks);
    } catch (...) {
        return -2;
    }
    return 0;
}

}  // namespace diff
