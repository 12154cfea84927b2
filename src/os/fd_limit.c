/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd_limit.h"

#include <errno.h>
#include <sys/resource.h>

uint64_t kl_fd_limit_raise(uint64_t n)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit)) return UINT64_MAX; /* unknown; opening files will fail if need be */
    if (limit.rlim_cur >= n) return limit.rlim_cur;
    struct rlimit more = {.rlim_cur = limit.rlim_max < n ? limit.rlim_max : n, .rlim_max = limit.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &more) ? limit.rlim_cur : more.rlim_cur;
}

bool kl_fd_limit_make_room(int err)
{
    struct rlimit limit;

    if (err != EMFILE || getrlimit(RLIMIT_NOFILE, &limit)) return false;
    return kl_fd_limit_raise(2 * (uint64_t)limit.rlim_cur) > limit.rlim_cur;
}
