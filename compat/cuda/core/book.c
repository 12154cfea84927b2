/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/book.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct kl_cuda_range *ranges; /* by address */
static size_t count, room;
static uint64_t last_id;

/* The number of ranges that begin at the address or before. */
static size_t upto(const char *address)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t extent(const struct kl_cuda_range *r)
{
    return r->bytes ? r->bytes : 1;
}

/* The range that the address is in. */
static struct kl_cuda_range *within(const char *address)
{
    size_t n = upto(address);

    return n && (size_t)(address - ranges[n - 1].base) < extent(&ranges[n - 1]) ? &ranges[n - 1] : NULL;
}

static bool overlaps(const char *address, size_t bytes)
{
    size_t n = upto(address);

    return within(address) || (n < count && (size_t)(ranges[n].base - address) < bytes);
}

bool kl_cuda_book_add(struct kl_cuda_range *range)
{
    bool fits = true;

    pthread_rwlock_wrlock(&lock);
    if (count == room) {
        struct kl_cuda_range *grown = realloc(ranges, (room ? 2 * room : 256) * sizeof *grown);

        fits = grown != NULL;
        if (grown) {
            ranges = grown;
            room = room ? 2 * room : 256;
        }
    }
    if (fits) fits = !overlaps(range->base, extent(range));
    if (fits) {
        size_t at = upto(range->base);

        range->id = ++last_id;
        memmove(ranges + at + 1, ranges + at, (count - at) * sizeof *ranges);
        ranges[at] = *range;
        count++;
    }
    pthread_rwlock_unlock(&lock);
    return fits;
}

bool kl_cuda_book_find(const void *address, struct kl_cuda_range *range)
{
    pthread_rwlock_rdlock(&lock);
    const struct kl_cuda_range *found = within(address);
    if (found) *range = *found;
    pthread_rwlock_unlock(&lock);
    return found != NULL;
}

bool kl_cuda_book_overlaps(const void *address, size_t bytes)
{
    pthread_rwlock_rdlock(&lock);
    bool yes = overlaps(address, bytes);
    pthread_rwlock_unlock(&lock);
    return yes;
}

bool kl_cuda_book_take(const void *base, unsigned kinds, struct kl_cuda_range *range)
{
    pthread_rwlock_wrlock(&lock);
    struct kl_cuda_range *found = within(base);
    bool yes = found && found->base == base && kinds >> found->kind & 1;
    if (yes) {
        size_t at = (size_t)(found - ranges);

        *range = *found;
        memmove(ranges + at, ranges + at + 1, (count - at - 1) * sizeof *ranges);
        count--;
    }
    pthread_rwlock_unlock(&lock);
    return yes;
}

bool kl_cuda_book_next(const void *after, struct kl_cuda_range *range)
{
    pthread_rwlock_rdlock(&lock);
    size_t at = after ? upto(after) : 0;
    bool yes = at < count;
    if (yes) *range = ranges[at];
    pthread_rwlock_unlock(&lock);
    return yes;
}
