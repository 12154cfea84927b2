/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/multicast.h"

#include "base/atomic.h"
#include "compat/cuda/core/multicast_table.h"
#include "compat/cuda/core/window.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory that this process bound. */
struct kept {
    struct kl_cuda_bound_memory memory; /* fd: a descriptor of this object's own, for the others */
    uint64_t id;
    struct kept *next;
};

struct kl_cuda_multicast {
    struct kl_cuda_table *table;
    struct kept *kept;
    char *window;             /* of all devices, one behind the other; NULL: never mapped */
    _Atomic uint64_t version; /* of the bindings that the windows show */
    struct kl_cuda_binding shown[KL_CUDA_BINDINGS], now[KL_CUDA_BINDINGS];
    bool missing[KL_CUDA_BINDINGS]; /* of those that are shown: the memory is gone */
    struct kl_cuda_multicast *next;
};

/* Where an object is mapped. */
struct view {
    struct kl_cuda_multicast *of;
    const char *base;
    size_t bytes, offset;
    bool allowed;
    struct view *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_cuda_multicast *objects;
static struct view *views;
static _Atomic uint64_t epoch = 1; /* changes with the views */

/* ---- open and close ---- */

static struct kl_cuda_multicast *with(struct kl_cuda_table *table)
{
    struct kl_cuda_multicast *m = table ? calloc(1, sizeof *m) : NULL;

    if (!m) {
        if (table) kl_cuda_table_close(table);
        return NULL;
    }
    m->table = table;
    pthread_mutex_lock(&lock);
    m->next = objects;
    objects = m;
    pthread_mutex_unlock(&lock);
    return m;
}

struct kl_cuda_multicast *kl_cuda_multicast_create(unsigned devices, size_t bytes)
{
    return with(kl_cuda_table_create(devices, bytes));
}

struct kl_cuda_multicast *kl_cuda_multicast_open(int fd)
{
    return with(kl_cuda_table_open(fd));
}

struct kl_cuda_table *kl_cuda_multicast_table(struct kl_cuda_multicast *m)
{
    return m->table;
}

static size_t window_bytes(const struct kl_cuda_multicast *m)
{
    return kl_cuda_table_devices(m->table) * kl_cuda_table_bytes(m->table);
}

static void let_go(struct kept *k)
{
    close(k->memory.fd);
    k->memory.drop(k->memory.owner);
    free(k);
}

void kl_cuda_multicast_close(struct kl_cuda_multicast *m)
{
    struct kl_cuda_multicast **at = &objects;

    pthread_mutex_lock(&lock);
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    pthread_mutex_unlock(&lock);
    while (m->kept) {
        struct kept *k = m->kept;

        m->kept = k->next;
        kl_cuda_table_drop(m->table, k->id);
        let_go(k);
    }
    if (m->window) munmap(m->window, window_bytes(m));
    kl_cuda_table_close(m->table);
    free(m);
}

/* ---- bind ---- */

cudaError_t kl_cuda_multicast_bind(struct kl_cuda_multicast *m, size_t offset, size_t bytes,
                                   const struct kl_cuda_bound_memory *memory)
{
    struct kept *k = malloc(sizeof *k);
    int fd = k ? fcntl(memory->fd, F_DUPFD_CLOEXEC, 0) : -1;
    struct kl_cuda_binding binding = {.offset = offset,
                                      .bytes = bytes,
                                      .ordinal = memory->ordinal,
                                      .pid = getpid(),
                                      .fd = fd,
                                      .segment_offset = memory->offset};

    if (fd < 0) {
        free(k);
        return cudaErrorMemoryAllocation;
    }
    binding.inode = kl_cuda_segment_number(fd);
    cudaError_t rc = kl_cuda_table_bind(m->table, &binding);
    if (rc) {
        close(fd);
        free(k);
        return rc;
    }
    *k = (struct kept){.memory = *memory, .id = binding.id, .next = m->kept};
    k->memory.fd = fd;
    m->kept = k;
    return cudaSuccess;
}

static bool is_bound(const struct kl_cuda_multicast *m, uint64_t id)
{
    unsigned i = 0;

    while (i < KL_CUDA_BINDINGS && m->now[i].id != id) i++;
    return i < KL_CUDA_BINDINGS;
}

/* Let memory go that is bound no more. */
static void sweep(struct kl_cuda_multicast *m)
{
    pthread_mutex_lock(&lock); /* `now` is also written by threads that show bindings */
    kl_cuda_table_read(m->table, m->now);
    struct kept *gone = NULL, **at = &m->kept;
    while (*at) {
        struct kept *k = *at;

        if (is_bound(m, k->id)) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        k->next = gone;
        gone = k;
    }
    pthread_mutex_unlock(&lock);
    while (gone) {
        struct kept *k = gone;

        gone = k->next;
        let_go(k);
    }
}

static bool same(struct kl_cuda_multicast *a, struct kl_cuda_multicast *b)
{
    return kl_cuda_segment_number(kl_cuda_table_fd(a->table)) == kl_cuda_segment_number(kl_cuda_table_fd(b->table));
}

/* The process may have the object open more than once, and have bound the memory through another opening. */
cudaError_t kl_cuda_multicast_unbind(struct kl_cuda_multicast *m, int ordinal, size_t offset, size_t bytes)
{
    KL_CUDA_TRY(kl_cuda_table_unbind(m->table, ordinal, offset, bytes));
    for (struct kl_cuda_multicast *o = objects; o; o = o->next)
        if (same(m, o)) sweep(o);
    return cudaSuccess;
}

/* ---- windows: with the lock ---- */

static char *place_of(const struct kl_cuda_multicast *m, const struct kl_cuda_binding *b)
{
    const size_t member = (size_t)kl_cuda_table_member(m->table, b->ordinal);

    return m->window + member * kl_cuda_table_bytes(m->table) + b->offset;
}

static void hide(struct kl_cuda_multicast *m, const struct kl_cuda_binding *b)
{
    (void)mmap(place_of(m, b), b->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static bool show(struct kl_cuda_multicast *m, const struct kl_cuda_binding *b)
{
    int fd = kl_cuda_binding_open(b);

    if (fd < 0) return false;
    void *p =
        mmap(place_of(m, b), b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)b->segment_offset);
    close(fd);
    return p != MAP_FAILED;
}

/* First all that go, as another one may take their place. */
static void update(struct kl_cuda_multicast *m)
{
    uint64_t version = kl_cuda_table_read(m->table, m->now);

    for (unsigned i = 0; i < KL_CUDA_BINDINGS; i++)
        if (m->shown[i].id && m->shown[i].id != m->now[i].id) hide(m, &m->shown[i]);
    for (unsigned i = 0; i < KL_CUDA_BINDINGS; i++) {
        if (m->shown[i].id == m->now[i].id) continue;
        m->shown[i] = m->now[i];
        m->missing[i] = m->now[i].id && !show(m, &m->now[i]);
    }
    kl_store_release(&m->version, version);
}

/* ---- views ---- */

cudaError_t kl_cuda_multicast_map(struct kl_cuda_multicast *m, char *base, size_t bytes, size_t offset)
{
    struct view *v = malloc(sizeof *v);

    if (!v) return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&lock);
    if (!m->window) {
        void *p = mmap(NULL, window_bytes(m), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (p != MAP_FAILED) m->window = p;
    }
    if (m->window) {
        *v = (struct view){.of = m, .base = base, .bytes = bytes, .offset = offset, .next = views};
        views = v;
        update(m);
        (void)kl_fetch_add_acq_rel(&epoch, 1);
    }
    pthread_mutex_unlock(&lock);
    if (m->window) return cudaSuccess;
    free(v);
    return cudaErrorMemoryAllocation;
}

static struct view *view_at(const char *p)
{
    struct view *v = views;

    while (v && (p < v->base || (size_t)(p - v->base) >= v->bytes)) v = v->next;
    return v;
}

void kl_cuda_multicast_allow(const char *base, bool access)
{
    pthread_mutex_lock(&lock);
    view_at(base)->allowed = access;
    (void)kl_fetch_add_acq_rel(&epoch, 1);
    pthread_mutex_unlock(&lock);
}

void kl_cuda_multicast_unmap(const char *base)
{
    struct view **at = &views;

    pthread_mutex_lock(&lock);
    while ((*at)->base != base) at = &(*at)->next;
    struct view *v = *at;
    *at = v->next;
    (void)kl_fetch_add_acq_rel(&epoch, 1);
    pthread_mutex_unlock(&lock);
    free(v);
}

/* ---- copies ---- */

/* The view that a thread used last, while the views and its bindings stay as they are. */
struct last {
    uint64_t epoch, version;
    struct kl_cuda_table *table;
    const char *base;
    size_t bytes, stride;
    char *window; /* of the first device, where the view begins */
    unsigned count;
};

static __thread struct last last;

/* With the lock. */
static const char *look_up(const char *p)
{
    struct view *v = view_at(p);

    if (!v) return "a multimem instruction at an address without a multicast object";
    if (!v->allowed) return "a multimem instruction at an address that no device has access to (cuMemSetAccess)";
    if (kl_cuda_table_version(v->of->table) != kl_load_relaxed(&v->of->version)) update(v->of);
    last = (struct last){.epoch = kl_load_relaxed(&epoch),
                         .version = kl_load_relaxed(&v->of->version),
                         .table = v->of->table,
                         .base = v->base,
                         .bytes = v->bytes,
                         .stride = kl_cuda_table_bytes(v->of->table),
                         .window = v->of->window + v->offset,
                         .count = kl_cuda_table_devices(v->of->table)};
    return NULL;
}

static bool is_last(const char *p)
{
    return last.epoch == kl_load_acquire(&epoch) && p >= last.base && (size_t)(p - last.base) < last.bytes &&
           last.version == kl_cuda_table_version(last.table);
}

const char *kl_cuda_multicast_copies(const void *address, size_t bytes, struct kl_cuda_copies *copies)
{
    const char *p = address, *why = NULL;

    if (!is_last(p)) {
        pthread_mutex_lock(&lock);
        why = look_up(p);
        pthread_mutex_unlock(&lock);
    }
    if (why) return why;
    if (bytes > last.bytes - (size_t)(p - last.base))
        return "a multimem instruction beyond the end of a multicast object";
    *copies =
        (struct kl_cuda_copies){.first = last.window + (p - last.base), .stride = last.stride, .count = last.count};
    return NULL;
}

/* ---- words ---- */

static __thread char words[192];

/* An address in the windows: nothing is bound there, or its memory is gone. */
static const char *explain_window(const struct kl_cuda_multicast *m, const char *p)
{
    const size_t at = (size_t)(p - m->window), bytes = kl_cuda_table_bytes(m->table);
    const int ordinal = kl_cuda_table_ordinal(m->table, (unsigned)(at / bytes));

    snprintf(words, sizeof words, "a multimem instruction where no memory of device %d is bound", ordinal);
    for (unsigned i = 0; i < KL_CUDA_BINDINGS; i++) {
        const struct kl_cuda_binding *b = &m->shown[i];

        if (b->id && m->missing[i] && b->ordinal == ordinal && at % bytes - b->offset < b->bytes)
            snprintf(words, sizeof words,
                     "a multimem instruction whose memory of device %d is gone, as process %d has ended", ordinal,
                     (int)b->pid);
    }
    return words;
}

const char *kl_cuda_multicast_explain(const void *address)
{
    const char *p = address, *why = NULL;

    pthread_mutex_lock(&lock);
    if (view_at(p)) why = "an access to a multicast object, which only multimem instructions may access";
    for (const struct kl_cuda_multicast *m = objects; m && !why; m = m->next)
        if (m->window && p >= m->window && (size_t)(p - m->window) < window_bytes(m)) why = explain_window(m, p);
    pthread_mutex_unlock(&lock);
    return why;
}
