/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rma_library.h - the table of a plugin for one-sided operations, ncclRmaPlugin_v13 to v15, or ncclGinPlugin_v13 of the proxy's type,
 * and its calls.
 *
 * Results: as library.h, but a put without a request is an error.
 * Source:  the specification of plugins, A12.
 */
#ifndef KL_NET_PLUGIN_RMA_LIBRARY_H
#define KL_NET_PLUGIN_RMA_LIBRARY_H

#include "net/plugin/library.h"
#include "net/rma.h"

enum { KL_RMA_ABI_OLDEST = 13, KL_RMA_ABI_NEWEST = 15 };

struct kl_rma_abi_table {
    const char *name;
    kl_plugin_fn *init, *devices, *properties, *listen, *connect, *create_context, *reg_mr, *reg_mr_dmabuf, *dereg_mr,
        *destroy_context, *close_coll, *close_listen, *iput, *iput_signal, *iget, *iflush, *test, *progress,
        *query_last_error, *finalize;
};
_Static_assert(offsetof(struct kl_rma_abi_table, iput) == 104, "as measured");
_Static_assert(offsetof(struct kl_rma_abi_table, finalize) == 160, "as measured");
_Static_assert(sizeof(struct kl_rma_abi_table) == 168, "as measured");

/** Flags of registered memory, and the operation of a put on its counter. */
enum { KL_RMA_ABI_IN_ORDER = 1, KL_RMA_ABI_NEVER_RESET = 2, KL_RMA_ABI_ADD = 2 };

struct kl_rma_adapter;

struct kl_rma_library {
    void *library;
    char file[KL_PLUGIN_FILE];
    char name[KL_NET_PLUGIN_NAME + 1];
    const struct kl_rma_abi_table *table;
    const struct kl_rma_adapter *adapter;
};

/** The calls whose types differ between versions. */
struct kl_rma_adapter {
    const char *prefix; /* of the symbol */
    int version;
    ncclResult_t (*create_context)(const struct kl_rma_library *l, void *comm, void **context);
    ncclResult_t (*reg_mr)(const struct kl_rma_library *l, void *comm, void *data, size_t bytes, uint64_t flags,
                           void **mr);
    ncclResult_t (*put_signal)(const struct kl_rma_library *l, void *context, const struct kl_net_rma_put *p,
                               void **request);
    ncclResult_t (*put)(const struct kl_rma_library *l, void *context, const struct kl_net_rma_put *p, void **request);
};

/** Look at the tables of `l->library`, whose name is `l->file`. False: none can be used, and the log says why. It is not called. */
bool kl_rma_library_read(struct kl_rma_library *l);

/** init, devices, and the properties of a device. False: refused, as above, and finalized. */
bool kl_rma_library_start(const struct kl_rma_library *l, uint64_t comm, void **context, int *ndevices);
void kl_rma_library_finalize(const struct kl_rma_library *l, void *context);

/** Calls that are alike in all versions. */
ncclResult_t kl_rma_library_listen(const struct kl_rma_library *l, void *context, int device, void *handle,
                                   void **listener);
ncclResult_t kl_rma_library_connect(const struct kl_rma_library *l, void *context, void **handles, int n, int rank,
                                    void *listener, void **comm);
ncclResult_t kl_rma_library_dereg_mr(const struct kl_rma_library *l, void *comm, void *mr);
ncclResult_t kl_rma_library_test(const struct kl_rma_library *l, void *comm, void *request, int *done);
ncclResult_t kl_rma_library_progress(const struct kl_rma_library *l, void *context);

/** Has something failed that no request tells of? */
bool kl_rma_library_has_failed(const struct kl_rma_library *l, void *context);
void kl_rma_library_destroy_context(const struct kl_rma_library *l, void *context);
void kl_rma_library_close(const struct kl_rma_library *l, void *comm);
void kl_rma_library_close_listen(const struct kl_rma_library *l, void *listener);

#endif
