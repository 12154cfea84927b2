/* SPDX-License-Identifier: Apache-2.0 */
/**
 * net_bench.h - `kolo perf --net-plugin FILE`: a net plugin by itself, between two processes of this machine, beside Kolo's sockets.
 *
 *     net_bench.c   the two processes, and their end
 *     net_bench_side.c   one of them: connections, and messages at each point of the sweep
 *     net_bench_text.c   the report; net_bench_json.c the same as JSON
 *
 * A sweep goes through sizes, numbers of connections, one or both directions, and numbers of outstanding messages per connection. Each
 * process has one thread, which polls all its connections in turn; each call is timed.
 */
#ifndef KOLO_TOOL_PLUGIN_NET_BENCH_H
#define KOLO_TOOL_PLUGIN_NET_BENCH_H

#include "base/atomic.h"
#include "net/net.h"
#include "tools/kolo/perf_config.h"
#include "tools/kolo/plugin/call_times.h"
#include "tools/kolo/plugin/result.h"

enum kl_net_bench_call {
    KL_NET_BENCH_LISTEN,
    KL_NET_BENCH_CONNECT,
    KL_NET_BENCH_ACCEPT,
    KL_NET_BENCH_REG_MR,
    KL_NET_BENCH_DEREG_MR,
    KL_NET_BENCH_ISEND,
    KL_NET_BENCH_IRECV,
    KL_NET_BENCH_TEST,
    KL_NET_BENCH_CLOSE,
    KL_NET_BENCH_CALLS
};
extern const char *const kl_net_bench_call_name[KL_NET_BENCH_CALLS];

enum {
    KL_NET_BENCH_SIZES = 64,
    KL_NET_BENCH_CONNS = 4,      /* at most, in each direction */
    KL_NET_BENCH_CONN_STEPS = 3, /* 1, 2, 4 */
    KL_NET_BENCH_DEPTHS = 6,     /* 1 to 32 outstanding messages */
    KL_NET_BENCH_REGS = 4,
    KL_NET_BENCH_DEVICES = 64,
    KL_NET_BENCH_TEXT = 256
};
extern const size_t kl_net_bench_reg_bytes[KL_NET_BENCH_REGS];

/** Seconds of the points of a size: by connections (1 << i), ways (i + 1), outstanding messages (1 << i). */
struct kl_net_bench_size {
    uint64_t bytes;
    double seconds[KL_NET_BENCH_CONN_STEPS][2][KL_NET_BENCH_DEPTHS];
};

struct kl_net_bench_device {
    char name[KL_NET_BENCH_TEXT], pci_path[KL_NET_BENCH_TEXT];
    int speed_mbps, max_recvs;
    unsigned memory;
};

/** Of one process, in memory that both and their parent share. */
struct kl_net_bench_side {
    struct kl_check_result result; /* the first failure, and the call under way */
    _Atomic uint64_t progress;     /* counts everything that comes about */

    char library[KL_NET_BENCH_TEXT], name[64];
    int version, ndevices;
    struct kl_net_bench_device device[KL_NET_BENCH_DEVICES];

    int nsizes;
    struct kl_net_bench_size size[KL_NET_BENCH_SIZES];
    struct kl_call_times call[KL_NET_BENCH_CALLS], reg[KL_NET_BENCH_REGS]; /* reg: regMr of kl_net_bench_reg_bytes */
    uint64_t none[KL_NET_BENCH_CALLS]; /* calls of isend and irecv without a request */
    uint64_t messages, bytes, registered;
    int most_outstanding, threads; /* threads: that were created */
    double connecting_s;           /* for all connections */
    double plugin_cpu_s, caller_cpu_s;
    int64_t syscalls; /* -1: not counted, for the reason in `syscalls_why` */
    char syscalls_why[KL_NET_BENCH_TEXT];
};

/** Run a side: NULL for `file` is Kolo's sockets. `peer` is a socket to the other side. Failures are in the result. */
void kl_net_bench_side_run(const struct kl_perf_config *config, const char *file, int number, int peer,
                           struct kl_net_bench_side *side);

/** The whole: exit code of the tool. */
int kl_net_bench(const struct kl_perf_config *config);

/** The best of a size, in bytes per second over the slower side. */
double kl_net_bench_best(const struct kl_net_bench_size *one, const struct kl_net_bench_size *other, uint64_t rounds,
                         int conns, int ways);
double kl_net_bench_rate(const struct kl_net_bench_size *one, const struct kl_net_bench_size *other, uint64_t rounds,
                         int conns, int ways, int depth);

/** `side`: two of the plugin, then two of sockets. */
void kl_net_bench_text(const struct kl_perf_config *config, const struct kl_net_bench_side *side, FILE *to);
int kl_net_bench_json(const struct kl_perf_config *config, const struct kl_net_bench_side *side, const char *file);

#endif
