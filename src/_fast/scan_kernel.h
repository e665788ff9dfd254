/* The search for one string, included once for each kind of Lane, inside that kind's namespace.
 *
 * A position stays when the string's two rarest bytes are at their places; four lanes are asked before any is looked at.
 */

inline size_t pair(const Needles &set, const uint8_t *data, size_t from, size_t size, size_t *length) noexcept {
    const Needle &needle = set.all[0];
    if (size < needle.size()) return NONE;
    const size_t last = size - needle.size();
    const auto rare = Lane::all(needle.text[set.rarest]), rare_mask = Lane::all(needle.mask[set.rarest]);
    const auto next = Lane::all(needle.text[set.second]), next_mask = Lane::all(needle.mask[set.second]);
    const uint8_t *one = data + set.rarest, *two = data + set.second;
    for (size_t at = from; at <= last; at += 4 * Lane::width) {
        typename Lane::Bytes found[4];
        for (size_t lane = 0; lane < 4; lane++) {
            const size_t here = at + lane * Lane::width;
            found[lane] = Lane::both(Lane::equal(Lane::either(Lane::load(one + here), rare_mask), rare),
                                     Lane::equal(Lane::either(Lane::load(two + here), next_mask), next));
        }
        if (Lane::mask(Lane::either(Lane::either(found[0], found[1]), Lane::either(found[2], found[3]))) == 0) continue;
        for (size_t lane = 0; lane < 4; lane++) {
            for (uint32_t bits = Lane::mask(found[lane]); bits; bits &= bits - 1) {
                const size_t place = at + lane * Lane::width + static_cast<size_t>(__builtin_ctz(bits));
                if (place > last) return NONE;
                if (needle.fits(data + place)) {
                    *length = needle.size();
                    return place;
                }
            }
        }
    }
    return NONE;
}
