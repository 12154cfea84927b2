/* SPDX-License-Identifier: Apache-2.0 */
/**
 * log.h - NCCL's log: levels, subsystems, one write per line.
 *
 * Line:    host:pid:tid [dev] NCCL INFO text        (WARN: preceded by an empty line and a time; WARN, ATTN: with file:line)
 *          VERSION lines are the bare text; TRACE has milliseconds since first use and file:line before NCCL.
 * Where:   NCCL_DEBUG_FILE, else standard output. The destination is opened once.
 * Silent:  nothing is printed unless NCCL_DEBUG asks for it. The data path does not log.
 * Sizes:   text beyond about 2000 bytes of a line is cut. Control characters in it are shown as '?'.
 * Errors:  none, and errno is left alone, so that a line may stand before a KL_FAIL_ERRNO.
 * Threads: any; a line is one write(2), so lines of several ranks sharing a file do not interleave. No lock is taken:
 *          a line that is off costs one relaxed load. Works in a forked child, which shares the destination.
 * Source:  the runtime specification 8.2; NCCL's documentation of NCCL_DEBUG*.
 */
#ifndef KL_BASE_LOG_H
#define KL_BASE_LOG_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

enum kl_log_level {
    KL_LOG_NONE,
    KL_LOG_VERSION,
    KL_LOG_WARN,
    KL_LOG_ATTN, /* nothing fails, but something is not done as it was asked for */
    KL_LOG_INFO,
    KL_LOG_ABORT,
    KL_LOG_TRACE
};

enum kl_log_subsys { /* bits of NCCL_DEBUG_SUBSYS */
                     KL_INIT = 0x1,
                     KL_COLL = 0x2,
                     KL_P2P = 0x4,
                     KL_SHM = 0x8,
                     KL_NET = 0x10,
                     KL_GRAPH = 0x20,
                     KL_TUNING = 0x40,
                     KL_ENV = 0x80,
                     KL_ALLOC = 0x100,
                     KL_CALL = 0x200,
                     KL_PROXY = 0x400,
                     KL_NVLS = 0x800,
                     KL_BOOTSTRAP = 0x1000,
                     KL_REG = 0x2000,
                     KL_PROFILE = 0x4000,
                     KL_RAS = 0x8000,
                     KL_LOG_ALL = 0xffff
};

#define KL_LOG(level, subsys, ...)                                                                                     \
    do {                                                                                                               \
        if (kl_log_on((level), (subsys))) kl_log((level), (subsys), __FILE__, __LINE__, __VA_ARGS__);                  \
    } while (0)

/** The arguments are evaluated only if the line is printed. */
#define KL_INFO(subsys, ...)  KL_LOG(KL_LOG_INFO, (subsys), __VA_ARGS__)
#define KL_WARN(...)          KL_LOG(KL_LOG_WARN, KL_LOG_ALL, __VA_ARGS__)
#define KL_ATTN(...)          KL_LOG(KL_LOG_ATTN, KL_LOG_ALL, __VA_ARGS__)
#define KL_TRACE(subsys, ...) KL_LOG(KL_LOG_TRACE, (subsys), __VA_ARGS__)

/* The configuration in one word: subsystems in the low bits, the level above them; KL_LOG_UNREAD until first use. */
#define KL_LOG_LEVEL_SHIFT 20
#define KL_LOG_UNREAD      UINT32_MAX
extern _Atomic uint32_t kl_log_word;

/** Read NCCL_DEBUG* unless that was done, and return the configuration word. */
uint32_t kl_log_first_use(void);

/**
 * Would a line of this level and subsystem be printed? For callers whose arguments are costly to compute. Warnings are
 * never filtered by subsystem.
 */
static inline bool kl_log_on(enum kl_log_level level, unsigned subsys)
{
    uint32_t word = kl_load_relaxed(&kl_log_word);

    if (__builtin_expect(word == KL_LOG_UNREAD, 0)) word = kl_log_first_use();
    return (uint32_t)level <= word >> KL_LOG_LEVEL_SHIFT && (level <= KL_LOG_ATTN || (word & subsys));
}

/** Print one line if level and subsystem are asked for. `file` and `line` are shown by WARN and TRACE. */
void kl_log(enum kl_log_level level, unsigned subsys, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/** Print one line, formatted like INFO, that was requested by other means than NCCL_DEBUG. */
void kl_log_asked(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** The device ordinal shown in the calling thread's lines; -1, the initial value, shows none. */
void kl_log_set_device(int device);

/**
 * Read NCCL_DEBUG* again and open the destination, if it is another one. Earlier destinations stay open, because other
 * threads may be writing to them.
 */
void kl_log_reset(void);

#endif
