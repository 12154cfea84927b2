/* SPDX-License-Identifier: Apache-2.0 */
/** gpu_net.h - the counters of gpu_net.c in a process, its symbol gpu_net_counts. Any thread. */
#ifndef KOLO_TEST_GPU_NET_H
#define KOLO_TEST_GPU_NET_H

#include <stdatomic.h>

struct gpu_net_counts {
    atomic_ulong dma_bufs, addresses, ended; /* registrations of memory of GPUs: made by each, and ended */
    atomic_ulong sends, recvs, flushes;      /* of pieces of messages in such memory */
    atomic_ulong sent, received;             /* bytes of it */
};

#endif
