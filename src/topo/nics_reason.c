/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/nics.h"

#include <stdio.h>
#include <string.h>

/* %s is the operand. */
static const struct {
    const char *code, *text;
} words[KL_NET_SKIP_WHYS] = {
    [KL_NET_SKIP_DOWN] = {"down", "down (state: %s)"},
    [KL_NET_SKIP_LOOPBACK] = {"loopback", "loopback"},
    [KL_NET_SKIP_CONTAINER] = {"container", "belongs to a container engine; used only if NCCL_SOCKET_IFNAME names it"},
    [KL_NET_SKIP_BRIDGE] = {"bridge", "a bridge; used only if NCCL_SOCKET_IFNAME names it"},
    [KL_NET_SKIP_TUNNEL] = {"tunnel", "a tunnel; used only if NCCL_SOCKET_IFNAME names it"},
    [KL_NET_SKIP_PORT] = {"port", "a port of %s"},
    [KL_NET_SKIP_IFNAME] = {"socket_ifname", "filtered out by NCCL_SOCKET_IFNAME=%s"},
    [KL_NET_SKIP_HCA] = {"ib_hca", "filtered out by NCCL_IB_HCA=%s"},
    [KL_NET_SKIP_IB_DISABLED] = {"ib_disable", "NCCL_IB_DISABLE is set"},
    [KL_NET_SKIP_NO_SPEED] = {"no_speed", "active, but reports no speed"},
    [KL_NET_SKIP_RDMA] = {"rdma", "an interface for sockets; InfiniBand or RoCE is used instead (%s)"},
    [KL_NET_SKIP_IB_FIRST] = {"ib_first", "interfaces named ib* take precedence (%s)"},
    [KL_NET_SKIP_LIMIT] = {"limit", "beyond the limit of 32 InfiniBand or RoCE ports or 16 interfaces"},
};

const char *kl_net_skip_code(enum kl_net_skip_why why)
{
    return words[why].code;
}

const char *kl_net_skip_text(const struct kl_net_skip *skip, char text[KL_NET_SKIP_TEXT])
{
    const char *form = words[skip->why].text, *operand = strstr(form, "%s");

    if (operand)
        snprintf(text, KL_NET_SKIP_TEXT, "%.*s%s%s", (int)(operand - form), form, skip->other, operand + 2);
    else
        snprintf(text, KL_NET_SKIP_TEXT, "%s", form);
    return text;
}

bool kl_net_skip_same(const struct kl_net_skip *a, const struct kl_net_skip *b)
{
    return a->why == b->why && !strcmp(a->other, b->other);
}
