"""One walk of a tree, shared by several threads: directories and runs of files in path order."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport ENOMEM, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

import os

from toolserver._fast.git_index cimport Tracked, tracked_below, tracked_file
from toolserver._fast.globs cimport Glob, glob_match, glob_may_match, glob_may_match_below
from toolserver._fast.ignore cimport (
    EVERY_KIND,
    BaseRules,
    rules_enter,
    rules_ignored,
    rules_release,
    rules_retain,
    rules_t,
)
from toolserver._fast.lines cimport release as release_text
from toolserver._fast.walk cimport (
    DIRECTORY,
    END,
    FILE,
    FOUND,
    LINK,
    TURN,
    WAIT,
    Ancestor,
    Ancestors,
    Entry,
    Listing,
    Opened,
    dir_t,
    flag,
    found_t,
    item_t,
    raise_flag,
    ticks,
    walk_t,
    walker_t,
)

cdef extern from "<time.h>" nogil:
    ctypedef struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec* out)
    enum:
        CLOCK_MONOTONIC

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_condattr_t:
        pass
    ctypedef struct pthread_mutexattr_t:
        pass
    enum:
        PTHREAD_MUTEX_ADAPTIVE_NP
    int pthread_mutexattr_init(pthread_mutexattr_t* attributes)
    int pthread_mutexattr_settype(pthread_mutexattr_t* attributes, int kind)
    int pthread_mutexattr_destroy(pthread_mutexattr_t* attributes)
    int pthread_mutex_init(pthread_mutex_t* lock, pthread_mutexattr_t* attributes)
    int pthread_mutex_lock(pthread_mutex_t* lock)
    int pthread_mutex_unlock(pthread_mutex_t* lock)
    int pthread_mutex_destroy(pthread_mutex_t* lock)
    int pthread_cond_init(pthread_cond_t* condition, pthread_condattr_t* attributes)
    int pthread_cond_broadcast(pthread_cond_t* condition)
    int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* lock, timespec* until)
    int pthread_cond_destroy(pthread_cond_t* condition)
    int pthread_condattr_init(pthread_condattr_t* attributes)
    int pthread_condattr_setclock(pthread_condattr_t* attributes, int clock)
    int pthread_condattr_destroy(pthread_condattr_t* attributes)

cdef extern from "<unistd.h>" nogil:
    int close(int fd)

cdef extern from "names.h" namespace "names" nogil:
    bint is_git(const char* name, size_t size) noexcept
    bint is_kd(const char* name, size_t size) noexcept
    bint is_agents(const char* name, size_t size) noexcept

cdef extern from "walk.h" namespace "walk" nogil:
    void discard(Listing* listing) noexcept
    int list_names "walk::list"(int directory, bint ordered, Listing* listing) noexcept
    const int DIRECTORY_FLAGS
    int open_directory(int root, const char* path, size_t size, int flags, Opened* opened) noexcept
    int open_target(
        int root, const char* above, size_t above_size, int from_, size_t skip, int directory, const char* path,
        const char* name, Opened* opened
    ) noexcept
    bint shortage(int error) noexcept
    void retain(long* count) noexcept
    bint release_one "walk::release"(long* count) noexcept

cdef extern from "ancestors.h" namespace "walk" nogil:
    int open_deep(Ancestors* ancestors, int root, const char* path, size_t size) noexcept
    int close_ancestors(Ancestors* ancestors, int root) noexcept
    void discard_ancestors "walk::discard"(Ancestors* ancestors) noexcept
    Ancestor nearest(const Ancestors* ancestors, int level) noexcept
    enum:
        LEVELS

cdef enum:
    # Kinds and states of an item.
    UNREAD = 1
    RUN = 2
    PENDING = 1
    RUNNING = 2
    DONE = 3
    # What holds in a directory: rules; only tracked files count, since it is ignored; no rule at all.
    RULED = 1
    TRACKED = 2
    FREE = 3

cdef int64_t LOOKS = 16
# Files between two looks at the clock.
cdef long NAP_NS = 2000000
# How long a walker without work sleeps before it lets go of its thread.


# ------------------------------------------------------------------------------------------------- directories, items


cdef dir_t* dir_new(const dir_t* parent, const char* name, size_t size, rules_t* rules, int state) noexcept nogil:
    """Make the directory `name` below `parent` (NULL: `name` is a path); it holds on to `rules`. NULL: no memory."""
    cdef size_t above = parent.size + 1 if parent != NULL and parent.size else 0
    cdef dir_t* made
    if above + size > <size_t>0x7fffffff:
        return NULL
    made = <dir_t*>malloc(sizeof(dir_t) + above + size + 1)
    if made == NULL:
        return NULL
    made.refs = 1
    made.state = state
    made.rules = rules
    rules_retain(rules)
    made.size = <uint32_t>(above + size)
    if above:
        memcpy(made.path, parent.path, above - 1)
        made.path[above - 1] = c"/"
    memcpy(&made.path[above], name, size)
    made.path[above + size] = 0
    return made


cdef void dir_release(dir_t* it) noexcept nogil:
    """Give back one reference; NULL is allowed."""
    if it != NULL and release_one(&it.refs):
        rules_release(it.rules)
        free(it)


cdef item_t* item_new(dir_t* it, uint8_t kind) noexcept nogil:
    """Make an item in no list, with a reference to its directory. NULL: no memory."""
    cdef item_t* made = <item_t*>calloc(1, sizeof(item_t))
    if made != NULL:
        made.dir = it
        retain(&it.refs)
        made.kind = kind
        made.state = PENDING
    return made


cdef void item_free(item_t* it) noexcept nogil:
    """Free an item that is in no list and that no walker has."""
    dir_release(it.dir)
    free(it.names)
    release_text(&it.rows)
    free(it)


# ------------------------------------------------------------------------------------------- the lists, under the lock


cdef void insert(walk_t* walk, item_t* it, item_t* before) noexcept nogil:
    """Put an item into the list of all, behind `before` (NULL: first)."""
    it.before = before
    it.after = walk.first if before == NULL else before.after
    if it.after == NULL:
        walk.last = it
    else:
        it.after.before = it
    if before == NULL:
        walk.first = it
    else:
        before.after = it
    it.listed = True
    walk.unfinished += 1


cdef void insert_work(walk_t* walk, item_t* it, item_t* before) noexcept nogil:
    """Put an item into the list of those that wait, behind `before` (NULL: first)."""
    it.before_work = before
    it.after_work = walk.first_work if before == NULL else before.after_work
    if it.after_work == NULL:
        walk.last_work = it
    else:
        it.after_work.before_work = it
    if before == NULL:
        walk.first_work = it
    else:
        before.after_work = it
    it.in_work = True


cdef void remove_work(walk_t* walk, item_t* it) noexcept nogil:
    """Take an item out of the list of those that wait, if it is there."""
    if not it.in_work:
        return
    it.in_work = False
    if it.before_work == NULL:
        walk.first_work = it.after_work
    else:
        it.before_work.after_work = it.after_work
    if it.after_work == NULL:
        walk.last_work = it.before_work
    else:
        it.after_work.before_work = it.before_work


cdef void remove(walk_t* walk, item_t* it) noexcept nogil:
    """Take an item out of the list of all; its results no longer count."""
    if it.before == NULL:
        walk.first = it.after
    else:
        it.before.after = it.after
    if it.after == NULL:
        walk.last = it.before
    else:
        it.after.before = it.before
    it.listed = False
    remove_work(walk, it)
    if it.state == DONE:
        walk.entries -= it.entries
        walk.weight -= it.weight
    else:
        walk.unfinished -= 1


cdef void drop_surplus(walk_t* walk) noexcept nogil:
    """Drop items from the end as long as those before them hold all that an answer takes."""
    cdef item_t* it
    cdef bint done
    while True:
        it = walk.last
        if it == NULL:
            return
        done = it.state == DONE
        if (
            walk.entries - (it.entries if done else 0) < walk.most_entries
            and walk.weight - (it.weight if done else 0) < walk.most_weight
        ):
            return
        remove(walk, it)
        if it.state == RUNNING:
            raise_flag(&it.dropped)  # whoever has it frees it
        else:
            item_free(it)


cdef void finish(walk_t* walk, item_t* it) noexcept nogil:
    """Take back an item whose work is done."""
    pthread_mutex_lock(&walk.lock)
    if not it.listed:
        item_free(it)
    elif it.entries == 0:
        remove(walk, it)
        item_free(it)
    else:
        walk.unfinished -= 1
        it.state = DONE
        free(it.names)
        it.names = NULL
        walk.entries += it.entries
        walk.weight += it.weight
        drop_surplus(walk)
    if walk.unfinished == 0:
        pthread_cond_broadcast(&walk.wake)
    pthread_mutex_unlock(&walk.lock)


cdef void walk_fail(walk_t* walk) noexcept nogil:
    """See the pxd."""
    raise_flag(&walk.failed, ENOMEM)
    raise_flag(&walk.stop)


cdef void walk_missed(walk_t* walk) noexcept nogil:
    """See the pxd."""
    cdef int error = errno
    if shortage(error):
        raise_flag(&walk.failed, error)
        raise_flag(&walk.stop)


# --------------------------------------------------------------------------------------------------- one directory


cdef bint left_out(const walk_t* walk, const dir_t* it, const Entry* entry, const char* name) noexcept nogil:
    """Tell names that no walk shows: `.git`, `.kd` directories, main's top `.agents`."""
    if name[0] != c".":
        return False
    if is_git(name, entry.size):
        return True
    if entry.kind != DIRECTORY:
        return False
    return is_kd(name, entry.size) or (walk.leave_agents and it.size == 0 and is_agents(name, entry.size))


cdef const char* below_cwd(const walk_t* walk, const dir_t* it, size_t* size) noexcept nogil:
    """Return the path of a directory relative to cwd."""
    cdef size_t skip = walk.cwd_size + 1 if walk.cwd_size else 0
    if it.size <= walk.cwd_size:
        size[0] = 0
        return it.path
    size[0] = it.size - skip
    return it.path + skip


cdef int state_of(
    const walk_t* walk, const dir_t* it, const char* name, size_t size, bint is_dir
) noexcept nogil:
    """Tell what holds for a name (below it, if it is a directory): RULED, TRACKED, FREE, or 0 when it is hidden."""
    if it.state == FREE:
        return FREE
    if it.state == RULED and not rules_ignored(it.rules, it.path, it.size, name, size, is_dir):
        return RULED
    if walk.tracked == NULL:
        return 0
    if is_dir:
        return TRACKED if tracked_below(walk.tracked, it.path, it.size, name, size) else 0
    return TRACKED if tracked_file(walk.tracked, it.path, it.size, name, size) else 0


cdef int push_rules(dir_t* it, int fd, unsigned files) noexcept nogil:
    """Add the rules of a directory's own ignore files, those that may exist, to the rules that hold in it.

    -1: a shortage, which errno tells.
    """
    cdef rules_t* made = rules_enter(it.rules, it.path, it.size, fd, files)
    if made == NULL:
        return -1
    rules_release(it.rules)
    it.rules = made
    return 0


cdef item_t* run_new(dir_t* it, const Listing* listing, size_t start, size_t stop, size_t count) noexcept nogil:
    """Make a run of `count` files, those of the entries [start, stop) that are marked (kind not 0). NULL: no memory."""
    cdef item_t* run = item_new(it, RUN)
    cdef size_t i, used = 0
    cdef const Entry* entry
    if run == NULL:
        return NULL
    for i in range(start, stop):
        entry = &listing.entries[i]
        if entry.kind == FILE or entry.kind == LINK:
            used += entry.size + 3
    run.names = <char*>malloc(used)
    if run.names == NULL:
        item_free(run)
        return NULL
    used = 0
    for i in range(start, stop):
        entry = &listing.entries[i]
        if entry.kind == FILE or entry.kind == LINK:
            run.names[used] = <char>entry.kind
            run.names[used + 1] = <char>entry.size
            memcpy(run.names + used + 2, listing.raw + entry.at, entry.size + 1)
            used += entry.size + 3
    run.end = <uint32_t>used
    run.count = <uint32_t>count
    return run


cdef bint keep(const walk_t* walk, const dir_t* it, const Listing* listing, Entry* entry) noexcept nogil:
    """Tell whether an entry belongs to the walk, and what holds for it."""
    cdef const char* name = listing.raw + entry.at
    cdef size_t size
    cdef const char* below
    if left_out(walk, it, entry, name):
        return False
    if entry.kind != DIRECTORY and walk.glob != NULL:
        if not glob_may_match(walk.glob, name, entry.size):
            return False
        below = below_cwd(walk, it, &size)
        if not glob_match(walk.glob, below, size, name, entry.size):
            return False
    entry.state = <uint8_t>state_of(walk, it, name, entry.size, entry.kind == DIRECTORY)
    return entry.state != 0


cdef item_t* child(walker_t* walker, const Entry* entry) noexcept nogil:
    """Make the item of a directory in the one that the walker has open. NULL: no memory."""
    cdef dir_t* it = walker.dir
    cdef const Listing* listing = &walker.listing
    cdef const char* name = listing.raw + entry.at
    cdef dir_t* made = dir_new(it, name, entry.size, it.rules, entry.state)
    cdef item_t* item
    if made == NULL:
        return NULL
    item = item_new(made, UNREAD)
    dir_release(made)
    return item


cdef bint worth_entering(const walk_t* walk, const item_t* it) noexcept nogil:
    """Tell whether anything below a directory can match the glob."""
    cdef size_t size
    cdef const char* below
    if walk.glob == NULL:
        return True
    below = below_cwd(walk, it.dir, &size)
    return glob_may_match_below(walk.glob, below, size) != 0


cdef size_t sift(const walk_t* walk, const dir_t* it, const Listing* listing) noexcept nogil:
    """Mark what does not belong to the walk with the kind 0; answer how many files are left."""
    cdef size_t i, files = 0
    cdef Entry* entry
    for i in range(listing.count):
        entry = &listing.entries[i]
        if not keep(walk, it, listing, entry):
            entry.kind = 0
        elif entry.kind != DIRECTORY:
            files += 1
    return files


cdef item_t* contents(walker_t* walker, bint runs, bint* failed) noexcept nogil:
    """Turn a sifted directory into items, chained in its order: directories, and with `runs` the files between them."""
    cdef walk_t* walk = walker.walk
    cdef dir_t* it = walker.dir
    cdef const Listing* listing = &walker.listing
    cdef item_t* head = NULL
    cdef item_t* tail = NULL
    cdef item_t* made
    cdef size_t i, start = 0, count = 0
    cdef Entry* entry
    cdef bint last
    for i in range(listing.count + 1):
        last = i == listing.count
        if not last:
            entry = &listing.entries[i]
            if entry.kind == 0 or (entry.kind != DIRECTORY and not runs):
                continue
        if count and (last or entry.kind == DIRECTORY or count == walk.run):
            made = run_new(it, listing, start, i, count)
            count = 0
            if made == NULL:
                failed[0] = True
                break
            if tail == NULL:
                head = made
            else:
                tail.chain = made
            tail = made
        if last:
            break
        if entry.kind != DIRECTORY:
            if count == 0:
                start = i
            count += 1
            continue
        made = child(walker, entry)
        if made == NULL:
            failed[0] = True
            break
        if not worth_entering(walk, made):
            item_free(made)
            continue
        if tail == NULL:
            head = made
        else:
            tail.chain = made
        tail = made
    return head


cdef void publish(walker_t* walker, item_t* unread, item_t* head, bint keep_runs) noexcept nogil:
    """Put what a directory holds in its place. With `keep_runs` the walker keeps the runs for itself, in `chain`."""
    cdef walk_t* walk = walker.walk
    cdef item_t* at = unread
    cdef item_t* work = unread
    cdef item_t* mine = NULL
    cdef item_t* following
    pthread_mutex_lock(&walk.lock)
    if unread.listed:
        while head != NULL:
            following = head.chain
            head.chain = NULL
            insert(walk, head, at)
            at = head
            if head.kind == RUN and keep_runs:
                head.state = RUNNING
                head.walking = True
                if mine == NULL:
                    walker.chain = head
                else:
                    mine.chain = head
                mine = head
            else:
                insert_work(walk, head, work)
                work = head
            head = following
        unread.entries = 0
        remove(walk, unread)
        if walk.idle or walk.unfinished == 0:
            pthread_cond_broadcast(&walk.wake)
    pthread_mutex_unlock(&walk.lock)
    item_free(unread)
    while head != NULL:  # the directory was dropped meanwhile
        following = head.chain
        item_free(head)
        head = following


cdef void stack(walker_t* walker, item_t* head) noexcept nogil:
    """Put a chain of items on what the walker keeps for itself."""
    cdef item_t* tail = head
    if head == NULL:
        return
    while tail.chain != NULL:
        tail = tail.chain
    tail.chain = walker.chain
    walker.chain = head


cdef void close_dir(walker_t* walker) noexcept nogil:
    """Let go of the open directory."""
    if walker.dir_fd >= 0:
        close(walker.dir_fd)
    walker.dir_fd = -1
    dir_release(walker.dir)
    walker.dir = NULL


cdef void open_dir(walker_t* walker, dir_t* it) noexcept nogil:
    """Open a directory of the walk in place of the one that is open; `dir_fd` is -1 when it cannot be."""
    if walker.dir == it:
        return
    close_dir(walker)
    walker.visits += 1
    walker.dir = it
    retain(&it.refs)
    if walker.walk.from_root:
        walker.dir_fd = open_directory(
            walker.walk.root, it.path, it.size, DIRECTORY_FLAGS, &walker.ancestors.opened
        )
    else:
        walker.dir_fd = open_deep(&walker.ancestors, walker.walk.root, it.path, it.size)
    if walker.dir_fd < 0:
        walk_missed(walker.walk)


cdef void walk_pause(walker_t* walker) noexcept nogil:
    """See the pxd."""
    cdef walk_t* walk = walker.walk
    if close_ancestors(&walker.ancestors, walk.root):
        walk_missed(walk)
    if walker.ancestors.moved:
        raise_flag(&walk.moved)
        raise_flag(&walk.stop)


cdef void read_directory(walker_t* walker, item_t* unread) noexcept nogil:
    """Read a directory and put its contents in its place: into the list, or on the walker's own stack."""
    cdef walk_t* walk = walker.walk
    cdef Listing* listing = &walker.listing
    cdef item_t* head = NULL
    cdef size_t files = 0
    cdef bint runs = False, failed = False
    open_dir(walker, unread.dir)
    if walker.dir_fd >= 0:
        if list_names(walker.dir_fd, walk.ordered, &walker.listing) or (
            unread.dir.state == RULED
            and push_rules(unread.dir, walker.dir_fd, listing.ignore_files)
        ):
            walk_missed(walk)
        else:
            files = sift(walk, unread.dir, listing)
            runs = walk.ordered or files > walk.run
            head = contents(walker, runs, &failed)
            if not runs:
                walker.names = listing.entries
                walker.names_end = listing.entries + listing.count
    if failed:
        walk_fail(walk)
    if walk.ordered:
        publish(walker, unread, head, files <= walk.run)
    else:
        stack(walker, head)
        if walker.base != unread:
            item_free(unread)


# -------------------------------------------------------------------------------------------------------- the walker


cdef void give(walk_t* walk, item_t* first) noexcept nogil:
    """Put a chain of items that a walker has kept for itself where all may take them; under the lock."""
    cdef item_t* following
    while first != NULL:
        following = first.chain
        first.chain = NULL
        if walk.ordered and not first.listed:
            item_free(first)
        else:
            first.state = PENDING
            first.walking = False
            if not first.listed:
                insert(walk, first, NULL)
            insert_work(walk, first, NULL)
        first = following


cdef item_t* half_of(item_t* head) noexcept nogil:
    """Cut a chain in two and answer the second part, what was found first: it leads to the most."""
    cdef item_t* middle = head
    cdef item_t* end = head.chain
    cdef item_t* rest
    while end != NULL and end.chain != NULL:
        middle = middle.chain
        end = end.chain.chain
    rest = middle.chain
    middle.chain = NULL
    return rest


cdef void share(walker_t* walker) noexcept nogil:
    """Give half of what this walker has left to those without work."""
    cdef walk_t* walk = walker.walk
    cdef item_t* it = walker.item
    cdef item_t* half
    cdef uint32_t cut, left
    pthread_mutex_lock(&walk.lock)
    half = walker.chain
    if half != NULL:
        if half.chain != NULL and not walk.ordered:
            half = half_of(half)
        else:
            walker.chain = half.chain
            half.chain = NULL
        give(walk, half)
    elif it != NULL and (it.listed or not walk.ordered) and it.count >= 2:
        left = it.count - it.count // 2
        half = item_new(it.dir, RUN)
        cut = it.at
        while left:
            cut += <uint8_t>it.names[cut + 1] + 3
            left -= 1
        if half != NULL:
            half.names = <char*>malloc(it.end - cut)
            if half.names == NULL:
                item_free(half)
            else:
                half.end = it.end - cut
                memcpy(half.names, it.names + cut, half.end)
                half.count = it.count // 2
                it.count -= half.count
                it.end = cut
                insert(walk, half, it if it.listed else NULL)
                insert_work(walk, half, NULL)
    pthread_cond_broadcast(&walk.wake)
    pthread_mutex_unlock(&walk.lock)


cdef void give_all(walker_t* walker) noexcept nogil:
    """Leave what this walker has kept for itself to the others, since it lets go of its thread."""
    cdef walk_t* walk = walker.walk
    cdef item_t* all_of_it = walker.chain
    if walk.ordered or all_of_it == NULL:
        return
    walker.chain = NULL
    pthread_mutex_lock(&walk.lock)
    give(walk, all_of_it)
    pthread_cond_broadcast(&walk.wake)
    pthread_mutex_unlock(&walk.lock)


cdef item_t* take(walk_t* walk) noexcept nogil:
    """Take the first item that waits; NULL when there is none now."""
    cdef item_t* it
    pthread_mutex_lock(&walk.lock)
    it = walk.first_work
    while it != NULL and it.state != PENDING:
        it = it.after_work
    if it != NULL:
        it.state = RUNNING
        it.walking = it.kind == RUN
        if it.kind == RUN or not walk.ordered:
            remove_work(walk, it)
    pthread_mutex_unlock(&walk.lock)
    return it


cdef void leave_item(walker_t* walker) noexcept nogil:
    """Be done with the names of the current run."""
    cdef item_t* it = walker.item
    walker.item = NULL
    it.walking = False
    if it.held == 0:
        finish(walker.walk, it)


cdef void walk_hold(item_t* item) noexcept nogil:
    """See the pxd."""
    item.held += 1


cdef void walk_unhold(walk_t* walk, item_t* item) noexcept nogil:
    """See the pxd."""
    item.held -= 1
    if item.held == 0 and not item.walking:
        finish(walk, item)


cdef int walk_next(walker_t* walker, found_t* out) noexcept nogil:
    """See the pxd."""
    cdef walk_t* walk = walker.walk
    cdef item_t* it
    cdef char* name
    cdef const Entry* entry
    while not flag(&walk.stop):
        walker.steps += 1
        if walker.steps >= LOOKS:
            walker.steps = 0
            if ticks() >= walker.deadline:
                give_all(walker)
                walk_pause(walker)
                return TURN
            if walk.idle and walk.first_work == NULL and walker.chain != NULL:
                share(walker)
        while walker.names != walker.names_end:
            entry = walker.names
            walker.names += 1
            if entry.kind != FILE and entry.kind != LINK:
                continue
            out.item = NULL
            out.dir = walker.dir
            out.dir_fd = walker.dir_fd
            out.kind = entry.kind
            out.size = <uint8_t>entry.size
            out.name = walker.listing.raw + entry.at
            return FOUND
        it = walker.item
        if it == NULL:
            it = walker.chain
            if it != NULL:
                walker.chain = it.chain
                it.chain = NULL
            else:
                if walker.base != NULL:
                    it = walker.base
                    walker.base = NULL
                    finish(walk, it)
                it = take(walk)
                if it == NULL:
                    close_dir(walker)
                    walk_pause(walker)
                    return END if walk.unfinished == 0 else WAIT
                walker.steps = LOOKS
                if it.kind == UNREAD and not walk.ordered:
                    walker.base = it
            if it.kind == UNREAD:
                read_directory(walker, it)
                continue
            walker.item = it
            open_dir(walker, it.dir)
        if (
            it.count == 0
            or walker.dir_fd < 0
            or flag(&it.dropped)
            or it.entries >= walk.most_entries
            or it.weight >= walk.most_weight
        ):
            leave_item(walker)
            continue
        if walk.idle and walk.first_work == NULL:
            share(walker)
            it = walker.item
        name = it.names + it.at
        it.at += <uint8_t>name[1] + 3
        it.count -= 1
        out.item = it
        out.dir = it.dir
        out.dir_fd = walker.dir_fd
        out.kind = <uint8_t>name[0]
        out.size = <uint8_t>name[1]
        out.name = name + 2
        return FOUND
    close_dir(walker)
    walk_pause(walker)
    return END


cdef void walk_wait(walker_t* walker) noexcept nogil:
    """See the pxd."""
    cdef walk_t* walk = walker.walk
    cdef timespec until
    clock_gettime(CLOCK_MONOTONIC, &until)
    until.tv_nsec += NAP_NS
    if until.tv_nsec >= 1000000000:
        until.tv_nsec -= 1000000000
        until.tv_sec += 1
    pthread_mutex_lock(&walk.lock)
    if walk.first_work == NULL and walk.unfinished and not flag(&walk.stop):
        walk.idle += 1
        pthread_cond_timedwait(&walk.wake, &walk.lock, &until)
        walk.idle -= 1
    pthread_mutex_unlock(&walk.lock)


cdef int walk_target(walker_t* walker, const found_t* found) noexcept nogil:
    """See the pxd."""
    cdef walk_t* walk = walker.walk
    cdef const dir_t* it = walker.dir
    cdef char* path = <char*>malloc(it.size + found.size + 2)
    cdef size_t used = 0
    cdef Ancestor above
    cdef int fd
    if path == NULL:
        walk_fail(walk)
        return -1
    if it.size:
        memcpy(path, it.path, it.size)
        path[it.size] = c"/"
        used = it.size + 1
    memcpy(path + used, found.name, found.size + 1)
    above = nearest(&walker.ancestors, LEVELS)
    fd = open_target(
        walk.root, walk.above, walk.above_size, above.fd if above.size else walk.root,
        above.size + 1 if above.size else 0, walker.dir_fd, path, found.name, &walker.ancestors.opened
    )
    if fd < 0:
        walk_missed(walk)
    free(path)
    return fd


# ---------------------------------------------------------------------------------------------------- the Python side


class Moved(Exception):
    """A directory was moved while the walk was below it: what was found may lie outside of the tree."""


cdef class Walk:
    """See the stub."""

    def __cinit__(
        self,
        int root,
        bytes cwd not None,
        BaseRules rules not None,
        Tracked tracked=None,
        Glob glob=None,
        *,
        bytes file=None,
        bint leave_agents=False,
        bint from_root=False,
        int width=1,
        int run=256,
        **_
    ):
        cdef int i
        cdef pthread_condattr_t attributes
        cdef pthread_mutexattr_t kind
        if width < 1 or run < 1:
            raise ValueError("width and run are at least 1")
        memset(&self.walk, 0, sizeof(self.walk))
        self.walk.root = -1
        pthread_mutexattr_init(&kind)
        pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP)  # it is held for less time than a sleep takes
        pthread_mutex_init(&self.walk.lock, &kind)
        pthread_mutexattr_destroy(&kind)
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(&self.walk.wake, &attributes)
        pthread_condattr_destroy(&attributes)
        self.walkers = <walker_t*>calloc(width, sizeof(walker_t))
        if self.walkers == NULL:
            raise MemoryError
        self.width = width
        for i in range(width):
            self.walkers[i].walk = &self.walk
            self.walkers[i].dir_fd = -1
        self._rules = rules
        self._tracked = tracked
        self._glob = glob
        if tracked is not None:
            self.walk.tracked = tracked.p
        if glob is not None:
            self.walk.glob = glob.p
        self.walk.run = run
        self.walk.leave_agents = leave_agents
        self.walk.from_root = from_root
        self.walk.ordered = True
        self.walk.cwd_size = <uint32_t>PyBytes_GET_SIZE(cwd)
        self.walk.most_entries = <size_t>-1
        self.walk.most_weight = <size_t>-1
        self.walk.root = os.dup(root)
        keep_above(&self.walk, os.readlink(b"/proc/self/fd/%d" % self.walk.root))
        if begin(&self.walk, rules.p, cwd, file):
            self.check()
            raise MemoryError

    def __dealloc__(self):
        cdef item_t* it
        cdef item_t* following
        cdef int i
        if self.walkers != NULL:
            for i in range(self.width):
                close_dir(&self.walkers[i])
                discard(&self.walkers[i].listing)
                discard_ancestors(&self.walkers[i].ancestors)
                let_go(&self.walkers[i])
        it = self.walk.first
        while it != NULL:
            following = it.after
            item_free(it)
            it = following
        free(self.walkers)
        free(self.walk.above)
        if self.walk.root >= 0:
            close(self.walk.root)
        pthread_cond_destroy(&self.walk.wake)
        pthread_mutex_destroy(&self.walk.lock)

    cdef int check(self) except -1:
        """See the pxd."""
        cdef int failed = flag(&self.walk.failed)
        if failed == ENOMEM:
            raise MemoryError
        if failed:
            raise OSError(failed, os.strerror(failed))
        if flag(&self.walk.moved):
            raise Moved
        return 0

    def stop(self):
        """See the stub."""
        raise_flag(&self.walk.stop)

    @property
    def stopped(self):
        """See the stub."""
        return flag(&self.walk.stop) != 0

    @property
    def opened(self):
        """See the stub."""
        cdef int i
        cdef uint64_t calls = 0, size = 0
        for i in range(self.width):
            calls += self.walkers[i].ancestors.opened.calls
            size += self.walkers[i].ancestors.opened.bytes
        return calls, size


cdef dir_t* descend(walk_t* walk, dir_t* at, const char* path, size_t size) noexcept nogil:
    """Go from the root (consumed) to the directory `path`, collecting the rules on the way. NULL: a shortage.

    In a directory that is ignored, or lies in `.git` or `.kd`, no rule holds: all below is hidden alike.
    """
    cdef size_t begin = 0, end
    cdef dir_t* below
    cdef int fd = open_directory(walk.root, path, 0, DIRECTORY_FLAGS, NULL)
    cdef int above, state
    while begin < size:
        end = begin
        while end < size and path[end] != c"/":
            end += 1
        state = at.state
        if state == RULED:
            if fd < 0 or push_rules(at, fd, EVERY_KIND):
                walk_missed(walk)
            if flag(&walk.failed):
                break
            if (
                rules_ignored(at.rules, at.path, at.size, path + begin, end - begin, True)
                or is_git(path + begin, end - begin)
                or is_kd(path + begin, end - begin)
            ):
                state = FREE
        below = dir_new(at, path + begin, end - begin, at.rules, state)
        if below == NULL:
            walk_fail(walk)
            break
        dir_release(at)
        at = below
        if fd >= 0 and state == RULED and end < size:
            above = fd
            fd = open_directory(above, path + begin, end - begin, DIRECTORY_FLAGS, NULL)
            close(above)
        begin = end + 1
    if fd >= 0:
        close(fd)
    if flag(&walk.failed):
        dir_release(at)
        return NULL
    return at


cdef int keep_above(walk_t* walk, bytes above) except -1:
    """Remember the absolute path of the tree's root."""
    walk.above_size = PyBytes_GET_SIZE(above)
    walk.above = <char*>malloc(walk.above_size + 1)
    if walk.above == NULL:
        raise MemoryError
    memcpy(walk.above, PyBytes_AS_STRING(above), walk.above_size + 1)
    return 0


cdef int begin(walk_t* walk, rules_t* rules, bytes cwd, bytes file) noexcept:
    """Put the first item into the list: the directory cwd, or only `file` in it. -1: a shortage."""
    cdef const char* path = PyBytes_AS_STRING(cwd)
    cdef size_t size = PyBytes_GET_SIZE(cwd)
    cdef int state = FREE if file is not None else RULED
    cdef dir_t* at = dir_new(NULL, path, 0 if state == RULED else size, rules, state)
    cdef item_t* it = NULL
    if at != NULL and state == RULED:
        with nogil:
            at = descend(walk, at, path, size)
    if at != NULL:
        it = item_new(at, UNREAD if file is None else RUN)
        dir_release(at)
    if it == NULL:
        return -1
    if file is not None:
        it.count = 1
        it.end = <uint32_t>PyBytes_GET_SIZE(file) + 3
        it.names = <char*>malloc(it.end)
        if it.names == NULL:
            item_free(it)
            return -1
        it.names[0] = <char>FILE
        it.names[1] = <char>PyBytes_GET_SIZE(file)
        memcpy(it.names + 2, PyBytes_AS_STRING(file), it.end - 2)
    insert(walk, it, NULL)
    insert_work(walk, it, NULL)
    return 0


cdef void let_go(walker_t* walker) noexcept:
    """Free what only this walker still knows: dropped items that it had taken."""
    cdef item_t* it
    if walker.item != NULL and not walker.item.listed:
        item_free(walker.item)
    while walker.chain != NULL:
        it = walker.chain
        walker.chain = it.chain
        if not it.listed:
            item_free(it)
