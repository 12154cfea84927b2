/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/bulk_copy.h"

#include "os/cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { GUESS = 8 << 20, PIECE = 256 << 10 };
enum { OWN = 2, OWN_GUESS = 1 << 20 }; /* cache level that is mostly private to a core */

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Of the first CPU; constant after the first query, which takes system calls. */
static struct kl_cache own, last;
static size_t cpus;

static void ask(void)
{
    const char *const dir = "/sys/devices/system/cpu/cpu0/cache";
    const long online = sysconf(_SC_NPROCESSORS_ONLN);

    own = kl_cache_of(dir, OWN);
    last = kl_cache_of(dir, KL_CACHE_LAST);
    if (!own.bytes) own.bytes = OWN_GUESS;
    if (!last.bytes) last.bytes = GUESS;
    cpus = online > 1 ? (size_t)online : 1;
}

size_t kl_cache_bytes(void)
{
    pthread_once(&once, ask);
    return last.bytes;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Cores that this many ranks keep busy. */
static size_t busy_cores(size_t nranks)
{
    pthread_once(&once, ask);
    return min_size(nranks, cpus);
}

int kl_cache_cores(void)
{
    pthread_once(&once, ask);
    return (int)cpus;
}

size_t kl_cache_own_bytes(int nranks)
{
    return busy_cores((size_t)nranks) * own.bytes;
}

/* Others use the last level as well: only 1/PART of it counts. */
enum { PART = 2 };

/* Are lines taken from another core's cache more slowly than from the shared cache? Measured: on AMD yes, on Intel
 * no. */
static bool takes_lines_slowly(void)
{
#ifdef __x86_64__
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}

/* Large enough to be evicted from the other cores' private caches, small enough to stay in the shared cache. */
static size_t leaving_cycle(size_t busy, size_t n)
{
    return min_size(2 * own.bytes, last.bytes / PART / min_size((size_t)last.cpus, busy)) * busy / n;
}

/* Small enough to stay in the private cache, beside buffers; but large enough to run ahead of ranks that wait for
 * their turns on a core. */
static size_t staying_cycle(size_t busy, size_t n)
{
    const size_t half = own.bytes / 2 * busy / n, least = own.bytes / 4;

    return half > least ? half : least;
}

size_t kl_cache_cycle(int nranks)
{
    const size_t n = nranks > 1 ? (size_t)nranks : 1, busy = busy_cores(n);

    return takes_lines_slowly() ? leaving_cycle(busy, n) : staying_cycle(busy, n);
}

static bool overlap(const char *to, const char *from, size_t bytes)
{
    return to < from + bytes && from < to + bytes;
}

void kl_copy_bulk(void *to, const void *from, size_t bytes)
{
    char *t = to;
    const char *f = from;

    if (overlap(t, f, bytes)) {
        memmove(t, f, bytes);
        return;
    }
    for (; bytes > PIECE; t += PIECE, f += PIECE, bytes -= PIECE) memcpy(t, f, PIECE);
    memcpy(t, f, bytes);
}

void kl_copy_result(void *to, const void *from, size_t bytes, bool nt)
{
    if (nt) {
        kl_copy_nontemporal(to, from, bytes, NULL);
        kl_nontemporal_fence();
    } else {
        kl_copy_bulk(to, from, bytes);
    }
}

#ifdef __SSE2__

enum { LINE = 64 };

static void prefetch(const char *ahead, size_t at)
{
    if (ahead) _mm_prefetch(ahead + at, _MM_HINT_T0);
}

static void store_line(char *to, const char *from)
{
    for (int i = 0; i < LINE; i += (int)sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
}

/* Whole lines, so that each is written at once. */
void kl_copy_nontemporal(void *to, const void *from, size_t bytes, const void *ahead)
{
    char *t = to;
    const char *f = from;
    size_t head = -(uintptr_t)t % LINE, at;

    if (head > bytes) head = bytes;
    memcpy(t, f, head);
    for (at = head; bytes - at >= LINE; at += LINE) {
        prefetch(ahead, at);
        store_line(t + at, f + at);
    }
    memcpy(t + at, f + at, bytes - at);
}

void kl_nontemporal_fence(void)
{
    _mm_sfence();
}

#else

void kl_copy_nontemporal(void *to, const void *from, size_t bytes, const void *ahead)
{
    (void)ahead;
    memcpy(to, from, bytes);
}

void kl_nontemporal_fence(void)
{
}

#endif
