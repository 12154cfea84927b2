/* SPDX-License-Identifier: Apache-2.0 */
/**
 * abi.h - the layout of net plugins, ncclNetPlugin_v6 to v12, as their libraries export it.
 *
 * Functions return an int, a value of ncclResult_t. Members keep their offsets in all versions; later versions
 * add members at the end. The types of the functions differ, so each is called through adapters.c only.
 *
 * Source: the specification of plugins, A1 to A3.
 */
#ifndef KL_NET_PLUGIN_ABI_H
#define KL_NET_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { KL_NET_ABI_OLDEST = 6, KL_NET_ABI_NEWEST = 12 };

typedef void kl_plugin_fn(void);

struct kl_net_abi_table {
    const char *name;
    kl_plugin_fn *init, *devices, *properties, *listen, *connect, *accept, *reg_mr, *reg_mr_dmabuf, *dereg_mr, *isend,
        *irecv, *iflush, *test, *close_send, *close_recv, *close_listen;
    kl_plugin_fn *device_mr, *irecv_consumed; /* from v7 on */
    kl_plugin_fn *make_vdevice;               /* v9 */
    kl_plugin_fn *finalize, *set_net_attr;    /* v11 */
};
_Static_assert(offsetof(struct kl_net_abi_table, isend) == 80, "as measured");
_Static_assert(offsetof(struct kl_net_abi_table, close_listen) == 128, "as measured");
_Static_assert(sizeof(struct kl_net_abi_table) == 176, "as measured");

/** With init and connect of v10 to v12. */
struct kl_net_abi_config {
    int32_t traffic_class; /* -1: none */
};

enum { KL_NET_ABI_PROPERTIES = 256 }; /* bytes that a plugin may fill; the largest known struct has 128 */

/** Offsets in the struct of properties of a version; -1: it has no such member. */
struct kl_net_abi_layout {
    int16_t bytes, speed, port, latency, max_comms, max_recvs, device_type, max_p2p_bytes;
    int16_t members, most_members; /* of a virtual device: their number, then an int for each */
    int16_t force_flush;
};

enum {
    KL_NET_ABI_NAME = 0,
    KL_NET_ABI_PCI_PATH = 8,
    KL_NET_ABI_GUID = 16,
    KL_NET_ABI_MEMORY = 24
}; /* in all versions */

/** Memory that requests use: bits, as in kl_net_properties. */
enum { KL_NET_ABI_HOST = 1, KL_NET_ABI_CUDA = 2, KL_NET_ABI_DMABUF = 4 };

typedef void kl_plugin_logger(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...);
typedef int kl_plugin_profile(void **event, int type, void *parent, int64_t plugin, void *data);

#endif
