/* SPDX-License-Identifier: Apache-2.0 */
#include "os/files.h"

#include <errno.h>
#include <sys/resource.h>

uint64_t kl_files_allow(uint64_t n)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit)) return UINT64_MAX; /* unknown; opening files will fail if need be */
    if (limit.rlim_cur >= n) return limit.rlim_cur;
    struct rlimit more = {.rlim_cur = limit.rlim_max < n ? limit.rlim_max : n, .rlim_max = limit.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &more) ? limit.rlim_cur : more.rlim_cur;
}

bool kl_files_make_room(int err)
{
    struct rlimit limit;

    if (err != EMFILE || getrlimit(RLIMIT_NOFILE, &limit)) return false;
    return kl_files_allow(2 * (uint64_t)limit.rlim_cur) > limit.rlim_cur;
}
