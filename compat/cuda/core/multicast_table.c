/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/multicast_table.h"

#include "base/atomic.h"
#include "compat/cuda/core/window.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HOLDERS = 512, LOOK_NS = 20000000 };
static const uint64_t magic = 0x4b4f4c4d43415354;

/* A process that has the object open, by a descriptor of it. */
struct holder {
    int32_t pid, fd;
};

/* The file. The lock of its first byte protects all that changes; atomics are also read without it. */
struct file {
    uint64_t magic, bytes, inode;
    uint32_t wanted;        /* devices of a complete team */
    _Atomic uint32_t added; /* devices; processes sleep on it */
    _Atomic uint64_t version;
    uint64_t last_id;
    int32_t ordinal[KL_CUDA_DEVICES]; /* ascending */
    struct holder holder[HOLDERS];
    struct kl_cuda_binding binding[KL_CUDA_BINDINGS];
};

struct kl_cuda_table {
    struct file *file;
    pthread_mutex_t lock; /* among threads: the lock of the file is the process's */
    int fd;               /* of the object */
    int lock_fd;          /* another opening of it, which no other process has: it owns the lock */
    unsigned holder;      /* the process's place; HOLDERS: none */
};

/* ---- the lock ---- */

static void set_lock(const struct kl_cuda_table *t, short type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

    while (fcntl(t->lock_fd, F_OFD_SETLKW, &l) && errno == EINTR) continue;
}

static void begin(struct kl_cuda_table *t)
{
    pthread_mutex_lock(&t->lock);
    set_lock(t, F_WRLCK);
}

static void end(struct kl_cuda_table *t)
{
    set_lock(t, F_UNLCK);
    pthread_mutex_unlock(&t->lock);
}

/* ---- descriptors of processes ---- */

static int open_of_process(int pid, int fd, uint64_t inode)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened >= 0 && kl_cuda_segment_number(opened) != inode) {
        close(opened);
        return -1;
    }
    return opened;
}

/* Has the process still this segment at this descriptor? */
static bool has(int pid, int fd, uint64_t inode)
{
    int opened = open_of_process(pid, fd, inode);

    if (opened >= 0) close(opened);
    return opened >= 0;
}

int kl_cuda_binding_open(const struct kl_cuda_binding *b)
{
    return open_of_process(b->pid, b->fd, b->inode);
}

/* ---- open and close ---- */

/* With the lock. */
static void hold(struct kl_cuda_table *t)
{
    struct holder *h = t->file->holder;

    t->holder = HOLDERS;
    for (unsigned i = 0; i < HOLDERS && t->holder == HOLDERS; i++)
        if (!h[i].pid) t->holder = i;
    if (t->holder < HOLDERS) h[t->holder] = (struct holder){.pid = getpid(), .fd = t->fd};
}

static void discard(struct kl_cuda_table *t)
{
    if (t->file != MAP_FAILED) munmap(t->file, sizeof *t->file);
    if (t->lock_fd >= 0) close(t->lock_fd);
    if (t->fd >= 0) close(t->fd);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* Takes the descriptor. */
static struct kl_cuda_table *map(int fd)
{
    struct kl_cuda_table *t = fd < 0 ? NULL : malloc(sizeof *t);
    char path[32];

    if (!t) {
        if (fd >= 0) close(fd);
        return NULL;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    *t = (struct kl_cuda_table){.fd = fd, .lock_fd = open(path, O_RDWR | O_CLOEXEC), .file = MAP_FAILED};
    pthread_mutex_init(&t->lock, NULL);
    if (t->lock_fd >= 0) t->file = mmap(NULL, sizeof *t->file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (t->file == MAP_FAILED) {
        discard(t);
        return NULL;
    }
    return t;
}

struct kl_cuda_table *kl_cuda_table_create(unsigned devices, size_t bytes)
{
    int fd = memfd_create("kolo-cuda-multicast", MFD_CLOEXEC);

    if (fd >= 0 && ftruncate(fd, sizeof(struct file))) {
        close(fd);
        return NULL;
    }
    struct kl_cuda_table *t = map(fd);
    if (!t) return NULL;
    t->file->bytes = bytes;
    t->file->inode = kl_cuda_segment_number(fd);
    t->file->wanted = devices;
    t->file->magic = magic;
    begin(t);
    hold(t);
    end(t);
    return t;
}

struct kl_cuda_table *kl_cuda_table_open(int from)
{
    struct stat s;

    if (fstat(from, &s) || s.st_size != sizeof(struct file)) return NULL;
    struct kl_cuda_table *t = map(fcntl(from, F_DUPFD_CLOEXEC, 0));
    if (!t) return NULL;
    if (t->file->magic != magic || t->file->inode != s.st_ino) {
        discard(t);
        return NULL;
    }
    begin(t);
    hold(t);
    end(t);
    return t;
}

void kl_cuda_table_close(struct kl_cuda_table *t)
{
    begin(t);
    if (t->holder < HOLDERS) t->file->holder[t->holder] = (struct holder){0};
    end(t);
    discard(t);
}

int kl_cuda_table_fd(const struct kl_cuda_table *t)
{
    return t->fd;
}

unsigned kl_cuda_table_devices(const struct kl_cuda_table *t)
{
    return t->file->wanted;
}

size_t kl_cuda_table_bytes(const struct kl_cuda_table *t)
{
    return t->file->bytes;
}

/* ---- the team ---- */

static bool is_in(const struct file *f, uint32_t added, int ordinal)
{
    uint32_t n = 0;

    while (n < added && f->ordinal[n] != ordinal) n++;
    return n < added;
}

cudaError_t kl_cuda_table_add(struct kl_cuda_table *t, int ordinal)
{
    struct file *f = t->file;
    cudaError_t rc = cudaErrorInvalidValue;

    begin(t);
    uint32_t added = kl_load_relaxed(&f->added), n = added;
    if (added < f->wanted && !is_in(f, added, ordinal)) {
        for (; n && f->ordinal[n - 1] > ordinal; n--) f->ordinal[n] = f->ordinal[n - 1];
        f->ordinal[n] = ordinal;
        kl_store_release(&f->added, added + 1);
        syscall(SYS_futex, &f->added, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        rc = cudaSuccess;
    }
    end(t);
    return rc;
}

/* Has a process that had the object open ended without closing it? */
static bool is_orphaned(struct kl_cuda_table *t)
{
    bool orphaned = false;

    begin(t);
    for (unsigned i = 0; i < HOLDERS && !orphaned; i++) {
        const struct holder *h = &t->file->holder[i];

        orphaned = h->pid && i != t->holder && !has(h->pid, h->fd, t->file->inode);
    }
    end(t);
    return orphaned;
}

cudaError_t kl_cuda_table_wait(struct kl_cuda_table *t)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    struct file *f = t->file;

    for (;;) {
        uint32_t added = kl_load_acquire(&f->added);

        if (added == f->wanted) return cudaSuccess;
        if (is_orphaned(t)) return cudaErrorIllegalState;
        syscall(SYS_futex, &f->added, FUTEX_WAIT, added, &look, NULL, 0);
    }
}

int kl_cuda_table_member(const struct kl_cuda_table *t, int ordinal)
{
    for (unsigned n = 0; n < t->file->wanted; n++)
        if (t->file->ordinal[n] == ordinal) return (int)n;
    return -1;
}

int kl_cuda_table_ordinal(const struct kl_cuda_table *t, unsigned member)
{
    return t->file->ordinal[member];
}

/* ---- bindings: with the lock ---- */

static void changed(struct file *f)
{
    (void)kl_fetch_add_acq_rel(&f->version, 1);
}

static bool overlap(const struct kl_cuda_binding *b, int ordinal, size_t offset, size_t bytes)
{
    return b->id && b->ordinal == ordinal && b->offset < offset + bytes && offset < b->offset + b->bytes;
}

/* Memory of processes that have ended gives its place up. */
static bool is_free(struct file *f, const struct kl_cuda_binding *wanted)
{
    for (unsigned i = 0; i < KL_CUDA_BINDINGS; i++) {
        struct kl_cuda_binding *b = &f->binding[i];

        if (!overlap(b, wanted->ordinal, wanted->offset, wanted->bytes)) continue;
        if (has(b->pid, b->fd, b->inode)) return false;
        *b = (struct kl_cuda_binding){0};
        changed(f);
    }
    return true;
}

static cudaError_t bind(struct file *f, struct kl_cuda_binding *binding)
{
    unsigned i = 0;

    if (!is_free(f, binding)) return cudaErrorInvalidValue;
    while (i < KL_CUDA_BINDINGS && f->binding[i].id) i++;
    if (i == KL_CUDA_BINDINGS) return cudaErrorMemoryAllocation;
    binding->id = ++f->last_id;
    f->binding[i] = *binding;
    changed(f);
    return cudaSuccess;
}

cudaError_t kl_cuda_table_bind(struct kl_cuda_table *t, struct kl_cuda_binding *binding)
{
    if (kl_cuda_table_member(t, binding->ordinal) < 0) return cudaErrorInvalidDevice;
    begin(t);
    cudaError_t rc = bind(t->file, binding);
    end(t);
    return rc;
}

static cudaError_t unbind(struct file *f, int ordinal, size_t offset, size_t bytes)
{
    unsigned n = 0;

    for (unsigned i = 0; i < KL_CUDA_BINDINGS; i++) {
        const struct kl_cuda_binding *b = &f->binding[i];

        if (!overlap(b, ordinal, offset, bytes)) continue;
        if (b->offset < offset || b->offset + b->bytes > offset + bytes) return cudaErrorInvalidValue;
        n++;
    }
    for (unsigned i = 0; n && i < KL_CUDA_BINDINGS; i++)
        if (overlap(&f->binding[i], ordinal, offset, bytes)) f->binding[i] = (struct kl_cuda_binding){0};
    if (n) changed(f);
    return n ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t kl_cuda_table_unbind(struct kl_cuda_table *t, int ordinal, size_t offset, size_t bytes)
{
    begin(t);
    cudaError_t rc = unbind(t->file, ordinal, offset, bytes);
    end(t);
    return rc;
}

void kl_cuda_table_drop(struct kl_cuda_table *t, uint64_t id)
{
    begin(t);
    for (unsigned i = 0; i < KL_CUDA_BINDINGS; i++) {
        if (t->file->binding[i].id != id) continue;
        t->file->binding[i] = (struct kl_cuda_binding){0};
        changed(t->file);
    }
    end(t);
}

uint64_t kl_cuda_table_version(const struct kl_cuda_table *t)
{
    return kl_load_acquire(&t->file->version);
}

uint64_t kl_cuda_table_read(struct kl_cuda_table *t, struct kl_cuda_binding list[KL_CUDA_BINDINGS])
{
    begin(t);
    memcpy(list, t->file->binding, sizeof t->file->binding);
    uint64_t version = kl_load_relaxed(&t->file->version);
    end(t);
    return version;
}
