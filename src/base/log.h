/* SPDX-License-Identifier: Apache-2.0 */
/**
 * log.h - NCCL's log: levels, subsystems, one write per line.
 *
 * Line:    host:pid:tid [dev] NCCL INFO text        (WARN: preceded by an empty line and a time, with file:line)
 * Silent:  nothing is printed unless NCCL_DEBUG asks for it. The data path does not log.
 * Threads: any; a line is one write(2), so lines of several ranks sharing a file do not interleave.
 * Source:  the runtime specification 8.2; NCCL's documentation of NCCL_DEBUG*.
 */
#ifndef KL_BASE_LOG_H
#define KL_BASE_LOG_H

#include <stdbool.h>

enum kl_log_level { KL_LOG_NONE, KL_LOG_VERSION, KL_LOG_WARN, KL_LOG_INFO, KL_LOG_ABORT, KL_LOG_TRACE };

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

#define KL_INFO(subsys, ...)  kl_log(KL_LOG_INFO, (subsys), __FILE__, __LINE__, __VA_ARGS__)
#define KL_WARN(...)          kl_log(KL_LOG_WARN, KL_LOG_ALL, __FILE__, __LINE__, __VA_ARGS__)
#define KL_TRACE(subsys, ...) kl_log(KL_LOG_TRACE, (subsys), __FILE__, __LINE__, __VA_ARGS__)

/** Would such a line be printed? For callers whose arguments are costly. */
bool kl_log_on(enum kl_log_level level, unsigned subsys);

/** Print one line if level and subsystem are asked for. `file` and `line` are shown by WARN and TRACE. */
void kl_log(enum kl_log_level level, unsigned subsys, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/** The device ordinal shown in the calling thread's lines; -1 shows none. */
void kl_log_set_device(int device);

/** Read NCCL_DEBUG* again (the parameter loader calls this once at first use; tests call it after setenv). */
void kl_log_reset(void);

#endif
