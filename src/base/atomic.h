/* SPDX-License-Identifier: Apache-2.0 */
/**
 * atomic.h - the atomic operations Kolo uses, with the memory order in the name.
 *
 * A release store makes all earlier writes visible to a thread that reads the stored value with an acquire load.
 * Nothing here is sequentially consistent by default: where two locations must be ordered against each other (a flag
 * raised, then another read), kl_swap_seq_cst and kl_load_seq_cst say so at the call.
 * Source: ISO C11 7.17.3.
 */
#ifndef KL_BASE_ATOMIC_H
#define KL_BASE_ATOMIC_H

#include <stdatomic.h>

/** Distance that keeps two variables from sharing a line: 64-byte lines, fetched in pairs by many CPUs. */
#define KL_LINE 128

#define kl_load_relaxed(p)         atomic_load_explicit((p), memory_order_relaxed)
#define kl_load_acquire(p)         atomic_load_explicit((p), memory_order_acquire)
#define kl_load_seq_cst(p)         atomic_load_explicit((p), memory_order_seq_cst)
#define kl_store_relaxed(p, v)     atomic_store_explicit((p), (v), memory_order_relaxed)
#define kl_store_release(p, v)     atomic_store_explicit((p), (v), memory_order_release)
#define kl_fetch_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define kl_fetch_add_acq_rel(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define kl_fetch_add_seq_cst(p, v) atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)
#define kl_fetch_sub_acq_rel(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)
#define kl_fetch_or_acq_rel(p, v)  atomic_fetch_or_explicit((p), (v), memory_order_acq_rel)
#define kl_fetch_and_acq_rel(p, v) atomic_fetch_and_explicit((p), (v), memory_order_acq_rel)
#define kl_swap_acquire(p, v)      atomic_exchange_explicit((p), (v), memory_order_acquire)
#define kl_swap_acq_rel(p, v)      atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#define kl_swap_seq_cst(p, v)      atomic_exchange_explicit((p), (v), memory_order_seq_cst)

/** A single read of memory that a peer may be writing: the value that was checked is the value that is used. */
#define kl_read_once(p) (*(const volatile __typeof__(*(p)) *)(p))

/** Compare and swap; acquire and release on success, acquire on failure. `expected` is updated on failure. */
#define kl_cas_acq_rel(p, expected, v)                                                                                 \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel, memory_order_acquire)

/**
 * Full barrier against execution too: later instructions start only after earlier ones, loads included, have completed.
 * For measuring durations.
 */
static inline void kl_cpu_serialize(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    __asm__ __volatile__("dsb ld\n\tisb" : : : "memory");
#endif
}

/** Tell the core that this is a spin loop: saves power and lets a hyper-thread sibling run. */
static inline void kl_cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
