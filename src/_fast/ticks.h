/* A clock that only goes forward. */
#pragma once

#include <cstdint>
#include <ctime>

/* Nanoseconds since some moment. */
inline int64_t ticks() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}
