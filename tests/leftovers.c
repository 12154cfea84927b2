/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into every unit test: when its tests have passed, which resources does the process hold that it did not hold
 * before main?
 *
 * Descriptors, mapped segments, threads and children that are left make the test fail, with their names. Resources that
 * the library keeps until the process ends are in a table; resources that a test leaves on purpose are in a table of
 * its own. Memory is checked by LeakSanitizer, in the asan build. A process that fails anyway, or ends by _exit, is not
 * checked.
 */
#include "tests/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESCRIPTORS = 4096, NAME = 256, LOOKS = 1500 };

__attribute__((weak)) struct kolo_test_keep kolo_test_keeps[] = {{NULL, 0, 0}};

/* The executor sleeps until the process ends; threads that wait for other hosts sleep in one epoll, with a wakeup
 * descriptor. */
static struct kolo_test_keep library_keeps[] = {{"kolo-executor", 1, 0}, {NULL, 0, 0}};
enum { RESTS = 1 };

static bool open_before[DESCRIPTORS];
static pid_t owner; /* forked children are others */
static int polls, wakeups;
static bool aloud;

/* ---- looking ---- */

static void look_unless(int own, int number, void (*look)(int number, int *left), int *left)
{
    if (number != own) look(number, left);
}

/* Every entry of a folder of /proc/self that is a number. */
static void for_each_number(const char *folder, void (*look)(int number, int *left), int *left)
{
    DIR *d = opendir(folder);

    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.') look_unless(dirfd(d), (int)strtol(e->d_name, NULL, 10), look, left);
    if (d) closedir(d);
}

static void read_name(const char *path, char name[NAME])
{
    FILE *f = fopen(path, "re");

    if (!f || !fgets(name, NAME, f)) *name = 0;
    if (f) fclose(f);
    name[strcspn(name, "\n")] = 0;
}

static bool may_be_left(struct kolo_test_keep *kept, const char *name)
{
    for (; kept->name; kept++)
        if (!strncmp(kept->name, name, strlen(kept->name))) return ++kept->seen <= kept->most;
    return false;
}

static void forget(struct kolo_test_keep *kept)
{
    for (; kept->name; kept++) kept->seen = 0;
}

static bool is_rest(const char *name)
{
    if (!strcmp(name, "anon_inode:[eventpoll]")) return ++polls <= RESTS;
    return !strcmp(name, "anon_inode:[eventfd]") && ++wakeups <= RESTS;
}

static void tell(int *left, const char *what, const char *name)
{
    if (may_be_left(library_keeps, name) || may_be_left(kolo_test_keeps, name)) return;
    (*left)++;
    if (aloud) fprintf(stderr, "left behind: %s %s\n", what, name);
}

/* ---- each kind ---- */

static void note_descriptor(int fd, int *left)
{
    (void)left;
    if (fd < DESCRIPTORS) open_before[fd] = true;
}

static void look_at_descriptor(int fd, int *left)
{
    char path[64], name[NAME];

    if (fd < DESCRIPTORS && open_before[fd]) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, name, sizeof name - 1);
    if (n < 0) return; /* closed meanwhile */
    name[n] = 0;
    if (!is_rest(name)) tell(left, "descriptor", name);
}

/* ThreadSanitizer has a thread, which is called as the first one is. */
static bool is_sanitizers(const char *name)
{
#ifdef __SANITIZE_THREAD__
    char first[NAME];

    read_name("/proc/self/comm", first);
    return !strcmp(name, first);
#else
    (void)name;
    return false;
#endif
}

static void look_at_thread(int thread, int *left)
{
    char path[64], name[NAME], place[NAME];

    if (thread == (int)owner) return;
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
    read_name(path, name);
    if (!*name || is_sanitizers(name)) return;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    read_name(path, place);
    const int before = *left;
    tell(left, "thread", name);
    if (aloud && *left > before) fprintf(stderr, "  its system call, or running: %s\n", place);
}

static void look_at_segments(int *left)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512];

    while (f && fgets(line, sizeof line, f)) {
        const char *name = strstr(line, "/memfd:");
        if (!name) name = strstr(line, "/dev/shm/");
        line[strcspn(line, "\n")] = 0;
        if (name) tell(left, "segment", name);
    }
    if (f) fclose(f);
}

static void look_at_children(int *left)
{
    siginfo_t info = {0};
    char text[64];

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT)) return; /* there are none */
    snprintf(text, sizeof text, info.si_pid ? "%d, which ended and was not waited for" : "that runs", (int)info.si_pid);
    tell(left, "child process", text);
}

static int count(void)
{
    int left = 0;

    polls = wakeups = 0;
    forget(library_keeps);
    forget(kolo_test_keeps);
    for_each_number("/proc/self/fd", look_at_descriptor, &left);
    for_each_number("/proc/self/task", look_at_thread, &left);
    look_at_segments(&left);
    look_at_children(&left);
    return left;
}

/* A thread that was joined may be seen a moment longer, and workers wait a second for the next function of a stream; cores of virtual
   machines may stand still for seconds. */
static void look(int status, void *unused)
{
    (void)unused;
    if (status || getpid() != owner) return;
    for (int i = 0; i < LOOKS && count(); i++) usleep(10000);
    aloud = true;
    if (!count()) return;
    fflush(NULL);
    _exit(1);
}

void kolo_test_look_from_here(void)
{
    owner = getpid();
    for_each_number("/proc/self/fd", note_descriptor, NULL);
}

__attribute__((constructor)) static void begin(void)
{
    kolo_test_look_from_here();
    on_exit(look, NULL);
}
