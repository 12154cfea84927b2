/* SPDX-License-Identifier: Apache-2.0 */
#include "os/yield.h"

#include "base/threadlocal.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

int sched_yield(void); /* <sched.h> conflicts with the kernel's headers */

enum { SHORTEST_NS = 100000 }; /* the shortest slice that Linux grants */

static void shorten_slices(void)
{
    struct sched_attr a = {.size = sizeof a};

    if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0)) return;
    if (a.sched_policy != SCHED_NORMAL && a.sched_policy != SCHED_BATCH) return;
    a.sched_runtime = SHORTEST_NS;
    syscall(SYS_sched_setattr, 0, &a, 0);
}

void kl_yield(void)
{
    static KL_THREAD_LOCAL bool shortened;

    if (!shortened) {
        shortened = true;
        shorten_slices();
    }
    sched_yield();
}
