# One walk of a tree, shared by several threads: directories and runs of files in path order, for other kernels.
#
# A walk is a list of items in path order. A directory is taken by one walker, read, and replaced by what it holds: runs
# of files, and further directories. Walkers always take the first item that waits, so the front of the list is done
# first; results hang on the runs. As soon as the finished runs hold as much as the answer takes, all behind them is
# dropped. So an answer is the same whatever the number of threads, and no more is kept than it may need.
#
# A walk that is not `ordered` spares that: a walker takes the files of a directory it has read as they come, and keeps
# what lies below it on a stack of its own, of which others get half when they have nothing to do. The directory that
# all of that came from, its `base`, stays in the list until then.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from toolserver._fast.git_index cimport Tracked, tracked_t
from toolserver._fast.globs cimport Glob, glob_t
from toolserver._fast.ignore cimport BaseRules, rules_t
from toolserver._fast.lines cimport Text

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass

cdef extern from "ticks.h" nogil:
    int64_t ticks() noexcept

cdef extern from "walk.h" namespace "walk" nogil:
    const uint8_t FILE
    const uint8_t DIRECTORY
    const uint8_t LINK
    const int FILE_FLAGS
    cppclass Entry:
        uint64_t key
        uint32_t at
        uint16_t size
        uint8_t kind
        uint8_t state
    cppclass Listing:
        char* raw
        Entry* entries
        size_t count
        unsigned ignore_files
    cppclass Opened:
        uint64_t calls
        uint64_t bytes
    cppclass Moment:
        int64_t seconds
        uint32_t nanoseconds
    # Whether a flag is up, and putting it up, between threads.
    int flag(const int* at) noexcept
    void raise_flag(int* at) noexcept
    void raise_flag(int* at, int value) noexcept
    bint age(int directory, const char* name, uint8_t kind, Moment* mtime) noexcept
    int reopen(int path_fd) noexcept

cdef extern from "ancestors.h" namespace "walk" nogil:
    cppclass Ancestor:
        int fd
        size_t size
    cppclass Ancestors:
        bint moved
        Opened opened

cdef enum:
    # What walk_next answers.
    FOUND = 1
    WAIT = 2
    TURN = 3
    END = 4

cdef struct dir_t:
    # A directory of the walk, counted. `path` is relative to the tree's root and ends with a NUL.
    long refs
    rules_t* rules
    int state
    uint32_t size
    char path[1]

cdef struct item_t:
    # A directory still to be read, or a run of files of one. A run belongs to the walker that took it; on it hang
    # `rows`, how many results they are (`entries`) and what they take in an answer at least (`weight`).
    item_t* before
    item_t* after
    item_t* before_work
    item_t* after_work
    item_t* chain
    dir_t* dir
    uint8_t kind
    uint8_t state
    bint listed
    bint in_work
    bint walking
    int dropped
    uint32_t held
    char* names
    uint32_t at
    uint32_t end
    uint32_t count
    Text rows
    size_t entries
    size_t weight

cdef struct walk_t:
    # What all walkers of one walk share.
    pthread_mutex_t lock
    pthread_cond_t wake
    item_t* first
    item_t* last
    item_t* first_work
    item_t* last_work
    size_t unfinished
    size_t entries
    size_t weight
    size_t most_entries
    size_t most_weight
    int idle
    int stop
    int failed  # an errno
    int moved
    int root
    char* above
    size_t above_size
    bint leave_agents
    bint from_root
    bint ordered
    uint32_t cwd_size
    uint32_t run
    const tracked_t* tracked
    const glob_t* glob

cdef struct walker_t:
    # One walker: what it works on, and the directory that it has open. Where the walk is not ordered, `names` is what
    # is left of `listing`.
    walk_t* walk
    Listing listing
    const Entry* names
    const Entry* names_end
    item_t* item
    item_t* chain
    item_t* base
    dir_t* dir
    int dir_fd
    Ancestors ancestors
    uint64_t visits  # directories opened so far
    uint32_t steps
    int64_t deadline
    char apart[128]  # from what the next walker writes, so that no cache line is shared

cdef struct found_t:
    # A file to look at. It lives until the item does; where the walk is not ordered there is none, and it lives until
    # the next.
    item_t* item
    const dir_t* dir
    int dir_fd
    uint8_t kind
    uint8_t size
    const char* name

# Go on to the next file, until the walker's deadline at most. FOUND: `out` tells the file. WAIT: nothing to take now,
# others still work (walk_wait). TURN: the deadline has come. END: all is done, or the walk was stopped.
cdef int walk_next(walker_t* walker, found_t* out) noexcept nogil
# Close the ancestors of directories before the walker's thread does something else, which tells whether one was moved.
# Needed only after FOUND: walk_next has done so when it returns anything else.
cdef void walk_pause(walker_t* walker) noexcept nogil
# Wait a little, until there is something to take.
cdef void walk_wait(walker_t* walker) noexcept nogil
# Say that results for this item are still to come; the item is finished when all are given back.
cdef void walk_hold(item_t* item) noexcept nogil
cdef void walk_unhold(walk_t* walk, item_t* item) noexcept nogil
# Open the regular file that a found link leads to inside the tree, as O_PATH; -1: it leads to none.
cdef int walk_target(walker_t* walker, const found_t* found) noexcept nogil
# No memory: the walk ends and is failed.
cdef void walk_fail(walk_t* walk) noexcept nogil
# Look at the errno of what could not be opened: where it tells of a shortage, the walk ends and is failed.
cdef void walk_missed(walk_t* walk) noexcept nogil

cdef class Walk:
    # Owns a walk, its walkers and the descriptor of the tree's root.
    cdef walk_t walk
    cdef walker_t* walkers
    cdef readonly int width
    cdef bint ready
    cdef BaseRules _rules
    cdef Tracked _tracked
    cdef Glob _glob
    # Raise what a walk has failed of, if it has.
    cdef int check(self) except -1
