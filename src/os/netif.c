/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netif.h"

#include "base/error.h"
#include "base/text.h"

#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 256 }; /* addresses that kl_netif_choose considers */

/* ---- names ---- */

static bool starts_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

/* One entry of a list, `bytes` long. */
static bool entry_matches(const char *name, int port, const char *entry, size_t bytes, bool exact)
{
    const char *colon = memchr(entry, ':', bytes);

    if (colon && port >= 0 && strtol(colon + 1, NULL, 10) != port) return false;
    if (colon) bytes = (size_t)(colon - entry);
    return bytes && !strncmp(name, entry, bytes) && (!exact || !name[bytes]);
}

bool kl_netif_name_matches(const char *name, int port, const char *names)
{
    bool exclude = *names == '^';
    names += exclude;
    bool exact = *names == '=';
    names += exact;

    if (!*names) return true;
    for (const char *entry = names; *entry;) {
        size_t bytes = strcspn(entry, ",");
        if (entry_matches(name, port, entry, bytes, exact)) return !exclude;
        entry += bytes + (entry[bytes] == ',');
    }
    return exclude;
}

/* ---- selection ---- */

enum name_class { IB, OTHER, DOCKER, LOOPBACK, NCLASSES };

static enum name_class class_of(const char *name)
{
    if (starts_with(name, "ib")) return IB;
    if (starts_with(name, "docker")) return DOCKER;
    if (starts_with(name, "lo")) return LOOPBACK;
    return OTHER;
}

/* How much an address of an interface is preferred over its others; lower is better. */
static int address_grade(const union kl_address *a)
{
    if (a->any.sa_family == AF_INET) return 0;
    return kl_address_is_link_local(a) ? 2 : 1;
}

static struct kl_netif *find(struct kl_netif *chosen, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(chosen[i].name, name)) return &chosen[i];
    return NULL;
}

/* The interface is added once, with its best address. */
static int add(struct kl_netif *chosen, int n, const struct kl_netif *netif)
{
    struct kl_netif *same = find(chosen, n, netif->name);

    if (same && address_grade(&netif->address) < address_grade(&same->address)) *same = *netif;
    if (same || n == KL_NETIF_MAX) return n;
    chosen[n] = *netif;
    return n + 1;
}

static bool usable(const struct kl_netif *netif, int family)
{
    int has = netif->address.any.sa_family;

    if (has == AF_INET6 && kl_address_is_loopback(&netif->address)) return false;
    return !family || has == family;
}

static int select_near(const struct kl_netif *list, int n, const struct kl_netif_constraints *constraints,
                       struct kl_netif *chosen)
{
    for (int i = 0; i < n; i++)
        if (kl_address_same_subnet(&list[i].address, constraints->near, &list[i].mask)) {
            chosen[0] = list[i];
            return 1;
        }
    return 0;
}

static int select_named(const struct kl_netif *list, int n, const struct kl_netif_constraints *constraints,
                        struct kl_netif *chosen)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        if (usable(&list[i], constraints->family) && kl_netif_name_matches(list[i].name, -1, constraints->names))
            count = add(chosen, count, &list[i]);
    return count;
}

/* The remaining case: only loopback, and without IPv4. */
static int select_loopback(const struct kl_netif *list, int n, int family, struct kl_netif *chosen)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        if (class_of(list[i].name) != LOOPBACK) return 0;
    for (int i = 0; i < n; i++)
        if (!family || list[i].address.any.sa_family == family) count = add(chosen, count, &list[i]);
    return count;
}

static int select_class(const struct kl_netif *list, int n, const struct kl_netif_constraints *constraints,
                        enum name_class class, struct kl_netif *chosen)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        if (class_of(list[i].name) == class && usable(&list[i], constraints->family))
            count = add(chosen, count, &list[i]);
    return count;
}

int kl_netif_select(const struct kl_netif *list, int n, const struct kl_netif_constraints *constraints,
                    struct kl_netif chosen[KL_NETIF_MAX])
{
    bool named = constraints->names && *constraints->names;
    int count = 0;

    if (constraints->near && (count = select_near(list, n, constraints, chosen))) return count;
    if (named) return select_named(list, n, constraints, chosen);
    for (enum name_class class = IB; class < NCLASSES && !count; class ++)
        count = select_class(list, n, constraints, class, chosen);
    return count ? count : select_loopback(list, n, constraints->family, chosen);
}

/* ---- the system ---- */

/* getifaddrs gives masks without scope, and scopes of addresses only where one exists: comparable as they are. */
static bool take(const struct ifaddrs *from, struct kl_netif *to)
{
    union kl_address family = {.any = {.sa_family = from->ifa_addr ? from->ifa_addr->sa_family : AF_UNSPEC}};
    socklen_t bytes = kl_address_bytes(&family);

    if (!bytes || !from->ifa_addr || !(from->ifa_flags & IFF_UP) || !from->ifa_netmask) return false;
    memset(to, 0, sizeof *to);
    snprintf(to->name, sizeof to->name, "%s", from->ifa_name);
    memcpy(&to->address, from->ifa_addr, bytes);
    memcpy(&to->mask, from->ifa_netmask, bytes);
    return true;
}

ncclResult_t kl_netif_list(struct kl_netif *list, int max, int *count)
{
    struct ifaddrs *first;
    int n = 0;

    if (getifaddrs(&first)) return KL_FAIL_ERRNO("cannot list the network interfaces");
    for (struct ifaddrs *i = first; i && n < max; i = i->ifa_next) n += take(i, &list[n]);
    freeifaddrs(first);
    *count = n;
    return ncclSuccess;
}

/* "lo (127.0.0.1), eth0 (10.0.0.7), eth0 ([fd00::2])" */
static void describe(const struct kl_netif *list, int n, struct kl_text *text)
{
    char address[KL_ADDRESS_TEXT];

    if (!n) kl_text_add(text, "none");
    for (int i = 0; i < n; i++) {
        kl_address_format(&list[i].address, address);
        *strrchr(address, ':') = 0; /* the port, which is 0 */
        kl_text_add(text, "%s%s (%s)", i ? ", " : "", list[i].name, address);
    }
}

static ncclResult_t none_left(const struct kl_netif *list, int n, const struct kl_netif_constraints *constraints)
{
    bool named = constraints->names && *constraints->names;
    const char *family = constraints->family == AF_INET    ? " with IPv4"
                         : constraints->family == AF_INET6 ? " with IPv6"
                                                           : "";
    char exist[512];
    struct kl_text text = kl_text_in(exist, sizeof exist);

    describe(list, n, &text);
    return KL_FAIL(ncclSystemError,
                   "no network interface%s%s%s%s; there are: %s; choose with NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY",
                   family, named ? " matches NCCL_SOCKET_IFNAME=\"" : "", named ? constraints->names : "",
                   named ? "\"" : "", exist);
}

ncclResult_t kl_netif_choose(const struct kl_netif_constraints *constraints, struct kl_netif chosen[KL_NETIF_MAX],
                             int *count)
{
    int n = 0;
    struct kl_netif *list = calloc(LIST_MAX, sizeof *list);

    if (!list) return KL_NOMEM("the list of network interfaces");
    ncclResult_t rc = kl_netif_list(list, LIST_MAX, &n);
    if (!rc) {
        int selected = kl_netif_select(list, n, constraints, chosen);
        if (selected) *count = selected;
        if (!selected) rc = none_left(list, n, constraints);
    }
    free(list);
    return rc;
}
