/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netns.h - emulated hosts with a network of their own: one network namespace each, joined by a virtual switch.
 *
 *      launcher (switch namespace)           host 0                 host 1
 *      bridge kolo-sw 10.77.255.254/16       kolo0 10.77.0.1/16     kolo0 10.77.0.2/16
 *          ports h0, h1, ...      -- veth pairs to the kolo0 of each host
 *
 * A link may have a rate: then both ends of the pair have a token bucket, so that the rate limits both the host's output and
 * its input, from any number of senders.
 *
 * All hosts have permanent entries for all hardware addresses: address resolution would fill the kernel's neighbour table,
 * which all namespaces share and which holds 1,024 entries by default; permanent entries are not limited.
 *
 * There is no IPv6: its addresses could be used only seconds after they appear, when duplicates have been looked for.
 *
 * The namespaces have no names: the kernel removes them, with their interfaces, when the last process in them and the
 * last descriptor of them are gone. So nothing stays behind however the launcher ends.
 *
 * Errors:  -1 with the reason in `why`; the calling thread is then where it was.
 * Threads: kl_netns_open moves the calling thread into the switch namespace, where it stays; threads started later
 *          are there too. The switch lives as long as a thread is there.
 * Source:  network_namespaces(7), veth(4), rtnetlink(7).
 */
#ifndef KOLO_TOOL_NETNS_H
#define KOLO_TOOL_NETNS_H

#include <stddef.h>
#include <stdint.h>

enum { KL_NETNS_MAX_HOSTS = 1000 };

struct kl_netns {
    int nhosts;
    uint64_t link_rate;
    int *fd; /* of each host's namespace, for setns; close-on-exec */
};

/** Needs CAP_SYS_ADMIN and CAP_NET_ADMIN. `link_rate`: of each host's link, bits per second in each direction; 0: no limit. */
int kl_netns_open(struct kl_netns *ns, int nhosts, uint64_t link_rate, char *why, size_t why_size);

/** Close the descriptors. Also for a zeroed struct. */
void kl_netns_close(struct kl_netns *ns);

/** "10.77.0.1" for host 0. */
void kl_netns_address(int host, char *text, size_t size);

#endif
