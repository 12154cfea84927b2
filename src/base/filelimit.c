/* SPDX-License-Identifier: Apache-2.0 */
#include "base/filelimit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

bool kl_filelimit_allows(uint64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) || bytes <= limit.rlim_cur)
        return true; /* no limit: RLIM_INFINITY is the largest number */
    errno = EFBIG;
    return false;
}

static sigset_t the_signal(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
}

static bool is_pending(void)
{
    sigset_t pending;

    return !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
}

void kl_filelimit_begin(struct kl_filelimit_guard *guard)
{
    const sigset_t set = the_signal();

    guard->pending = is_pending();
    pthread_sigmask(SIG_BLOCK, &set, &guard->before);
}

void kl_filelimit_end(const struct kl_filelimit_guard *guard)
{
    const sigset_t set = the_signal();
    const struct timespec at_once = {0};
    int err = errno;

    if (!guard->pending && is_pending())
        while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
    errno = err;
}
