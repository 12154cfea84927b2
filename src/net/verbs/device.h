/* SPDX-License-Identifier: Apache-2.0 */
/**
 * device.h - the RDMA ports of this process: found and opened once, with their settings, and asked for their GIDs.
 *
 * A device of the net is a port: active, InfiniBand or Ethernet, selected by NCCL_IB_HCA. They are in the order of their
 * PCI paths, as in NCCL. Contexts stay open for the life of the process.
 *
 * Threads:  any; after init the structures are constant but for atomics.
 */
#ifndef KL_NET_VERBS_DEVICE_H
#define KL_NET_VERBS_DEVICE_H

#include "base/atomic.h"
#include "net/net.h"
#include "net/verbs/counters.h"
#include "net/verbs/gid.h"
#include "net/verbs/library.h"

#include <limits.h>

enum { KL_VERBS_DEVICES = 32, KL_VERBS_NAME = 64 };

/** An opened card; its ports share it. */
struct kl_verbs_card {
    struct kl_ibv_context *context;
    struct kl_ibv_pd *pd;
    struct kl_ibv_device_attr attr;
    _Atomic int fatal; /* 1 + the event after which it is unusable; 0: none */
};

struct kl_verbs_device {
    struct kl_verbs_card *card;
    char name[KL_VERBS_NAME]; /* "mlx5_0", of a second port "mlx5_0:2" */
    char sysfs[PATH_MAX];     /* the port's directory */
    const char *pci_path;     /* NULL: unknown */
    uint8_t port;
    struct kl_ibv_port_attr attr; /* when it was found */
    int speed_mbps;
    struct kl_verbs_counters before; /* when it was found */
};

/** The process's table of functions and parameters; after init. */
const struct kl_verbs_library *kl_verbs(void);
const struct kl_verbs_params *kl_verbs_settings(void);

/**
 * Find and open them, at the first call; later calls return the same result, with the same sentence. ncclSystemError:
 * there is none, and why.
 */
ncclResult_t kl_verbs_devices_init(void);
int kl_verbs_devices(void);

/** Device `i`, or ncclInvalidArgument. */
ncclResult_t kl_verbs_device_find(int i, struct kl_verbs_device **device);

/** The GID for a connection between these addresses; NCCL_IB_GID_INDEX counts first. ncclSystemError: there is none. */
ncclResult_t kl_verbs_device_gid(const struct kl_verbs_device *d, const union kl_address *near,
                                 const union kl_address *far, struct kl_verbs_gid *gid);

/** Read asynchronous events: log port events, and note events that end the use of the device. Does not block. */
void kl_verbs_device_events(const struct kl_verbs_device *d);

/** "; the limit of locked memory is 8192 KiB (ulimit -l): ..." where that may be the cause of `err`, or "". */
const char *kl_verbs_memlock_hint(int err, char *text, size_t bytes);

#endif
