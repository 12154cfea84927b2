/* SPDX-License-Identifier: Apache-2.0 */
#include "os/overcommit.h"

#include <pthread.h>
#include <stdio.h>

enum { NEVER = 2 }; /* of the kernel's policies */

static int policy;

static void read_policy(void)
{
    FILE *f = fopen("/proc/sys/vm/overcommit_memory", "re");

    if (!f || fscanf(f, "%d", &policy) != 1) policy = 0;
    if (f) fclose(f);
}

bool kl_overcommit_is_strict(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_policy);
    return policy == NEVER;
}
