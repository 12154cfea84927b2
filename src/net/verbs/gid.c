/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/gid.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { SUBNET_4 = 24, SUBNET_6 = 64, BITS_BEFORE_IPV4 = 96, WHOLE = 128 };

bool kl_verbs_gid_is_zero(const union kl_ibv_gid *gid)
{
    return !gid->half[0] && !gid->half[1];
}

static bool is_link_local(const union kl_ibv_gid *gid)
{
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static bool is_ipv4(const union kl_ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(gid->raw, mapped, sizeof mapped);
}

/* An address as a GID has it; false: it is none. */
static bool as_gid(const union kl_address *address, union kl_ibv_gid *gid)
{
    memset(gid, 0, sizeof *gid);
    if (address->any.sa_family == AF_INET6) memcpy(gid->raw, &address->v6.sin6_addr, sizeof gid->raw);
    if (address->any.sa_family == AF_INET) {
        gid->raw[10] = gid->raw[11] = 0xff;
        memcpy(gid->raw + 12, &address->v4.sin_addr, 4);
    }
    return !kl_verbs_gid_is_zero(gid);
}

static bool is_alike(const union kl_ibv_gid *a, const union kl_ibv_gid *b, int bits)
{
    return !memcmp(a->raw, b->raw, (size_t)bits / 8);
}

static bool is_in_subnet_of(const union kl_ibv_gid *gid, const union kl_address *address)
{
    union kl_ibv_gid other;
    int bits = is_ipv4(gid) ? BITS_BEFORE_IPV4 + SUBNET_4 : SUBNET_6;

    return as_gid(address, &other) && !is_link_local(gid) && is_alike(gid, &other, bits);
}

static bool is_address(const union kl_ibv_gid *gid, const union kl_address *address)
{
    union kl_ibv_gid other;

    return as_gid(address, &other) && is_alike(gid, &other, WHOLE);
}

/* The larger the better. */
static int rank_of(const struct kl_verbs_gid *g, const struct kl_verbs_gid_constraints *constraints)
{
    enum { LINK_LOCAL = 1, OTHER_FAMILY, ROUTABLE, SUBNET, NEAR, VERSION = 10 };
    int family = is_ipv4(&g->gid) ? KL_VERBS_IPV4 : KL_VERBS_IPV6;
    int version = g->version == constraints->version ? 2 * VERSION : g->version ? 0 : VERSION;

    if (is_address(&g->gid, &constraints->near)) return version + NEAR;
    if (is_in_subnet_of(&g->gid, &constraints->far)) return version + SUBNET;
    if (is_link_local(&g->gid)) return version + LINK_LOCAL;
    return version + (family == constraints->family ? ROUTABLE : OTHER_FAMILY);
}

/* Of two with equal addresses and unknown versions, cards have version 2 in the later one. */
static bool is_better(const struct kl_verbs_gid *a, const struct kl_verbs_gid *than,
                      const struct kl_verbs_gid_constraints *constraints)
{
    int one = rank_of(a, constraints), other = rank_of(than, constraints);

    return one > other || (one == other && !a->version);
}

const struct kl_verbs_gid *kl_verbs_gid_choose(const struct kl_verbs_gid *gids, int n,
                                               const struct kl_verbs_gid_constraints *constraints)
{
    const struct kl_verbs_gid *best = NULL;

    for (int i = 0; i < n; i++)
        if (!best || is_better(&gids[i], best, constraints)) best = &gids[i];
    return best;
}

const char *kl_verbs_gid_format(const struct kl_verbs_gid *g, char text[KL_VERBS_GID_TEXT])
{
    char address[INET6_ADDRSTRLEN];

    inet_ntop(AF_INET6, g->gid.raw, address, sizeof address);
    if (g->version)
        snprintf(text, KL_VERBS_GID_TEXT, "[%d] %s (RoCE v%d)", g->index, address, g->version);
    else
        snprintf(text, KL_VERBS_GID_TEXT, "[%d] %s", g->index, address);
    return text;
}
