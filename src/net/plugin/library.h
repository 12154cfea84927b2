/* SPDX-License-Identifier: Apache-2.0 */
/**
 * library.h - one loaded net plugin: its table, and calls of it that are the same for all versions of the ABI.
 *
 * Results: of the calls are the plugin's own, as ncclResult_t. ncclInProgress is none that a plugin may return. "Not yet" is
 *          ncclSuccess with a NULL communicator or request.
 * Threads: as the plugin's: one at a time per communicator; listen and properties any.
 */
#ifndef KL_NET_PLUGIN_LIBRARY_H
#define KL_NET_PLUGIN_LIBRARY_H

#include "net/net.h"
#include "net/plugin/abi.h"
#include "os/plugin.h"

enum { KL_NET_PLUGIN_DEVICES = 64, KL_NET_PLUGIN_NAME = 63, KL_NET_PLUGIN_TEXT = 640 };

struct kl_net_adapter;

struct kl_net_library {
    void *library;
    char file[KL_PLUGIN_FILE];
    char name[KL_NET_PLUGIN_NAME + 1];
    const struct kl_net_abi_table *table;
    const struct kl_net_adapter *adapter;
    void *context; /* from v11 on */
    int ndevices;
    struct kl_net_properties device[KL_NET_PLUGIN_DEVICES];
};

/** The calls whose types differ between versions. */
struct kl_net_adapter {
    int version;
    struct kl_net_abi_layout layout;
    size_t most_bytes; /* of a message */
    ncclResult_t (*init)(struct kl_net_library *l);
    ncclResult_t (*finalize)(struct kl_net_library *l);
    ncclResult_t (*listen)(const struct kl_net_library *l, int device, void *handle, void **listener);
    ncclResult_t (*connect)(const struct kl_net_library *l, int device, void *handle, void **comm);
    ncclResult_t (*accept)(const struct kl_net_library *l, void *listener, void **comm);
    ncclResult_t (*reg_mr)(const struct kl_net_library *l, void *comm, void *data, size_t bytes, int memory, void **mr);
    ncclResult_t (*isend)(const struct kl_net_library *l, void *comm, const struct kl_net_recv *message,
                          void **request);
    ncclResult_t (*irecv)(const struct kl_net_library *l, void *comm, int n, const struct kl_net_recv *recvs,
                          void **request);
};

/** The row of a version. */
const struct kl_net_adapter *kl_net_adapter(int version);

/**
 * Open the library `name`, as kl_plugin_open, and look at its table. False: it is not usable, and the log says why. The plugin
 * itself is not called.
 */
bool kl_net_library_open(struct kl_net_library *l, const char *name);

/** init, devices, and the properties of each. False, as above; then the plugin is finalized. */
bool kl_net_library_init(struct kl_net_library *l);
void kl_net_library_finalize(struct kl_net_library *l);
void kl_net_library_close(struct kl_net_library *l);

/** The logger that plugins get. */
void kl_net_library_log(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/** As merge of struct kl_net; the device is the next one of `l`. Not while others read its devices. */
ncclResult_t kl_net_library_merge(struct kl_net_library *l, const int *member, int n, int *device);

/** A call that ends `object`, of a plugin of `kind` ("NET"); a result other than 0 is a line of level INFO. */
void kl_net_library_end(const char *kind, const char *plugin, const char *function, kl_plugin_fn *fn, void *object);

/** Calls that are alike in all versions. */
ncclResult_t kl_net_library_reg_dmabuf(const struct kl_net_library *l, void *comm, void *data, size_t bytes,
                                       uint64_t offset, int fd, void **mr);
ncclResult_t kl_net_library_dereg_mr(const struct kl_net_library *l, void *comm, void *mr);
ncclResult_t kl_net_library_iflush(const struct kl_net_library *l, void *comm, int n, const struct kl_net_recv *recvs,
                                   void **request);
ncclResult_t kl_net_library_test(const struct kl_net_library *l, void *request, int *done, int *sizes);
void kl_net_library_close_send(const struct kl_net_library *l, void *comm);
void kl_net_library_close_recv(const struct kl_net_library *l, void *comm);
void kl_net_library_close_listen(const struct kl_net_library *l, void *listener);

#endif
