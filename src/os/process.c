/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include <pthread.h>
#include <unistd.h>

_Atomic uint32_t kl_process_forks;

static int32_t id; /* written by pthread_once, and in a child before fork(2) returns there */

static void count_fork(void)
{
    kl_fetch_add_relaxed(&kl_process_forks, 1);
    id = (int32_t)getpid();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
    id = (int32_t)getpid();
}

static void watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
}

uint32_t kl_process_generation(void)
{
    watch();
    return kl_load_relaxed(&kl_process_forks);
}

int32_t kl_process_id(void)
{
    watch();
    return id;
}
