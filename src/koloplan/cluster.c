/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "koloplan/handle.h"

#include <stdlib.h>
#include <string.h>

enum { MAJOR = 0, MINOR = 1, PATCH = 0 };

ncclResult_t koloplanGetVersion(int *version)
{
    if (!version) return KL_FAIL(ncclInvalidArgument, "koloplanGetVersion: version is NULL");
    *version = MAJOR * 10000 + MINOR * 100 + PATCH;
    return ncclSuccess;
}

const char *koloplanGetLastError(void)
{
    return kl_error_text();
}

/* ---- warnings ---- */

static void keep_warning(void *ctx, const char *text)
{
    struct koloplanCluster *c = ctx;
    char **grown = realloc(c->warning, ((size_t)c->nwarnings + 1) * sizeof *grown);

    if (!grown) return;
    c->warning = grown;
    grown[c->nwarnings] = strdup(text);
    c->nwarnings += grown[c->nwarnings] != NULL;
}

const char *koloplanGetWarning(koloplanCluster_t c, int i)
{
    return c && i >= 0 && i < c->nwarnings ? c->warning[i] : NULL;
}

/* ---- life ---- */

static ncclResult_t open_cluster(const koloplanRequest_t *request, struct koloplanCluster *c)
{
    KL_TRY(kl_plan_request_copy(request, &c->request, &c->texts));
    ncclResult_t rc = kl_opened_init(&c->request, &c->opened);

    if (!rc && pthread_mutex_init(&c->mutex, NULL)) {
        kl_opened_fini(&c->opened);
        rc = KL_NOMEM("a mutex");
    }
    if (rc) {
        kl_plan_texts_free(c->texts);
        return rc;
    }
    kl_opened_warn(&c->opened.cluster, keep_warning, c);
    return ncclSuccess;
}

ncclResult_t koloplanOpen(const koloplanRequest_t *request, koloplanCluster_t *cluster)
{
    struct koloplanCluster *c;

    if (!cluster) return KL_FAIL(ncclInvalidArgument, "koloplanOpen: cluster is NULL");
    *cluster = NULL;
    c = calloc(1, sizeof *c);
    if (!c) return KL_NOMEM("a cluster");
    ncclResult_t rc = open_cluster(request, c);

    if (rc)
        free(c);
    else
        *cluster = c;
    return rc;
}

ncclResult_t koloplanClose(koloplanCluster_t c)
{
    if (!c) return ncclSuccess;
    kl_opened_fini(&c->opened);
    kl_plan_texts_free(c->texts);
    for (int i = 0; i < c->nwarnings; i++) free(c->warning[i]);
    free(c->warning);
    pthread_mutex_destroy(&c->mutex);
    free(c);
    return ncclSuccess;
}

ncclResult_t koloplanPlan(koloplanCluster_t c)
{
    if (!c) return KL_FAIL(ncclInvalidArgument, "koloplanPlan: cluster is NULL");
    pthread_mutex_lock(&c->mutex);
    ncclResult_t rc = kl_opened_plan(&c->opened);

    pthread_mutex_unlock(&c->mutex);
    return rc;
}

void koloplanFree(char *json)
{
    free(json);
}
