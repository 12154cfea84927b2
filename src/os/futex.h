/* SPDX-License-Identifier: Apache-2.0 */
/** futex.h - sleep on a word of this process, and wake sleepers. Source: futex(2). */
#ifndef KL_OS_FUTEX_H
#define KL_OS_FUTEX_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/** Sleep while *word is `value`, at most `ns`. May return for any reason: check the word again. */
static inline void kl_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

/** Wake one thread that sleeps on the word. */
static inline void kl_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
