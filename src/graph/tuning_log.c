/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning.h"

#include "base/log.h"

#include <stdio.h>

static void log_function(const struct kl_tuning *t, int func, int first, int end)
{
    char line[256];
    size_t used = (size_t)snprintf(line, sizeof line, "%13s |", kl_func_name[func]);

    for (int a = first; a < end; a++)
        for (int p = 0; p < KL_PROTOS && used < sizeof line; p++)
            used += (size_t)snprintf(line + used, sizeof line - used, "%8.1f/%6.1f |", t->latency[func][a][p],
                                     t->bandwidth[func][a][p]);
    KL_INFO(KL_TUNING, "%s", line);
}

static void log_block(const struct kl_tuning *t, int first, int end)
{
    char names[256] = "", threads_line[256] = "";
    size_t a_used = 0, t_used = 0;

    for (int a = first; a < end; a++)
        for (int p = 0; p < KL_PROTOS; p++) {
            if (a_used < sizeof names)
                a_used += (size_t)snprintf(names + a_used, sizeof names - a_used, "%8s %6s |", kl_algo_name[a],
                                           kl_proto_name[p]);
            if (t_used < sizeof threads_line)
                t_used += (size_t)snprintf(threads_line + t_used, sizeof threads_line - t_used, "%15d |",
                                           t->max_threads[a][p]);
        }
    KL_INFO(KL_TUNING, "%13s |%s", "Algorithm", names);
    KL_INFO(KL_TUNING, "%13s |%s", "Max NThreads", threads_line);
    for (int f = 0; f < KL_FUNCS; f++) log_function(t, f, first, end);
}

void kl_tuning_log(const struct kl_tuning *t)
{
    if (!kl_log_on(KL_LOG_INFO, KL_TUNING)) return;
    for (int a = 0; a < KL_ALGOS; a += 3) log_block(t, a, a + 3 < KL_ALGOS ? a + 3 : KL_ALGOS);
}
