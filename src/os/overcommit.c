/* SPDX-License-Identifier: Apache-2.0 */
#include "os/overcommit.h"

#include "os/sysfs.h"

#include <pthread.h>
#include <stdlib.h>

enum { NEVER = 2 }; /* of the kernel's policies */

static int policy;

static void read_policy(void)
{
    char text[16];

    if (kl_sysfs_text("/proc/sys/vm", "overcommit_memory", text, sizeof text)) policy = (int)strtol(text, NULL, 10);
}

bool kl_overcommit_is_strict(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_policy);
    return policy == NEVER;
}
