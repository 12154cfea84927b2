/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a topology in memory, through the public functions: each answer is a text, or there is a sentence about the failure. */
#include "base/error.h"
#include "include/koloplan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { MOST = 4096 }; /* bytes: plans for more take too long here */

static void check(ncclResult_t rc, char *json)
{
    if (rc && (json || !*koloplanGetLastError())) abort();
    if (!rc && (!json || strncmp(json, "{", 1) != 0)) abort();
    koloplanFree(json);
}

static void ask(koloplanCluster_t cluster)
{
    koloplanOrder_t order = KOLOPLAN_ORDER_INITIALIZER;
    char *json = NULL;
    ncclResult_t rc = koloplanTopo(cluster, &json);

    check(rc, json);
    rc = koloplanGraph(cluster, NULL, &json);
    check(rc, json);
    rc = koloplanExplainNics(cluster, &json);
    check(rc, json);
    rc = koloplanExplainPair(cluster, "GPU/0", "GPU/1", &json);
    check(rc, json);
    rc = koloplanExplainCollective(cluster, "all_reduce", NULL, NULL, 0, 0, &json);
    check(rc, json);
    order.collective = "reduce_scatter";
    rc = koloplanLintOrder(cluster, &order, &json);
    check(rc, json);
    rc = koloplanExplainTraffic(cluster, "all_reduce", NULL, NULL, 1 << 20, 0, NULL, 0, &json);
    check(rc, json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    koloplanRequest_t request = KOLOPLAN_REQUEST_INITIALIZER;
    koloplanCluster_t cluster;

    if (bytes > MOST) return 0;
    kl_error_quiet(1);
    request.text = (const char *)data;
    request.bytes = bytes;
    request.hosts = 1 + (int)(bytes & 1);
    ncclResult_t rc = koloplanOpen(&request, &cluster);

    if (!rc) ask(cluster);
    if (rc && (cluster || !*koloplanGetLastError())) abort();
    koloplanClose(cluster);
    return 0;
}
