/* Gives /bin/sh the text of its command in place of the one on its command line.

   Loaded into the shell by LD_PRELOAD, it runs before `main`: a shell started as `sh -c PLACEHOLDER` then reads the text
   as if it had been that argument, with the messages, line numbers and `exec` of a real `sh -c TEXT`, while /proc shows
   the placeholder. processes/shell.py starts the shell and states the two placeholders. In any other program, and where
   something is not as expected, nothing is changed: the placeholder runs the same text by itself. */

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIBRARY_FD 7
#define TEXT_FD 9

static const char from_variable[] = "exec 7<&-;eval \"unset ";
static const char from_file[] = "exec 7<&-;. /dev/fd/9";
/* How a text in a file begins; the placeholder needs it, the text itself does not. */
static const char closing[] = "exec 9<&-;";
static const char preload[] = "LD_PRELOAD=";
static const char library[] = "/dev/fd/7";

static int begins(const char* text, const char* with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Returns the whole of the text's file with a NUL after it, NULL when it cannot be read. It lives as long as the shell. */
static char* read_text(void) {
    off_t size = lseek(TEXT_FD, 0, SEEK_END), done = 0;
    if (size < (off_t)(sizeof closing - 1))
        return NULL;
    char* text = mmap(NULL, size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED)
        return NULL;
    while (done < size) {
        ssize_t got = pread(TEXT_FD, text + done, size - done, done);
        if (got <= 0)
            return NULL;
        done += got;
    }
    lseek(TEXT_FD, 0, SEEK_SET);
    return begins(text, closing) ? text + sizeof closing - 1 : NULL;
}

/* Tells whether a variable is the LD_PRELOAD that holds only this library; one that holds more loses this one. */
static int is_preload(char* variable) {
    if (!begins(variable, preload))
        return 0;
    char* value = variable + sizeof preload - 1;
    size_t length = strlen(value), own = sizeof library - 1;
    if (length == own && strcmp(value, library) == 0)
        return 1;
    if (length > own && strcmp(value + length - own, library) == 0)
        value[length - own - 1] = 0; /* with the colon before it */
    return 0;
}

/* Called by the dynamic linker with what `main` will get. */
__attribute__((visibility("default"))) void shelltext_begin(int argc, char** argv, char** variables) {
    char *text = NULL, *name = NULL, **kept = variables;
    size_t length = 0;
    if (argc < 3 || strcmp(argv[1], "-c") != 0)
        return;
    if (begins(argv[2], from_variable)) {
        name = argv[2] + sizeof from_variable - 1;
        length = strcspn(name, ";");
    } else if (strcmp(argv[2], from_file) == 0) {
        text = read_text();
        if (text != NULL)
            close(TEXT_FD);
    } else
        return;
    for (char** at = variables; *at != NULL; at++) {
        if (name != NULL && strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            text = *at + length + 1;
        else if (!is_preload(*at))
            *kept++ = *at;
    }
    *kept = NULL;
    if (text != NULL)
        argv[2] = text;
    close(LIBRARY_FD);
}
