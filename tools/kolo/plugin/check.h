/* SPDX-License-Identifier: Apache-2.0 */
/**
 * check.h - `kolo plugin check`: checks of a plugin against the contract of its kind, without GPUs and without other hosts.
 *
 *     check.c        the table; each check runs in a process of its own, with a deadline
 *     result.c       verdict and figure
 *     trial.c        a pair of connections of a net plugin, and its messages
 *     net_life.c     tables, properties, connections, ends
 *     net_data.c     messages
 *     net_peer.c     another process, which is stopped or killed
 *     net_limits.c   leaks, memory, threads, a peer that dies
 *     collnet.c      two members of a network that reduces
 *     others.c       tuners, profilers, environment plugins
 *     rma.c          two members that write into each other's memory
 *
 * A check fails with the measured figure; the contract's sentence stands in the table.
 */
#ifndef KOLO_TOOL_PLUGIN_CHECK_H
#define KOLO_TOOL_PLUGIN_CHECK_H

#include "tools/kolo/plugin/result.h"

#include <stdio.h>

enum { KL_CHECKS = 21 };

struct kl_check {
    int number;
    const char *name, *contract;
    void (*run)(const char *file, struct kl_check_result *result);
};

/** The checks, in the order of their numbers. */
extern const struct kl_check kl_checks[KL_CHECKS];

/** Run one, with a deadline of `seconds`; it may crash, or not return: then it fails. */
void kl_check_run(const struct kl_check *check, const char *file, int seconds, struct kl_check_result *result);

/** Checks 1 to 16 are of net plugins, 17 to 21 of others. */
void kl_check_symbols(const char *file, struct kl_check_result *r);
void kl_check_cycles(const char *file, struct kl_check_result *r);
void kl_check_properties(const char *file, struct kl_check_result *r);
void kl_check_connecting(const char *file, struct kl_check_result *r);
void kl_check_handle(const char *file, struct kl_check_result *r);
void kl_check_calls(const char *file, struct kl_check_result *r);
void kl_check_order(const char *file, struct kl_check_result *r);
void kl_check_sizes(const char *file, struct kl_check_result *r);
void kl_check_buffers(const char *file, struct kl_check_result *r);
void kl_check_leaks(const char *file, struct kl_check_result *r);
void kl_check_closing(const char *file, struct kl_check_result *r);
void kl_check_memory(const char *file, struct kl_check_result *r);
void kl_check_threads(const char *file, struct kl_check_result *r);
void kl_check_errors(const char *file, struct kl_check_result *r);
void kl_check_environment(const char *file, struct kl_check_result *r);
void kl_check_remains(const char *file, struct kl_check_result *r);
void kl_check_collnet(const char *file, struct kl_check_result *r);
void kl_check_tuner(const char *file, struct kl_check_result *r);
void kl_check_profiler(const char *file, struct kl_check_result *r);
void kl_check_env(const char *file, struct kl_check_result *r);
void kl_check_rma(const char *file, struct kl_check_result *r);

#endif
