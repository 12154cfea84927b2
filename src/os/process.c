/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include <pthread.h>

_Atomic uint32_t kl_process_forks;

static void count_fork(void)
{
    kl_fetch_add_relaxed(&kl_process_forks, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

uint32_t kl_process_generation(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    return kl_load_relaxed(&kl_process_forks);
}
