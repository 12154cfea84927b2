/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/bulk_copy.h"

#include "os/cache.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { GUESS = 8 << 20, PIECE = 256 << 10 };

static size_t ask_cache(void)
{
    const size_t bytes = kl_cache_last_bytes("/sys/devices/system/cpu/cpu0/cache");

    return bytes ? bytes : GUESS;
}

size_t kl_cache_bytes(void)
{
    static _Atomic size_t bytes; /* the same whoever asks first */

    if (!bytes) bytes = ask_cache();
    return bytes;
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
