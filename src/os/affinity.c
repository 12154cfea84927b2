/* SPDX-License-Identifier: Apache-2.0 */
#include "os/affinity.h"

#include "base/error.h"

#include <sched.h>

_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "the words of a cpu_set_t are those of a kl_cpuset");

static bool get(struct kl_cpuset *set)
{
    *set = (struct kl_cpuset){0}; /* the kernel fills in only as many bytes as it has CPUs */
    return !sched_getaffinity(0, sizeof *set, (cpu_set_t *)set->words);
}

ncclResult_t kl_affinity_get(struct kl_cpuset *set)
{
    struct kl_cpuset got;

    if (!get(&got)) return KL_FAIL_ERRNO("cannot find out which CPUs this thread may run on");
    *set = got;
    return ncclSuccess;
}

ncclResult_t kl_affinity_pin(const struct kl_cpuset *set, struct kl_cpuset *before)
{
    char room[128];
    struct kl_text list = kl_text_over(room, sizeof room);
    struct kl_cpuset was;

    if (!kl_cpuset_count(set)) return KL_FAIL(ncclInvalidArgument, "cannot run on an empty set of CPUs");
    KL_TRY(kl_affinity_get(&was));
    if (sched_setaffinity(0, sizeof *set, (const cpu_set_t *)set->words)) {
        kl_cpuset_add_list(&list, set);
        return KL_FAIL_ERRNO("cannot run on CPUs %s", room);
    }
    if (before) *before = was;
    return ncclSuccess;
}

int kl_affinity_count(void)
{
    struct kl_cpuset set;

    return get(&set) ? kl_cpuset_count(&set) : 1;
}
