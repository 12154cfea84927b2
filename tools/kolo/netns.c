/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/netns.h"

#include "tools/kolo/netlink.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BRIDGE "kolo-sw"
#define CARD   "kolo0"

enum { PREFIX_LENGTH = 16, PER_BLOCK = 250 };
static const uint32_t network = 10u << 24 | 77u << 16;
static const uint32_t switch_address = 10u << 24 | 77u << 16 | 255u << 8 | 254u;

static uint32_t address_of(int host)
{
    return network | (uint32_t)(host / PER_BLOCK) << 8 | (uint32_t)(host % PER_BLOCK + 1);
}

struct mac {
    unsigned char byte[KL_NETLINK_MAC];
};

/* Locally administered, made from the address. */
static struct mac mac_of(uint32_t address)
{
    return (struct mac){{2, 0, address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255}};
}

void kl_netns_address(int host, char *text, size_t size)
{
    uint32_t a = address_of(host);

    snprintf(text, size, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
}

static int here(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int make_namespaces(struct kl_netns *ns)
{
    for (int h = 0; h < ns->nhosts; h++) {
        if (unshare(CLONE_NEWNET)) return -1;
        ns->fd[h] = here();
        if (ns->fd[h] < 0) return -1;
    }
    return unshare(CLONE_NEWNET); /* the switch's own */
}

static int limit(int sock, const char *name, const struct kl_netns *ns)
{
    return ns->link_rate ? kl_netlink_limit(sock, name, ns->link_rate) : 0;
}

static int know(int sock, const char *name, uint32_t address)
{
    return kl_netlink_add_neighbour(sock, name, address, mac_of(address).byte);
}

static int know_hosts(int sock, const char *name, const struct kl_netns *ns, int but)
{
    for (int h = 0; h < ns->nhosts; h++)
        if (h != but && know(sock, name, address_of(h))) return -1;
    return 0;
}

static int build_switch(const struct kl_netns *ns)
{
    int rc = -1, sock = kl_netlink_open();

    if (sock < 0) return -1;
    if (kl_netlink_add_bridge(sock, BRIDGE, mac_of(switch_address).byte)) goto out;
    if (kl_netlink_add_address(sock, BRIDGE, switch_address, PREFIX_LENGTH)) goto out;
    if (kl_netlink_no_ipv6(sock, BRIDGE) || kl_netlink_up(sock, BRIDGE, NULL) || kl_netlink_up(sock, "lo", NULL))
        goto out;
    for (int h = 0; h < ns->nhosts; h++) {
        char port[16];

        snprintf(port, sizeof port, "h%d", h);
        if (kl_netlink_add_veth(sock, port, CARD, ns->fd[h], mac_of(address_of(h)).byte) ||
            kl_netlink_no_ipv6(sock, port))
            goto out;
        if (limit(sock, port, ns) || kl_netlink_up(sock, port, BRIDGE)) goto out;
    }
    rc = know_hosts(sock, BRIDGE, ns, -1);
out:
    close(sock);
    return rc;
}

static int configure_host(const struct kl_netns *ns, int host)
{
    int rc = -1;

    if (setns(ns->fd[host], CLONE_NEWNET)) return -1;
    int sock = kl_netlink_open();
    if (sock < 0) return -1;
    if (kl_netlink_up(sock, "lo", NULL) || kl_netlink_no_ipv6(sock, CARD)) goto out;
    if (kl_netlink_add_address(sock, CARD, address_of(host), PREFIX_LENGTH)) goto out;
    if (limit(sock, CARD, ns)) goto out;
    if (kl_netlink_up(sock, CARD, NULL) || know(sock, CARD, switch_address)) goto out;
    rc = know_hosts(sock, CARD, ns, host);
out:
    close(sock);
    return rc;
}

/* From the switch's namespace through all hosts' and back. */
static int configure_hosts(const struct kl_netns *ns)
{
    int rc = 0, back = here();

    if (back < 0) return -1;
    for (int h = 0; h < ns->nhosts && !rc; h++) rc = configure_host(ns, h);
    if (!rc) rc = setns(back, CLONE_NEWNET);
    close(back);
    return rc;
}

static void explain(const struct kl_netns *ns, const char *step, int err, char *why, size_t why_size)
{
    if (ns->link_rate && err == ENOENT)
        snprintf(why, why_size,
                 "this kernel has no token bucket (tbf), which limits a link: load the module sch_tbf, or leave out "
                 "--link-rate");
    else
        snprintf(why, why_size, "%s: %s%s", step, strerror(err), err == EPERM ? "; it needs root" : "");
}

int kl_netns_open(struct kl_netns *ns, int nhosts, uint64_t link_rate, char *why, size_t why_size)
{
    const char *step = "making network namespaces";
    int rc = -1, home = here();

    *ns = (struct kl_netns){.nhosts = nhosts, .link_rate = link_rate, .fd = malloc((size_t)nhosts * sizeof *ns->fd)};
    if (!ns->fd || home < 0) goto out;
    for (int h = 0; h < nhosts; h++) ns->fd[h] = -1;

    if (make_namespaces(ns)) goto out;
    step = "joining network namespaces by a bridge";
    if (build_switch(ns) || configure_hosts(ns)) goto out;
    rc = 0;
out:
    if (rc) {
        int saved = errno;
        explain(ns, step, saved, why, why_size);
        kl_netns_close(ns);
        if (home >= 0 && setns(home, CLONE_NEWNET) && saved != EPERM)
            snprintf(why, why_size, "%s: %s, and no way back: %s", step, strerror(saved), strerror(errno));
    }
    if (home >= 0) close(home);
    return rc;
}

void kl_netns_close(struct kl_netns *ns)
{
    for (int h = 0; ns->fd && h < ns->nhosts; h++)
        if (ns->fd[h] >= 0) close(ns->fd[h]);
    free(ns->fd);
    *ns = (struct kl_netns){0};
}
