/* SPDX-License-Identifier: Apache-2.0 */
/**
 * prefetch.h - ask for lines that other cores hold before they are needed.
 *
 * To be written: a store to a line that another core has read last waits until the line is taken from there, and stores are seen in their order: a copy of some
 * KiB waits for one line after the other. A hint asks for many at once. On 2 cores of an Intel Xeon a message of 2 KiB takes 0.7 us so, else 1.1 us.
 * To be read: only lines that have been written already. Any other is taken from its writer too early, and once more when it is written.
 *
 * Threads: any. Nothing is changed.
 */
#ifndef KL_BASE_PREFETCH_H
#define KL_BASE_PREFETCH_H

#include <stddef.h>
#include <string.h>

/* Bytes of a line; and of what is asked for at a time, at most: of more the first would be gone again before the last are used. */
enum { KL_PREFETCH_LINE = 64, KL_PREFETCH_MOST = 8192 };

/* By hand: compilers use the first one only for processors that are sure to have it (others take it for nothing), and GCC takes a function that does nothing
 * but prefetch for one that does nothing. */
static inline void kl_prefetch_line_to_write(const void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#elif defined(__aarch64__)
    __asm__ volatile("prfm pstl1keep, %a0" : : "p"(at));
#else
    __builtin_prefetch(at, 1);
#endif
}

static inline void kl_prefetch_line_to_read(const void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetcht0 %0" : : "m"(*(const char *)at));
#elif defined(__aarch64__)
    __asm__ volatile("prfm pldl1keep, %a0" : : "p"(at));
#else
    __builtin_prefetch(at);
#endif
}

/** All lines of `bytes`, unless these are too many. */
static inline void kl_prefetch_to_write(const void *at, size_t bytes)
{
    if (bytes > KL_PREFETCH_MOST) return;
    for (size_t i = 0; i < bytes; i += KL_PREFETCH_LINE) kl_prefetch_line_to_write((const char *)at + i);
}

static inline void kl_prefetch_to_read(const void *at, size_t bytes)
{
    if (bytes > KL_PREFETCH_MOST) return;
    for (size_t i = 0; i < bytes; i += KL_PREFETCH_LINE) kl_prefetch_line_to_read((const char *)at + i);
}

/** As memcpy, to where other cores have read last. */
static inline void kl_copy_prefetched(void *to, const void *from, size_t bytes)
{
    kl_prefetch_to_write(to, bytes);
    memcpy(to, from, bytes);
}

#endif
