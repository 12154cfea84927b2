/* SPDX-License-Identifier: Apache-2.0 */
#include "os/rendezvous_file.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file_size_limit.h"
#include "base/fork_lock.h"
#include "os/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX "-rendezvous"

enum { LOOK_NS = 1000000, LOOK_MAX_NS = 16000000, WHY = 384, DRAFT = KL_PRIVATE_PATH + 24 };

static const char mark[8] = "KOLOmeet"; /* no zero at its end */

/* The file begins with this; the bytes follow. */
struct head {
    char mark[sizeof mark];
    uint64_t pid;     /* of the writer, in its pid namespace */
    uint64_t made_ns; /* since 1970 */
    uint64_t bytes;
};

struct kl_rendezvous_file {
    struct kl_rendezvous_file *next; /* list of this process's files */
    int fd;                          /* locked; -1: in a forked child */
    char path[KL_PRIVATE_PATH];
};

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    struct kl_rendezvous_file *first;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* Result of looking into one folder. */
enum found { FOUND, NOTHING, HELD, UNUSABLE };

/* Sleep between two looks, twice as long each time. */
static void pause_for(long *ns)
{
    nanosleep(&(struct timespec){.tv_nsec = *ns}, NULL);
    if (*ns < LOOK_MAX_NS) *ns *= 2;
}

static void name_file(const char *folder, const char *name, char path[KL_PRIVATE_PATH])
{
    snprintf(path, KL_PRIVATE_PATH, "%s/%s" SUFFIX, folder, name);
}

/* ---- forks: a child would share the parent's locks until it closes the descriptors ---- */

static void close_all(void)
{
    for (struct kl_rendezvous_file *f = process.first; f; f = f->next) {
        close(f->fd);
        f->fd = -1;
    }
    process.first = NULL;
}

KL_FORK_LOCK(process.lock, close_all());

static void leave_list(struct kl_rendezvous_file *file)
{
    pthread_mutex_lock(&process.lock);
    struct kl_rendezvous_file **link = &process.first;
    while (*link && *link != file) link = &(*link)->next;
    if (*link) *link = file->next;
    pthread_mutex_unlock(&process.lock);
}

/* ---- an existing file ---- */

/* NOTHING: the name is free now; UNUSABLE: the file is not this user's; otherwise a process has it open and locked:
 * HELD. */
static enum found open_held(const char *path, int *out, char why[WHY])
{
    int fd = kl_private_file_open(path);

    if (fd < 0 && errno == ENOENT) return NOTHING;
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            snprintf(why, WHY, "%s cannot be opened: %s%s", path, strerror(errno), kl_errno_remedy(errno));
        else
            snprintf(why, WHY, "%s is somebody else's, or open to others; remove it", path);
        return UNUSABLE;
    }
    if (!kl_private_file_trylock(fd)) {
        *out = fd;
        return HELD;
    }
    /* Its writer is dead. The file is removed under its lock, so that no new file of this name is removed instead. */
    if (kl_private_file_is_at(path, fd)) unlink(path);
    close(fd);
    return NOTHING;
}

static bool read_head(int fd, struct head *h)
{
    return pread(fd, h, sizeof *h, 0) == (ssize_t)sizeof *h && !memcmp(h->mark, mark, sizeof mark);
}

static void describe(const char *path, int fd, char *text, size_t size)
{
    struct timespec now;
    struct head h;

    clock_gettime(CLOCK_REALTIME, &now);
    if (!read_head(fd, &h)) {
        snprintf(text, size, "%s, which has unexpected contents", path);
        return;
    }
    snprintf(text, size, "%s, made by process %llu %.3g s ago", path, (unsigned long long)h.pid,
             (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)h.made_ns / 1e9);
}

/* ---- writing ---- */

static bool write_all(int fd, const void *data, size_t bytes)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    struct head h = {.pid = (uint64_t)getpid(),
                     .made_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
                     .bytes = bytes};
    memcpy(h.mark, mark, sizeof mark);
    struct iovec parts[] = {{&h, sizeof h}, {(void *)(uintptr_t)data, bytes}};
    ssize_t n = kl_file_size_limit_allows(sizeof h + bytes) ? writev(fd, parts, 2) : -1;
    if (n >= 0 && n != (ssize_t)(sizeof h + bytes)) errno = ENOSPC;
    return n == (ssize_t)(sizeof h + bytes);
}

static bool lock(int fd)
{
    int rc;

    do rc = flock(fd, LOCK_EX); /* a sweep may hold the lock for a moment */
    while (rc && errno == EINTR);
    return !rc;
}

/* Lock and write a draft, before it gets its final name. -1: errno. */
static int make_draft(const char *path, const void *data, size_t bytes, char draft[DRAFT])
{
    uint64_t number = 0;

    if (getrandom(&number, sizeof number, 0) < 0) number = kl_now_ns();
    snprintf(draft, DRAFT, "%s.%016llx", path, (unsigned long long)number);
    int fd = open(draft, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    if (!fchmod(fd, 0600) && lock(fd) && write_all(fd, data, bytes)) return fd;
    int err = errno;
    unlink(draft);
    close(fd);
    errno = err;
    return -1;
}

/* NOTHING: the name has been taken meanwhile, or a sweep removed the draft before it was locked. */
static enum found write_in_list(struct kl_rendezvous_file *file, const void *data, size_t bytes, char why[WHY])
{
    char draft[DRAFT];
    int fd = make_draft(file->path, data, bytes, draft);

    if (fd >= 0 && !link(draft, file->path)) {
        unlink(draft);
        file->fd = fd;
        file->next = process.first;
        process.first = file;
        return FOUND;
    }
    int err = errno;
    if (fd >= 0) {
        unlink(draft);
        close(fd);
        if (err == EEXIST || err == ENOENT) return NOTHING;
    }
    snprintf(why, WHY, "%s: %s", file->path, strerror(err));
    return UNUSABLE;
}

/* The list's lock keeps a fork from coming between file lock and list. */
static enum found write_in(struct kl_rendezvous_file *file, const void *data, size_t bytes, char why[WHY])
{
    pthread_once(&process.once, install_fork_handlers);
    pthread_mutex_lock(&process.lock);
    enum found there = write_in_list(file, data, bytes, why);
    pthread_mutex_unlock(&process.lock);
    return there;
}

/* HELD: another process has the name; `why` describes it. */
static enum found try_to_write(struct kl_rendezvous_file *file, const void *data, size_t bytes, char why[WHY])
{
    int other;
    enum found there = open_held(file->path, &other, why);

    if (there == HELD) {
        describe(file->path, other, why, WHY);
        close(other);
    }
    return there == NOTHING ? write_in(file, data, bytes, why) : there;
}

static bool is_stale(int fd)
{
    return kl_private_file_trylock(fd);
}

/* In the first folder that can be used. NOTHING: none can; `why` gives the reason for each. */
static ncclResult_t write_somewhere(struct kl_rendezvous_file *file, const char *const *folders, const char *name,
                                    const struct iovec *data, uint64_t deadline)
{
    char why[WHY], all[3 * WHY] = "";
    size_t used = 0;

    for (; *folders; folders++) {
        enum found there;
        long ns = LOOK_NS;

        name_file(*folders, name, file->path);
        kl_private_files_remove_stale(*folders, SUFFIX, strrchr(file->path, '/') + 1, is_stale);
        while ((there = try_to_write(file, data->iov_base, data->iov_len, why)) == HELD || there == NOTHING) {
            if (kl_deadline_passed(deadline))
                return KL_FAIL(ncclRemoteError, "another program of this job still waits for its ranks: it holds %s",
                               there == HELD ? why : file->path);
            pause_for(&ns);
        }
        if (there == FOUND) return ncclSuccess;
        int n = snprintf(all + used, sizeof all - used, "%s%s", used ? "; " : "", why);
        if (n > 0 && (size_t)n < sizeof all - used) used += (size_t)n;
    }
    return KL_FAIL(ncclSystemError, "there is no place for a file that the ranks of this host can find: %s", all);
}

ncclResult_t kl_rendezvous_file_write(const char *const *folders, const char *name, const void *data, size_t bytes,
                                      uint64_t deadline, struct kl_rendezvous_file **out)
{
    struct kl_rendezvous_file *file = calloc(1, sizeof *file);
    const struct iovec what = {(void *)(uintptr_t)data, bytes};

    if (!file) return KL_NOMEM("a rendezvous file");
    ncclResult_t rc = write_somewhere(file, folders, name, &what, deadline);
    if (rc)
        free(file);
    else
        *out = file;
    return rc;
}

void kl_rendezvous_file_remove(struct kl_rendezvous_file *file)
{
    if (!file) return;
    leave_list(file);
    if (file->fd >= 0 && kl_private_file_is_at(file->path, file->fd)) unlink(file->path);
    if (file->fd >= 0) close(file->fd);
    free(file);
}

/* ---- reading ---- */

static bool read_data(int fd, void *data, size_t bytes)
{
    struct head h;

    return read_head(fd, &h) && h.bytes == bytes && pread(fd, data, bytes, sizeof h) == (ssize_t)bytes;
}

static enum found look(const char *path, void *data, size_t bytes, bool (*is_alive)(const void *data), char why[WHY])
{
    int fd;
    enum found there = open_held(path, &fd, why);

    if (there != HELD) return there;
    if (read_data(fd, data, bytes) && (!is_alive || is_alive(data)))
        there = FOUND;
    else
        describe(path, fd, why, WHY);
    close(fd);
    return there;
}

ncclResult_t kl_rendezvous_file_read(const char *const *folders, const char *name, void *data, size_t bytes,
                                     bool (*is_alive)(const void *data), uint64_t deadline)
{
    char path[KL_PRIVATE_PATH], why[WHY];

    for (long ns = LOOK_NS;; pause_for(&ns)) {
        bool late = kl_deadline_passed(deadline); /* checked first: this is then the last look */

        snprintf(why, sizeof why, "nobody has written %s" SUFFIX, name);
        for (const char *const *folder = folders; *folder; folder++) {
            name_file(*folder, name, path);
            enum found there = look(path, data, bytes, is_alive, why);
            if (there == FOUND) return ncclSuccess;
        }
        if (late) return KL_FAIL(ncclRemoteError, "%s", why);
    }
}
