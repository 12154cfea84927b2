/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/ledger.h"

#include "compat/cuda/core/device.h"
#include "base/filelimit.h"
#include "os/job_name.h"
#include "os/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 1024, ATTEMPTS = 100, PATH_ROOM = KL_PRIVATE_PATH + 32 };
#define MARK "-cuda-"

struct slot {
    int64_t pid;
    int64_t given[KL_CUDA_DEVICES];
};

/* Everything except the locks is protected by the lock of byte SLOTS. */
struct file {
    uint64_t slots; /* that were ever taken */
    struct slot slot[SLOTS];
};

static struct {
    pthread_mutex_t lock; /* locks of files are the process's, not a thread's */
    pthread_once_t once;
    char path[PATH_ROOM];
    int fd;
    pid_t pid;
    struct file *file; /* NULL: there is none */
    struct slot *own;
} ledger = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .fd = -1};

/* ---- locks: one byte for each slot, one for all of them ---- */

static bool set_lock(int fd, int command, short type, off_t byte)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc;

    do rc = fcntl(fd, command, &l);
    while (rc && errno == EINTR);
    return !rc;
}

/* Does another process hold one of these slots? */
static bool held(int fd, off_t first, off_t n)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = n};

    return !fcntl(fd, F_GETLK, &l) && l.l_type != F_UNLCK;
}

static void begin(void)
{
    pthread_mutex_lock(&ledger.lock);
    set_lock(ledger.fd, F_SETLKW, F_WRLCK, SLOTS);
}

static void end(void)
{
    set_lock(ledger.fd, F_SETLK, F_UNLCK, SLOTS);
    pthread_mutex_unlock(&ledger.lock);
}

/* ---- sums ---- */

static bool lives(const struct slot *s)
{
    return s == ledger.own || held(ledger.fd, s - ledger.file->slot, 1);
}

/* Under lock. Slots of the dead are emptied. */
static uint64_t sum(int ordinal)
{
    uint64_t total = 0;

    for (uint64_t i = 0; i < ledger.file->slots && i < SLOTS; i++) {
        struct slot *s = &ledger.file->slot[i];

        if (s->given[ordinal] <= 0) continue;
        if (lives(s))
            total += (uint64_t)s->given[ordinal];
        else
            *s = (struct slot){0};
    }
    return total;
}

/* ---- the file ---- */

/* If the first of a row is set, the others name the job; without others the launcher process does. */
static bool name_job(char name[KL_JOB_NAME])
{
    static const struct {
        const char *launched, *names[4], *own[3];
    } jobs[] = {
        {"KOLO_COMM_ID", {"KOLO_COMM_ID"}, {NULL}},
        {"PMIX_NAMESPACE", {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR"}, {NULL}},
        {"SLURM_STEP_ID", {"SLURM_STEP_ID", "SLURM_JOB_ID"}, {NULL}},
        {"PMI_RANK", {NULL}, {"PMI_RANK", "PMI_FD"}},
        {"MASTER_PORT", {"MASTER_PORT", "MASTER_ADDR", "WORLD_SIZE"}, {NULL}},
    };

    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        if (!getenv(jobs[i].launched)) continue;
        kl_job_name(jobs[i].names, jobs[i].own, 0, name);
        return true;
    }
    return false;
}

/* Locked. Another process may remove it between the two calls: then it has no name any more. */
static int open_locked(const char *path)
{
    struct stat st;

    for (int i = 0; i < ATTEMPTS; i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0) return -1;
        bool locked = kl_private_file_is_mine(fd, &st) && set_lock(fd, F_SETLKW, F_WRLCK, SLOTS) && !fstat(fd, &st);
        if (locked && st.st_nlink) return fd;
        close(fd);
        if (!locked) return -1;
    }
    return -1;
}

/* Allocate its pages now: later, if shared memory is full, each would cause a SIGBUS. */
static bool map(int fd)
{
    struct stat st;
    void *p = MAP_FAILED;

    if (!fstat(fd, &st) && kl_filelimit_allows(sizeof(struct file)) &&
        (st.st_size >= (off_t)sizeof(struct file) || !ftruncate(fd, sizeof(struct file))) &&
        !posix_fallocate(fd, 0, offsetof(struct file, slot)))
        p = mmap(NULL, sizeof(struct file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED) ledger.file = p;
    return p != MAP_FAILED;
}

static bool take_slot(int fd)
{
    for (uint64_t i = 0; i < SLOTS; i++) {
        struct slot *s = &ledger.file->slot[i];

        if (!set_lock(fd, F_SETLK, F_WRLCK, (off_t)i)) continue;
        if (posix_fallocate(fd, (char *)s - (char *)ledger.file, sizeof *s)) return false;
        *s = (struct slot){.pid = getpid()};
        if (i >= ledger.file->slots) ledger.file->slots = i + 1;
        ledger.own = s;
        return true;
    }
    return false;
}

/* Is no process of the ledger alive? A ledger that cannot be locked at once is in use. */
static bool is_stale(int fd)
{
    return set_lock(fd, F_SETLK, F_WRLCK, SLOTS) && !held(fd, 0, SLOTS);
}

/* Threads that still run write their counts to an unused slot. */
static void leave(void)
{
    static struct slot nowhere;

    if (getpid() != ledger.pid) return;
    begin();
    *ledger.own = (struct slot){0};
    set_lock(ledger.fd, F_SETLK, F_UNLCK, ledger.own - ledger.file->slot);
    ledger.own = &nowhere;
    if (!held(ledger.fd, 0, SLOTS)) unlink(ledger.path);
    end();
}

/* The first folder that can be written. */
static const char *choose_folder(void)
{
    const char *const *folder = kl_private_folders();

    while (folder[1] && access(*folder, W_OK)) folder++;
    return *folder;
}

static bool name_file(void)
{
    const struct kl_cuda_device *list;
    char job[KL_JOB_NAME];
    int count;

    if (!name_job(job) || kl_cuda_host_devices(&list, &count) || !count) return false;
    const unsigned char *u = list[0].uuid; /* of its host */
    snprintf(ledger.path, sizeof ledger.path, "%s/%s" MARK "%02x%02x%02x%02x%02x%02x", choose_folder(), job, u[0], u[1],
             u[2], u[3], u[4], u[5]);
    return true;
}

static void open_ledger(void)
{
    if (!name_file()) return;
    int fd = open_locked(ledger.path);
    if (fd < 0) return;
    if (!map(fd) || !take_slot(fd)) {
        if (ledger.file) munmap(ledger.file, sizeof *ledger.file);
        ledger.file = NULL;
        close(fd);
        return;
    }
    ledger.fd = fd;
    ledger.pid = getpid();
    set_lock(fd, F_SETLK, F_UNLCK, SLOTS);
    atexit(leave);
    kl_private_files_sweep(choose_folder(), MARK, strrchr(ledger.path, '/') + 1, is_stale);
}

/* ---- queries ---- */

bool kl_cuda_ledger_has(int ordinal)
{
    pthread_once(&ledger.once, open_ledger);
    return ledger.file && ordinal < KL_CUDA_DEVICES && ledger.pid == getpid(); /* a forked child has no slot */
}

bool kl_cuda_ledger_count(int ordinal, int64_t bytes, uint64_t limit)
{
    begin();
    bool fits = bytes <= 0 || sum(ordinal) + (uint64_t)bytes <= limit;
    if (fits) ledger.own->given[ordinal] += bytes;
    end();
    return fits;
}

uint64_t kl_cuda_ledger_used(int ordinal)
{
    begin();
    uint64_t used = sum(ordinal);
    end();
    return used;
}

uint64_t kl_cuda_ledger_used_by(int ordinal, pid_t pid)
{
    uint64_t used = 0;

    begin();
    for (uint64_t i = 0; i < ledger.file->slots && i < SLOTS; i++) {
        const struct slot *s = &ledger.file->slot[i];

        if (s->pid == pid && s->given[ordinal] > 0 && lives(s)) used = (uint64_t)s->given[ordinal];
    }
    end();
    return used;
}
