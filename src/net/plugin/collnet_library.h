/* SPDX-License-Identifier: Apache-2.0 */
/**
 * collnet_library.h - the CollNet table of a net plugin's library, ncclCollNetPlugin_v6 to v12, and its calls.
 *
 * Results: as library.h. "Not yet" is ncclSuccess with a NULL request.
 * Threads: as the plugin's: one at a time per communicator; connect blocks until all members have called it.
 * Source:  the specification of plugins, A4.
 */
#ifndef KL_NET_PLUGIN_COLLNET_LIBRARY_H
#define KL_NET_PLUGIN_COLLNET_LIBRARY_H

#include "net/collnet.h"
#include "net/plugin/library.h"

/** Offsets of functions in the table of a version; -1: it has none. Those up to iallreduce (80) are alike in all. */
struct kl_collnet_abi_layout {
    int16_t iallgather, ireducescatter, iflush, test, close, close_listen, finalize;
};

enum {
    KL_COLLNET_ABI_NAME = 0,
    KL_COLLNET_ABI_INIT = 8,
    KL_COLLNET_ABI_DEVICES = 16,
    KL_COLLNET_ABI_PROPERTIES = 24,
    KL_COLLNET_ABI_LISTEN = 32,
    KL_COLLNET_ABI_CONNECT = 40,
    KL_COLLNET_ABI_REDUCE_SUPPORT = 48,
    KL_COLLNET_ABI_REG_MR = 56,
    KL_COLLNET_ABI_DEREG_MR = 72,
    KL_COLLNET_ABI_IALLREDUCE = 80
};

struct kl_collnet_adapter;

struct kl_collnet_library {
    const char *file; /* of the net plugin */
    char name[KL_NET_PLUGIN_NAME + 1];
    const void *table;
    const struct kl_collnet_adapter *adapter;
    void *context; /* from v11 on */
    int ndevices;
};

/** The calls whose types differ between versions. */
struct kl_collnet_adapter {
    int version;
    struct kl_collnet_abi_layout layout;
    ncclResult_t (*init)(struct kl_collnet_library *l);
    ncclResult_t (*listen)(const struct kl_collnet_library *l, int device, void *handle, void **listener);
    ncclResult_t (*reg_mr)(const struct kl_collnet_library *l, void *comm, void *data, size_t bytes, void **mr);
    ncclResult_t (*iallreduce)(const struct kl_collnet_library *l, void *comm, const void *send, void *recv,
                               size_t count, struct kl_collnet_op op, void *send_mr, void *recv_mr, void **request);
};

/**
 * Look at the table in the library of a net plugin, and initialise it. False: it has none, or one that cannot be used, and
 * the log says why.
 */
bool kl_collnet_library_open(struct kl_collnet_library *l, const struct kl_net_library *net);
void kl_collnet_library_finalize(struct kl_collnet_library *l);

bool kl_collnet_library_reduces(const struct kl_collnet_library *l, struct kl_collnet_op op);
ncclResult_t kl_collnet_library_connect(const struct kl_collnet_library *l, void **handles, int n, int own,
                                        void *listener, void **comm);
ncclResult_t kl_collnet_library_dereg_mr(const struct kl_collnet_library *l, void *comm, void *mr);
ncclResult_t kl_collnet_library_test(const struct kl_collnet_library *l, void *request, int *done);
void kl_collnet_library_close(const struct kl_collnet_library *l, void *comm);
void kl_collnet_library_close_listen(const struct kl_collnet_library *l, void *listener);

/** Does it gather and scatter by itself? From v8 on, where the functions are there. */
bool kl_collnet_library_has_gather(const struct kl_collnet_library *l);
bool kl_collnet_library_has_scatter(const struct kl_collnet_library *l);

/** `all`: `n` parts of `bytes` each, one after the other; it is registered as `mr`. */
ncclResult_t kl_collnet_library_gather(const struct kl_collnet_library *l, void *comm, const void *send, void *send_mr,
                                       void *all, void *mr, int n, size_t bytes, void **request);
ncclResult_t kl_collnet_library_scatter(const struct kl_collnet_library *l, void *comm, void *all, void *mr, void *recv,
                                        void *recv_mr, int n, size_t bytes, struct kl_collnet_op op, void **request);

#endif
