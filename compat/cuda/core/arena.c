/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/arena.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* A span of the arena, in address order, without gaps: piece, free, piece, ... No two free ones are neighbours. */
struct span {
    size_t offset, bytes;
    bool taken;
};

struct kl_cuda_arena {
    pthread_mutex_t lock;
    int fd;
    char *base;
    size_t bytes, used;
    struct span *span;
    size_t nspans, room;
};

struct kl_cuda_arena *kl_cuda_arena_create(size_t bytes, const char *name)
{
    struct kl_cuda_arena *a = calloc(1, sizeof *a);

    if (!a) return NULL;
    pthread_mutex_init(&a->lock, NULL);
    a->bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    a->base = MAP_FAILED;
    a->room = 64;
    a->span = malloc(a->room * sizeof *a->span);
    a->fd = memfd_create(name, MFD_CLOEXEC);
    if (a->span && a->fd >= 0 && !ftruncate(a->fd, (off_t)a->bytes))
        a->base = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, a->fd, 0);
    if (a->base == MAP_FAILED) {
        kl_cuda_arena_close(a);
        return NULL;
    }
    a->span[0] = (struct span){.bytes = a->bytes};
    a->nspans = 1;
    return a;
}

void kl_cuda_arena_close(struct kl_cuda_arena *a)
{
    if (!a) return;
    if (a->base != MAP_FAILED) munmap(a->base, a->bytes);
    if (a->fd >= 0) close(a->fd);
    pthread_mutex_destroy(&a->lock);
    free(a->span);
    free(a);
}

/* ---- spans ---- */

static bool insert(struct kl_cuda_arena *a, size_t at, struct span s)
{
    if (a->nspans == a->room) {
        struct span *grown = realloc(a->span, 2 * a->room * sizeof *grown);
        if (!grown) return false;
        a->span = grown;
        a->room *= 2;
    }
    memmove(a->span + at + 1, a->span + at, (a->nspans - at) * sizeof *a->span);
    a->span[at] = s;
    a->nspans++;
    return true;
}

static void drop(struct kl_cuda_arena *a, size_t at)
{
    memmove(a->span + at, a->span + at + 1, (a->nspans - at - 1) * sizeof *a->span);
    a->nspans--;
}

/* The number of the span that begins at the offset; nspans if none does. */
static size_t find(const struct kl_cuda_arena *a, size_t offset)
{
    size_t low = 0, high = a->nspans;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (a->span[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a->nspans && a->span[low].offset == offset ? low : a->nspans;
}

/* Make `bytes` from `begin` on a span of its own within the free span `at`; the rest before and behind it stays free. */
static bool take(struct kl_cuda_arena *a, size_t at, size_t begin, size_t bytes)
{
    struct span s = a->span[at];
    size_t before = begin - s.offset, behind = s.bytes - before - bytes;

    if (behind && !insert(a, at + 1, (struct span){.offset = begin + bytes, .bytes = behind})) return false;
    if (before) {
        if (!insert(a, at + 1, (struct span){.offset = begin, .bytes = bytes, .taken = true})) {
            if (behind) drop(a, at + 1);
            return false;
        }
        a->span[at].bytes = before;
    } else {
        a->span[at] = (struct span){.offset = begin, .bytes = bytes, .taken = true};
    }
    a->used += bytes;
    return true;
}

/* ---- pieces ---- */

void *kl_cuda_arena_cut(struct kl_cuda_arena *a, size_t bytes, size_t align)
{
    void *piece = NULL;

    if (bytes > a->bytes) return NULL;
    if (align < KL_CUDA_PIECE) align = KL_CUDA_PIECE;
    bytes = bytes ? (bytes + KL_CUDA_PIECE - 1) / KL_CUDA_PIECE * KL_CUDA_PIECE : KL_CUDA_PIECE;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->nspans && !piece; i++) {
        const struct span *s = &a->span[i];
        size_t begin = (s->offset + align - 1) & ~(align - 1);

        if (s->taken || begin - s->offset >= s->bytes || s->bytes - (begin - s->offset) < bytes) continue;
        if (!take(a, i, begin, bytes)) break;
        piece = a->base + begin;
    }
    pthread_mutex_unlock(&a->lock);
    return piece;
}

/* Return whole pages to the machine, so that a new piece there is zero; clear the parts of pages shared with neighbours. */
static void give_back(struct kl_cuda_arena *a, struct span s)
{
    size_t first = (s.offset + PAGE - 1) / PAGE * PAGE, last = (s.offset + s.bytes) / PAGE * PAGE;

    if (first >= last) {
        memset(a->base + s.offset, 0, s.bytes);
        return;
    }
    memset(a->base + s.offset, 0, first - s.offset);
    memset(a->base + last, 0, s.offset + s.bytes - last);
    if (fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first, (off_t)(last - first)))
        memset(a->base + first, 0, last - first);
}

void kl_cuda_arena_free(struct kl_cuda_arena *a, void *piece)
{
    pthread_mutex_lock(&a->lock);
    size_t i = find(a, kl_cuda_arena_offset(a, piece));
    if (i < a->nspans && a->span[i].taken) {
        give_back(a, a->span[i]);
        a->used -= a->span[i].bytes;
        a->span[i].taken = false;
        if (i + 1 < a->nspans && !a->span[i + 1].taken) {
            a->span[i].bytes += a->span[i + 1].bytes;
            drop(a, i + 1);
        }
        if (i && !a->span[i - 1].taken) {
            a->span[i - 1].bytes += a->span[i].bytes;
            drop(a, i);
        }
    }
    pthread_mutex_unlock(&a->lock);
}

int kl_cuda_arena_fd(const struct kl_cuda_arena *a)
{
    return a->fd;
}

size_t kl_cuda_arena_offset(const struct kl_cuda_arena *a, const void *address)
{
    return (size_t)((const char *)address - a->base);
}

size_t kl_cuda_arena_used(struct kl_cuda_arena *a)
{
    pthread_mutex_lock(&a->lock);
    size_t used = a->used;
    pthread_mutex_unlock(&a->lock);
    return used;
}
