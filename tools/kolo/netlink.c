/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Large enough for the longest request below, which asks for a veth pair. */
struct request {
    struct nlmsghdr head;
    char body[512];
};

int kl_netlink_open(void)
{
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

/* The message always ends aligned, so that the length of a nest never reaches past it. */
static void *append(struct request *q, const void *bytes, size_t nbytes)
{
    void *at = (char *)q + q->head.nlmsg_len;

    if (bytes) memcpy(at, bytes, nbytes);
    q->head.nlmsg_len += (uint32_t)NLMSG_ALIGN(nbytes);
    return at;
}

static struct rtattr *add(struct request *q, int type, const void *bytes, size_t nbytes)
{
    struct rtattr *a = append(q, NULL, RTA_LENGTH(0));

    a->rta_type = (unsigned short)type;
    a->rta_len = (unsigned short)RTA_LENGTH(nbytes);
    if (nbytes) append(q, bytes, nbytes);
    return a;
}

/* Close a nested attribute: it holds everything that was appended after it. */
static void close_nest(struct request *q, struct rtattr *a)
{
    a->rta_len = (unsigned short)((char *)q + q->head.nlmsg_len - (char *)a);
}

static void begin(struct request *q, int type, int flags, const void *header, size_t nbytes)
{
    memset(q, 0, sizeof *q);
    q->head.nlmsg_len = NLMSG_HDRLEN;
    q->head.nlmsg_type = (uint16_t)type;
    q->head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
    append(q, header, nbytes);
}

static int ask(int sock, const struct request *q)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[1024]; /* the request, which the kernel sends back */
    } answer;

    if (send(sock, q, q->head.nlmsg_len, 0) < 0) return -1;
    ssize_t n = recv(sock, &answer, sizeof answer, 0);
    if (n < 0) return -1;
    if ((size_t)n < sizeof answer.head + sizeof answer.error || answer.head.nlmsg_type != NLMSG_ERROR)
        return errno = EPROTO, -1;
    errno = -answer.error.error;
    return errno ? -1 : 0;
}

int kl_netlink_add_bridge(int sock, const char *name, const unsigned char mac[KL_NETLINK_MAC])
{
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
    struct request q;

    begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof link);
    add(&q, IFLA_IFNAME, name, strlen(name) + 1);
    add(&q, IFLA_ADDRESS, mac, KL_NETLINK_MAC);
    struct rtattr *info = add(&q, IFLA_LINKINFO, NULL, 0);
    add(&q, IFLA_INFO_KIND, "bridge", sizeof "bridge");
    close_nest(&q, info);
    return ask(sock, &q);
}

int kl_netlink_add_veth(int sock, const char *name, const char *peer_name, int peer_ns,
                        const unsigned char peer_mac[KL_NETLINK_MAC])
{
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
    struct request q;

    begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof link);
    add(&q, IFLA_IFNAME, name, strlen(name) + 1);
    struct rtattr *info = add(&q, IFLA_LINKINFO, NULL, 0);
    add(&q, IFLA_INFO_KIND, "veth", sizeof "veth");
    struct rtattr *data = add(&q, IFLA_INFO_DATA, NULL, 0);
    struct rtattr *peer = add(&q, VETH_INFO_PEER, NULL, 0);
    append(&q, &link, sizeof link);
    add(&q, IFLA_IFNAME, peer_name, strlen(peer_name) + 1);
    add(&q, IFLA_ADDRESS, peer_mac, KL_NETLINK_MAC);
    add(&q, IFLA_NET_NS_FD, &peer_ns, sizeof peer_ns);
    close_nest(&q, peer);
    close_nest(&q, data);
    close_nest(&q, info);
    return ask(sock, &q);
}

int kl_netlink_no_ipv6(int sock, const char *name)
{
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
    uint8_t none = IN6_ADDR_GEN_MODE_NONE;
    struct request q;

    link.ifi_index = (int)if_nametoindex(name);
    if (!link.ifi_index) return -1;
    begin(&q, RTM_NEWLINK, 0, &link, sizeof link);
    struct rtattr *families = add(&q, IFLA_AF_SPEC, NULL, 0);
    struct rtattr *inet6 = add(&q, AF_INET6, NULL, 0);
    add(&q, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof none);
    close_nest(&q, inet6);
    close_nest(&q, families);
    return ask(sock, &q) && errno != EAFNOSUPPORT ? -1 : 0;
}

int kl_netlink_up(int sock, const char *name, const char *bridge)
{
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    struct request q;

    link.ifi_index = (int)if_nametoindex(name);
    if (!link.ifi_index) return -1;
    begin(&q, RTM_NEWLINK, 0, &link, sizeof link);
    if (bridge) {
        uint32_t master = if_nametoindex(bridge);
        if (!master) return -1;
        add(&q, IFLA_MASTER, &master, sizeof master);
    }
    return ask(sock, &q);
}

int kl_netlink_add_neighbour(int sock, const char *name, uint32_t address, const unsigned char mac[KL_NETLINK_MAC])
{
    struct ndmsg neighbour = {.ndm_family = AF_INET, .ndm_state = NUD_PERMANENT};
    uint32_t wire = htonl(address);
    struct request q;

    neighbour.ndm_ifindex = (int)if_nametoindex(name);
    if (!neighbour.ndm_ifindex) return -1;
    begin(&q, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &neighbour, sizeof neighbour);
    add(&q, NDA_DST, &wire, sizeof wire);
    add(&q, NDA_LLADDR, mac, KL_NETLINK_MAC);
    return ask(sock, &q);
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t clamped(uint64_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* The bucket holds a millisecond, and never less than two of the largest packets; 20 ms more may wait before packets are dropped.
 * A rate of 2^32 bytes a second or more does not fit its field, and has another. */
int kl_netlink_limit(int sock, const char *name, uint64_t rate)
{
    enum { LARGEST_PACKET = 64 << 10, WAITING_MS = 20 };
    uint64_t bytes = rate / 8, burst = most(bytes / 1000, 2 * LARGEST_PACKET);
    struct tc_tbf_qopt shape = {.limit = clamped(burst + bytes * WAITING_MS / 1000)};
    struct tcmsg queue = {.tcm_family = AF_UNSPEC, .tcm_parent = TC_H_ROOT};
    uint32_t burst32 = clamped(burst);
    struct request q;

    queue.tcm_ifindex = (int)if_nametoindex(name);
    if (!queue.tcm_ifindex) return -1;
    shape.rate = (struct tc_ratespec){.linklayer = TC_LINKLAYER_ETHERNET, .rate = clamped(bytes)};
    begin(&q, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &queue, sizeof queue);
    add(&q, TCA_KIND, "tbf", sizeof "tbf");
    struct rtattr *options = add(&q, TCA_OPTIONS, NULL, 0);
    add(&q, TCA_TBF_PARMS, &shape, sizeof shape);
    add(&q, TCA_TBF_BURST, &burst32, sizeof burst32);
    if (bytes > UINT32_MAX) add(&q, TCA_TBF_RATE64, &bytes, sizeof bytes);
    close_nest(&q, options);
    return ask(sock, &q);
}

int kl_netlink_add_address(int sock, const char *name, uint32_t address, unsigned prefix_length)
{
    struct ifaddrmsg msg = {.ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)prefix_length};
    uint32_t wire = htonl(address);
    struct request q;

    msg.ifa_index = if_nametoindex(name);
    if (!msg.ifa_index) return -1;
    begin(&q, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &msg, sizeof msg);
    add(&q, IFA_LOCAL, &wire, sizeof wire);
    add(&q, IFA_ADDRESS, &wire, sizeof wire);
    return ask(sock, &q);
}
