"""The C library's allocator: large buffers are used again while calls come, and go back to the system after them."""

cdef extern from *:
    """
    #include <stdlib.h>
    #if defined(__GLIBC__)
    #include <malloc.h>
    static int reuse(void) {
        /* one heap for all threads: of the others malloc_trim leaves the top as it is */
        return mallopt(M_ARENA_MAX, 1) && mallopt(M_MMAP_THRESHOLD, 32 << 20) && mallopt(M_TRIM_THRESHOLD, 512 << 20);
    }
    static int give_back(void) { return malloc_trim(0); }
    #else
    static int reuse(void) { return 0; }
    static int give_back(void) { return 0; }
    #endif
    """
    int reuse() nogil
    int give_back() nogil


def reuse_large_buffers():
    return reuse() != 0


def return_freed_memory():
    cdef int returned
    with nogil:
        returned = give_back()
    return returned != 0
