/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/config.h"

#include "base/log.h"
#include "base/parse.h"
#include "net/net.h"

#include <limits.h>
#include <net/if.h>
#include <string.h>

enum {
    VENDOR_AWS = 0x1d0f, /* limits one flow to a fraction of the line */
    VENDOR_GCP = 0x1ae0,
    FLOW_MBPS = 10000, /* speed that one socket reaches */
    MOST_BY_SPEED = 8, /* most threads that the speed alone justifies */
};

/* KL_OWN: the sender decides the number of sockets. KL_ALIKE: both ends have to encrypt. Speeds are those of the
 * machine description, made by the first rank of a host. */
static const struct kl_param rows[] = {
    KL_PARAM_INT(
        struct kl_socket_params, threads, "NCCL_SOCKET_NTHREADS", KL_OWN, "-2", 0, KL_SOCKET_MAX_THREADS,
        "helper threads of a connection over sockets; 0: none, the waiting thread moves the data; -2 lets Kolo decide"),
    KL_PARAM_INT(struct kl_socket_params, sockets_per_thread, "NCCL_NSOCKS_PERTHREAD", KL_OWN, "-2", 1,
                 KL_SOCKET_MAX_LANES, "sockets per such thread, 64 per connection at most; -2 lets Kolo decide"),
    KL_PARAM_BOOL(struct kl_socket_params, crypt, "KOLO_NET_CRYPT", KL_ALIKE, "0",
                  "encrypt and authenticate all that goes over sockets between hosts"),
    KL_PARAM_STRING(struct kl_socket_params, speed, "KOLO_NET_SPEED", KL_SETTLED, "",
                    "Mb/s of interfaces, \"eth0:25000,eth1:25000\"; a number without a name applies to all others"),
};

const struct kl_param_set kl_net_param_set = KL_PARAM_SET("net", struct kl_socket_params, rows);

/* ---- KOLO_NET_SPEED ---- */

/* One entry of the list: its number, if it is for `name` ("": for all). 0: it is for another name; -1: cannot be
 * parsed. */
static int entry_speed(const char *entry, size_t bytes, const char *name)
{
    const char *colon = memchr(entry, ':', bytes);
    size_t named = colon ? (size_t)(colon - entry) : 0, skip = colon ? named + 1 : 0;
    char number[16];
    int64_t mbps;

    if (named >= IF_NAMESIZE || (colon && !named) || bytes - skip >= sizeof number) return -1;
    memcpy(number, entry + skip, bytes - skip);
    number[bytes - skip] = 0;
    if (!kl_parse_int(number, &mbps) || mbps < 1 || mbps > INT_MAX) return -1;
    return strlen(name) == named && !memcmp(entry, name, named) ? (int)mbps : 0;
}

/* The first entry for `name`, 0 if there is none; -1 if the list cannot be parsed. */
static int list_speed(const char *speeds, const char *name)
{
    int found = 0;

    for (const char *entry = speeds; *entry;) {
        size_t bytes = strcspn(entry, ",");
        int speed = bytes ? entry_speed(entry, bytes, name) : 0;
        if (speed < 0) return -1;
        if (!found) found = speed;
        entry += bytes + (entry[bytes] == ',');
    }
    return found;
}

int kl_socket_speed_setting(const char *speeds, const char *name)
{
    static _Atomic int warned;
    int speed = list_speed(speeds, name);

    if (!speed) speed = list_speed(speeds, "");
    if (speed >= 0) return speed;
    if (!kl_fetch_add_relaxed(&warned, 1))
        KL_WARN("KOLO_NET_SPEED=\"%s\" is no list of NAME:MBPS, as in \"eth0:25000,eth1:25000\"; it has no effect",
                speeds);
    return 0;
}

/* ---- sockets and threads ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static struct kl_socket_shape by_device(unsigned vendor, int speed_mbps)
{
    int flows = least(1 + (speed_mbps - 1) / FLOW_MBPS, MOST_BY_SPEED);

    if (vendor == VENDOR_AWS) return (struct kl_socket_shape){.threads = 2, .lanes = 16};
    if (vendor == VENDOR_GCP) return (struct kl_socket_shape){.threads = 4, .lanes = 4};
    return (struct kl_socket_shape){.lanes = flows > 1 ? flows : 0};
}

struct kl_socket_shape kl_socket_shape(const struct kl_socket_params *params, unsigned vendor, int speed_mbps)
{
    bool threads_set = params->threads != KL_SOCKET_DECIDES, sockets_set = params->sockets_per_thread > 0;

    if (!threads_set && !sockets_set) return by_device(vendor, speed_mbps);
    int threads = threads_set ? (int)params->threads : by_device(vendor, speed_mbps).threads;
    int io_threads = threads ? threads : 1;
    int each = sockets_set ? (int)params->sockets_per_thread : 1;
    int lanes = io_threads * least(each, KL_SOCKET_MAX_LANES / io_threads);
    return (struct kl_socket_shape){.threads = threads, .lanes = threads || lanes > 1 ? lanes : 0};
}
