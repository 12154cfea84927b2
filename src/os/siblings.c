/* SPDX-License-Identifier: Apache-2.0 */
#include "os/siblings.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/hostinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 2000000 };

/* When the parent was started, in clock ticks since boot: its number alone comes again. */
static unsigned long long parent_start(void)
{
    char path[32], text[1024] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", (int)getppid());
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    const char *rest = strrchr(text, ')'); /* behind the name, which may hold anything; the start is field 22 */
    for (int field = 2; rest && field < 22; field++) rest = strchr(rest + 1, ' ');
    return rest ? strtoull(rest + 1, NULL, 10) : 0;
}

static bool join_values(const char *const *settings, char *text, size_t size)
{
    size_t used = 0;

    for (; *settings; settings++) {
        const char *value = getenv(*settings);
        if (!value) return false;
        int n = snprintf(text + used, size - used, "%s=%s;", *settings, value);
        if (n < 0 || (size_t)n >= size - used) return false;
        used += (size_t)n;
    }
    return used;
}

void kl_siblings_path(const char *const *settings, unsigned turn, char path[KL_SIBLINGS_PATH])
{
    char text[512];
    uint64_t job = 0;

    if (!join_values(settings, text, sizeof text))
        snprintf(text, sizeof text, "parent %d, started at %llu", (int)getppid(), parent_start());
    (void)kl_hostinfo_host_hash(text, &job);
    snprintf(path, KL_SIBLINGS_PATH, "%s/kolo-%u-%016llx-%u", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
             (unsigned)geteuid(), (unsigned long long)job, turn);
}

ncclResult_t kl_siblings_leave(const char *path, const void *data, size_t bytes)
{
    char draft[KL_SIBLINGS_PATH + 32];

    snprintf(draft, sizeof draft, "%s.%d", path, (int)getpid());
    unlink(draft);
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return KL_FAIL(ncclSystemError, "making %s: %s", draft, strerror(errno));
    bool written = write(fd, data, bytes) == (ssize_t)bytes;
    close(fd);
    if (written && !rename(draft, path)) return ncclSuccess;
    int err = errno;
    unlink(draft);
    return KL_FAIL(ncclSystemError, "writing %s: %s", path, strerror(err));
}

/* Somebody else could have put it there. */
static bool is_mine(int fd)
{
    struct stat st;

    return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077);
}

ncclResult_t kl_siblings_read(const char *path, void *data, size_t bytes, uint64_t deadline)
{
    int fd;

    while ((fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) < 0 && errno == ENOENT) {
        if (kl_deadline_passed(deadline)) return KL_FAIL(ncclRemoteError, "nobody has written %s", path);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    if (fd < 0) return KL_FAIL(ncclSystemError, "opening %s: %s", path, strerror(errno));
    bool mine = is_mine(fd), whole = mine && read(fd, data, bytes) == (ssize_t)bytes;
    close(fd);
    if (whole) return ncclSuccess;
    return KL_FAIL(ncclRemoteError, "%s %s; remove it", path, mine ? "is not what was expected" : "is somebody else's");
}
