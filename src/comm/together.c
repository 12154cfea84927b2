/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/together.h"

#include "os/hostinfo.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct outcome {
    int32_t rc;
    char text[508]; /* whole, with the rank */
};

static void describe(const struct ncclComm *comm, ncclResult_t mine, struct outcome *o)
{
    char name[KL_HOSTNAME];

    memset(o, 0, sizeof *o);
    o->rc = mine;
    if (!mine) return;
    kl_hostinfo_name(name);
    snprintf(o->text, sizeof o->text, "rank %d (host %.64s, pid %d): %.380s", comm->rank, name, (int)getpid(),
             kl_error_text());
}

static int first_failed(const struct outcome *of, int nranks)
{
    int r = 0;

    while (r < nranks && !of[r].rc) r++;
    return r;
}

ncclResult_t kl_comm_fail_together(ncclComm_t comm, ncclResult_t mine)
{
    struct kl_records *all;
    struct outcome me;

    describe(comm, mine, &me);
    KL_TRY(kl_bootstrap_gather(comm->bootstrap, &me, sizeof me, &all));
    const struct outcome *of = all->all;
    const int first = first_failed(of, comm->nranks);
    ncclResult_t rc = ncclSuccess;
    if (mine)
        rc = KL_FAIL(mine, "%s", me.text);
    else if (first < comm->nranks)
        rc = KL_FAIL(ncclInvalidUsage, "%.*s", (int)sizeof of->text, of[first].text);
    kl_records_unref(all);
    return rc;
}
