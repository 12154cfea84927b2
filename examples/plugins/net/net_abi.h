/* SPDX-License-Identifier: Apache-2.0 */
/**
 * net_abi.h - the table that a net plugin exports, for the version NET_VERSION (6 to 12, 12 by default): ncclNetPlugin_v<NET_VERSION>.
 *
 * Every function returns 0 for success, or another value of ncclResult_t. "Not yet" is 0 with a NULL communicator (connect, accept) or a
 * NULL request (isend, irecv).
 */
#ifndef NET_ABI_H
#define NET_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifndef NET_VERSION
#define NET_VERSION 12
#endif

enum { NET_OK = 0, NET_SYSTEM = 2, NET_INTERNAL = 3, NET_USAGE = 5, NET_REMOTE = 6 };
enum { NET_HANDLE = 128, NET_HOST_MEMORY = 1 };

typedef void net_logger(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...);
typedef int net_profile(void **event, int type, void *parent, int64_t plugin, void *data);

struct net_config {
    int traffic_class;
};

struct net_properties {
    char *name, *pci_path;
    uint64_t guid;
    int memory;
#if NET_VERSION >= 8
    int registered_for_all;
#endif
#if NET_VERSION >= 9
    int flush;
#endif
    int speed_mbps, port;
    float latency_us;
    int max_comms, max_recvs;
#if NET_VERSION >= 7
    int device_type, device_version;
#endif
#if NET_VERSION >= 9
    struct {
        int n;
        int device[NET_VERSION >= 12 ? 8 : 4];
    } members;
    size_t max_p2p_bytes, max_coll_bytes;
#endif
#if NET_VERSION >= 11
    int max_multi;
#endif
#if NET_VERSION >= 12
    int16_t rail, plane;
#endif
};

#if NET_VERSION >= 8
typedef size_t net_mr_size;
#else
typedef int net_mr_size;
#endif
#if NET_VERSION >= 9
typedef size_t net_size;
#else
typedef int net_size;
#endif

/* Arguments that some versions have. */
#if NET_VERSION >= 11
#define NET_INIT_ARGS    void **context, uint64_t comm, struct net_config *config, net_logger *log, net_profile *profile
#define NET_CONTEXT      void *context,
#define NET_CONNECT_ARGS void *context, int device,
#elif NET_VERSION == 10
#define NET_INIT_ARGS net_logger *log, net_profile *profile
#define NET_CONTEXT
#define NET_CONNECT_ARGS int device, struct net_config *config,
#else
#define NET_INIT_ARGS net_logger *log
#define NET_CONTEXT
#define NET_CONNECT_ARGS int device,
#endif
#if NET_VERSION >= 7
#define NET_OFFLOAD , void **offload
#else
#define NET_OFFLOAD
#endif
#if NET_VERSION >= 10
#define NET_PARENT  void *parent,
#define NET_PARENTS void **parents,
#else
#define NET_PARENT
#define NET_PARENTS
#endif

#if NET_VERSION >= 12
#define NET_MEMBERS 8 /* of a virtual device */
#else
#define NET_MEMBERS 4
#endif

struct net_plugin {
    const char *name;
    int (*init)(NET_INIT_ARGS);
    int (*devices)(int *n);
    int (*properties)(int device, struct net_properties *p);
    int (*listen)(NET_CONTEXT int device, void *handle, void **listener);
    int (*connect)(NET_CONNECT_ARGS void *handle, void **comm NET_OFFLOAD);
    int (*accept)(void *listener, void **comm NET_OFFLOAD);
    int (*reg_mr)(void *comm, void *data, net_mr_size bytes, int memory, void **mr);
    int (*reg_mr_dmabuf)(void *comm, void *data, size_t bytes, int memory, uint64_t offset, int fd, void **mr);
    int (*dereg_mr)(void *comm, void *mr);
    int (*isend)(void *comm, void *data, net_size bytes, int tag, void *mr, NET_PARENT void **request);
    int (*irecv)(void *comm, int n, void **data, net_size *bytes, int *tags, void **mr, NET_PARENTS void **request);
    int (*iflush)(void *comm, int n, void **data, int *bytes, void **mr, void **request);
    int (*test)(void *request, int *done, int *sizes);
    int (*close_send)(void *comm);
    int (*close_recv)(void *comm);
    int (*close_listen)(void *listener);
#if NET_VERSION >= 7
    int (*device_mr)(void *comm, void *mr, void **device_mr);
    int (*irecv_consumed)(void *comm, int n, void *request);
#endif
#if NET_VERSION >= 9
    int (*make_vdevice)(int *device, void *members);
#endif
#if NET_VERSION >= 11
    int (*finalize)(void *context);
    int (*set_attributes)(void *context, void *attributes);
#endif
};

#ifndef NET_SYMBOL_OF
#define NET_SYMBOL_OF(version) ncclNetPlugin_v##version
#endif
#define NET_SYMBOL_(version) NET_SYMBOL_OF(version)
#define NET_SYMBOL           NET_SYMBOL_(NET_VERSION)

#endif
