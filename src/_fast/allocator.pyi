"""The C library's allocator: large buffers are used again while calls come, and go back to the system after them."""

def reuse_large_buffers() -> bool:
    """Have malloc take buffers of up to 32 MiB from one heap and keep what is freed there for the next ones.

    A buffer that is mapped for itself costs a page fault for every 4 KiB of it, which takes longer than to fill it.
    Call `return_freed_memory` once no more of them are needed. False: the C library cannot be told.
    """

def return_freed_memory() -> bool:
    """Return all free pages of malloc's heap to the system. Whether there were any."""
