/* SPDX-License-Identifier: Apache-2.0 */
/**
 * arrivals.h - one word in memory that counts arrivals in phases: mbarrier objects, and cuda::barrier above them.
 *
 * A phase ends when no arrival and no byte of a copy is outstanding in it; the next one begins at once, with as many arrivals as are expected.
 * Threads that wait let others run. Any thread of the block may call any function; of the host's too, where the word is in its memory.
 */
#ifndef KOLO_CUDA_ARRIVALS_H
#define KOLO_CUDA_ARRIVALS_H

#pragma GCC system_header

#include "abi.h"

namespace __kolo
{

/* Bits from the lowest: arrivals outstanding, arrivals of each phase, the phase, bytes outstanding (signed: they may come first). */
struct arrivals {
    enum : unsigned { each_at = 20, phase_at = 40, bytes_at = 42 };
    static constexpr uint64_t most = (1u << 20) - 1;

    static uint64_t pending(uint64_t word)
    {
        return word & most;
    }
    static uint64_t each(uint64_t word)
    {
        return word >> each_at & most;
    }
    static uint64_t phase(uint64_t word)
    {
        return word >> phase_at & 3;
    }
    static bool is_over(uint64_t word)
    {
        return !pending(word) && !(word >> bytes_at);
    }
    static uint64_t load(const uint64_t *word)
    {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }

    static void init(uint64_t *word, uint64_t count)
    {
        __atomic_store_n(word, count | count << each_at, __ATOMIC_RELEASE);
    }

    /** The word before: arrive `count` times, of which `drops` do not come in later phases, and expect `bytes` more. */
    template <class Completion>
    static uint64_t change(uint64_t *word, uint64_t count, uint64_t drops, int64_t bytes, Completion at_the_end)
    {
        uint64_t before = load(word), after;
        bool ends;

        do {
            after = before - count - (drops << each_at) + ((uint64_t)bytes << bytes_at);
            ends = is_over(after);
        } while (!__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
        if (!ends) return before;
        at_the_end();
        __atomic_store_n(word, each(after) | each(after) << each_at | ((phase(after) + 1) & 3) << phase_at,
                         __ATOMIC_RELEASE);
        return before;
    }
    static uint64_t change(uint64_t *word, uint64_t count, uint64_t drops = 0, int64_t bytes = 0)
    {
        return change(word, count, drops, bytes, [] {});
    }

    /** Has the phase in which `token` was the word ended? One that asks in vain lets others run. */
    static bool ended(const uint64_t *word, uint64_t token)
    {
        if (phase(load(word)) != phase(token)) return true;
        __koloYield();
        return phase(load(word)) != phase(token);
    }
    static bool ended_parity(const uint64_t *word, bool parity)
    {
        if ((phase(load(word)) & 1) != parity) return true;
        __koloYield();
        return (phase(load(word)) & 1) != parity;
    }
};

} // namespace __kolo

#endif
