/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/wish.h"

#include "base/error.h"
#include "base/param.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_BYTES = 16 };

/* As NCCL 2.32.3 has it. */
struct config {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster, min_ctas, max_ctas;
    const char *net;
    int split_share, traffic_class;
    const char *name;
    int collnet, cta_policy, shrink_share, nvls_ctas, per_net_peer, nvlink_centric, graph_usage, rma_contexts,
        p2p_peers, graph_ordering, launch_order, rma_signals, rma_eager, cft, nvls_mode;
};
_Static_assert(sizeof(struct config) == 120, "of NCCL 2.32.3");
_Static_assert(sizeof(ncclConfig_t) <= sizeof(struct config), "what our own header has is understood");

#define UNDEFINED NCCL_CONFIG_UNDEF_INT

const struct kl_wish kl_wish_none = {
    .blocking = UNDEFINED,
    .min_ctas = UNDEFINED,
    .max_ctas = UNDEFINED,
    .nvls_ctas = UNDEFINED,
    .per_net_peer = UNDEFINED,
    .collnet = UNDEFINED,
    .rma_contexts = UNDEFINED,
    .rma_signals = UNDEFINED,
    .nvls_mode = UNDEFINED,
    .launch_order = UNDEFINED,
    .rma_eager = UNDEFINED,
    .cft = UNDEFINED,
    .cga_cluster = UNDEFINED,
    .split_share = UNDEFINED,
    .shrink_share = UNDEFINED,
    .traffic_class = UNDEFINED,
    .cta_policy = UNDEFINED,
    .nvlink_centric = UNDEFINED,
    .graph_usage = UNDEFINED,
    .graph_ordering = UNDEFINED,
    .p2p_peers = UNDEFINED,
};

/* An integer of the config: may ranks differ in it, the first version that defines it, the allowed values, and its
 * destination. */
static const struct field {
    const char *name;
    enum kl_param_scope scope; /* KL_ALIKE or KL_OWN */
    size_t from, to;
    unsigned since;
    int min, max;
} fields[] = {
#define FIELD(name, nccl_name, scope, major, minor, patch, min, max)                                                   \
    {                                                                                                                  \
        nccl_name, scope, offsetof(struct config, name), offsetof(struct kl_wish, name),                               \
            NCCL_VERSION(major, minor, patch), min, max                                                                \
    }
    FIELD(blocking, "blocking", KL_OWN, 2, 14, 0, 0, 1),
    FIELD(cga_cluster, "cgaClusterSize", KL_OWN, 2, 17, 0, 0, INT_MAX),
    FIELD(min_ctas, "minCTAs", KL_ALIKE, 2, 17, 0, 1, INT_MAX),
    FIELD(max_ctas, "maxCTAs", KL_ALIKE, 2, 17, 0, 1, INT_MAX),
    FIELD(split_share, "splitShare", KL_OWN, 2, 18, 0, 0, 1),
    FIELD(traffic_class, "trafficClass", KL_OWN, 2, 25, 0, INT_MIN, INT_MAX),
    FIELD(collnet, "collnetEnable", KL_ALIKE, 2, 27, 0, 0, 1),
    FIELD(cta_policy, "CTAPolicy", KL_OWN, 2, 27, 0, 0, NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO),
    FIELD(shrink_share, "shrinkShare", KL_OWN, 2, 27, 0, 0, 1),
    FIELD(nvls_ctas, "nvlsCTAs", KL_ALIKE, 2, 27, 0, 1, INT_MAX),
    FIELD(per_net_peer, "nChannelsPerNetPeer", KL_ALIKE, 2, 28, 0, 1, 64),
    FIELD(nvlink_centric, "nvlinkCentricSched", KL_OWN, 2, 28, 0, 0, 1),
    FIELD(graph_usage, "graphUsageMode", KL_OWN, 2, 29, 0, 0, 2),
    FIELD(rma_contexts, "numRmaCtx", KL_OWN, 2, 29, 0, 1, INT_MAX),
    FIELD(p2p_peers, "maxP2pPeers", KL_OWN, 2, 30, 0, 1, INT_MAX),
    FIELD(graph_ordering, "graphStreamOrdering", KL_OWN, 2, 30, 5, 0, 1),
    FIELD(launch_order, "launchOrderImplicit", KL_OWN, 2, 31, 0, 0, 1),
    FIELD(rma_signals, "numRmaSig", KL_ALIKE, 2, 31, 0, 1, KL_WISH_RMA_SIGNALS),
    FIELD(rma_eager, "rmaEagerInit", KL_OWN, 2, 31, 0, 0, 1),
    FIELD(cft, "hostCftMode", KL_ALIKE, 2, 32, 0, ncclHostCftEnable, ncclHostCftFallback),
    FIELD(nvls_mode, "nvlsHostMode", KL_ALIKE, 2, 32, 0, 0, INT_MAX),
#undef FIELD
};
enum { NFIELDS = sizeof fields / sizeof fields[0] };

/* The bytes behind the end of the program's struct are undefined, as are texts: pointers are NULL then. */
static struct config copy_of(const ncclConfig_t *given, size_t size)
{
    struct config c = {0};

    for (int i = 0; i < NFIELDS; i++) memcpy((char *)&c + fields[i].from, &(int){UNDEFINED}, sizeof(int));
    memcpy(&c, given, size < sizeof c ? size : sizeof c);
    return c;
}

static ncclResult_t read_field(const struct field *f, const struct config *c, const char *function,
                               struct kl_wish *wish)
{
    int value;

    memcpy(&value, (const char *)c + f->from, sizeof value);
    if (c->version < f->since || value == UNDEFINED) return ncclSuccess;
    if (value < f->min || value > f->max)
        return KL_FAIL(ncclInvalidArgument, "%s: %s is %d in the configuration, and may be %d to %d", function, f->name,
                       value, f->min, f->max);
    memcpy((char *)wish + f->to, &value, sizeof value);
    return ncclSuccess;
}

static ncclResult_t read_text(const char *text, const char *field, const char *function, char to[KL_WISH_TEXT])
{
    if (!text) return ncclSuccess;
    if (strnlen(text, KL_WISH_TEXT) == KL_WISH_TEXT)
        return KL_FAIL(ncclInvalidArgument, "%s: %s of the configuration has more than %d characters", function, field,
                       KL_WISH_TEXT - 1);
    memcpy(to, text, strlen(text) + 1);
    return ncclSuccess;
}

static ncclResult_t check_modes(const char *function, const struct kl_wish *wish)
{
    const int flags = ncclNvlsHostModeDisableTransport | ncclNvlsHostModeDisableSymmetricMultimem;
    const int nvls = kl_wish_or(wish->nvls_mode, 0);

    if (nvls & ~flags && nvls != ncclNvlsHostModeDisable)
        return KL_FAIL(ncclInvalidArgument, "%s: nvlsHostMode is %d in the configuration, and may be 0 to %d or %d",
                       function, nvls, flags, ncclNvlsHostModeDisable);
    if (wish->cft == ncclHostCftEnable)
        return KL_FAIL(ncclInvalidUsage,
                       "%s: hostCftMode of the configuration asks for counted fabric writes, which host devices do not "
                       "have; ncclHostCftFallback uses them where there are some",
                       function);
    return ncclSuccess;
}

static ncclResult_t read_fields(const struct config *c, const char *function, struct kl_wish *wish)
{
    for (int i = 0; i < NFIELDS; i++) KL_TRY(read_field(&fields[i], c, function, wish));
    if (c->version >= NCCL_VERSION(2, 17, 0)) KL_TRY(read_text(c->net, "netName", function, wish->net));
    if (c->version >= NCCL_VERSION(2, 27, 0)) KL_TRY(read_text(c->name, "commName", function, wish->name));
    if (kl_wish_or(wish->min_ctas, 1) > kl_wish_or(wish->max_ctas, INT_MAX))
        return KL_FAIL(ncclInvalidArgument, "%s: minCTAs %d of the configuration exceeds maxCTAs %d", function,
                       wish->min_ctas, wish->max_ctas);
    return check_modes(function, wish);
}

ncclResult_t kl_wish_read(const ncclConfig_t *config, const char *function, struct kl_wish *wish)
{
    struct kl_wish read = kl_wish_none;
    size_t size;

    *wish = kl_wish_none;
    if (!config) return ncclSuccess;
    memcpy(&size, config, sizeof size);
    struct config c = copy_of(config, size);
    if (size < HEAD_BYTES || c.magic != NCCL_API_MAGIC)
        return KL_FAIL(ncclInvalidArgument,
                       "%s: the configuration does not begin as one does: start it with NCCL_CONFIG_INITIALIZER",
                       function);
    KL_TRY(read_fields(&c, function, &read));
    *wish = read;
    return ncclSuccess;
}

void kl_wish_each_alike(const struct kl_wish *wish, kl_wish_visit *visit, void *ctx)
{
    char name[64], text[16];
    int value;

    for (int i = 0; i < NFIELDS; i++) {
        if (fields[i].scope != KL_ALIKE) continue;
        memcpy(&value, (const char *)wish + fields[i].to, sizeof value);
        snprintf(name, sizeof name, "%s of the configuration", fields[i].name);
        snprintf(text, sizeof text, "%d", value);
        visit(ctx, name, value == UNDEFINED ? "" : text);
    }
}
