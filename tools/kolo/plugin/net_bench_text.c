/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/net_bench.h"

#include <string.h>

static const double giga = 1e9, mbit = 1e6 / 8;

/* ---- head ---- */

static const char *memory_words(unsigned memory, char text[64])
{
    snprintf(text, 64, "%s%s%s", memory & KL_NET_HOST ? "host" : "", memory & KL_NET_CUDA ? " cuda" : "",
             memory & KL_NET_DMABUF ? " dmabuf" : "");
    return text;
}

static void print_devices(const struct kl_net_bench_side *s, FILE *to)
{
    char words[64];

    for (int i = 0; i < s->ndevices && i < KL_NET_BENCH_DEVICES; i++) {
        const struct kl_net_bench_device *d = &s->device[i];
        fprintf(to, "#   device %d %s: %d Mb/s, pciPath %s, maxRecvs %d, ptrSupport %s%s\n", i, d->name, d->speed_mbps,
                *d->pci_path ? d->pci_path : "none", d->max_recvs, memory_words(d->memory, words),
                i ? "" : "; this one is measured");
    }
}

/* ---- the sweep ---- */

static void print_row(const struct kl_perf_config *c, const struct kl_net_bench_side *side, int z, int conns, int ways,
                      FILE *to)
{
    const uint64_t rounds = (uint64_t)c->iterations;
    const struct kl_net_bench_size *s[4];

    for (int i = 0; i < 4; i++) s[i] = &side[i].size[z];
    const double best = kl_net_bench_best(s[0], s[1], rounds, conns, ways),
                 own = side->device[0].speed_mbps * mbit * ways;
    const double alone = kl_net_bench_rate(s[0], s[1], rounds, conns, ways, 0) / (1 << conns) / ways;

    fprintf(to, "%10llu %5d %4d ", (unsigned long long)s[0]->bytes, 1 << conns, ways);
    for (int d = 0; d < KL_NET_BENCH_DEPTHS; d++)
        fprintf(to, " %8.4g", kl_net_bench_rate(s[0], s[1], rounds, conns, ways, d) / giga);
    fprintf(to, " %8.2f %8.4g %6.1f%% %8.4g\n", alone > 0 ? (double)s[0]->bytes / alone * 1e6 : 0, best / giga,
            own > 0 ? 100 * best / own : 0, kl_net_bench_best(s[2], s[3], rounds, conns, ways) / giga);
}

static void print_sweep(const struct kl_perf_config *c, const struct kl_net_bench_side *side, FILE *to)
{
    fprintf(to, "#\n# GB/s of all connections and directions together, by outstanding messages of a connection\n"
                "#    bytes conns ways ");
    for (int d = 0; d < KL_NET_BENCH_DEPTHS; d++) fprintf(to, " %8d", 1 << d);
    fprintf(to, "  us at 1     best of speed  Socket\n");
    for (int z = 0; z < side->nsizes; z++)
        for (int conns = 0; conns < KL_NET_BENCH_CONN_STEPS; conns++)
            for (int ways = 1; ways <= 2; ways++) print_row(c, side, z, conns, ways, to);
}

/* ---- calls ---- */

static void add_times(struct kl_call_times *sum, const struct kl_call_times *t)
{
    sum->calls += t->calls;
    sum->sum_ns += t->sum_ns;
    if (t->most_ns > sum->most_ns) sum->most_ns = t->most_ns;
    for (int i = 0; i < KL_CALL_CLASSES; i++) sum->count[i] += t->count[i];
}

static struct kl_call_times both(const struct kl_net_bench_side *side, enum kl_net_bench_call call)
{
    struct kl_call_times t = {.calls = 0};

    add_times(&t, &side[0].call[call]);
    add_times(&t, &side[1].call[call]);
    return t;
}

static void print_calls(const struct kl_net_bench_side *side, FILE *to)
{
    fprintf(to, "#\n# call          calls   p50 us   p99 us   max us      Socket: p50 us   p99 us   max us\n");
    for (int i = 0; i < KL_NET_BENCH_CALLS; i++) {
        const struct kl_call_times t = both(side, i), own = both(side + 2, i);
        fprintf(to, "  %-8s %10llu %8.2f %8.2f %8.1f              %8.2f %8.2f %8.1f\n", kl_net_bench_call_name[i],
                (unsigned long long)t.calls, (double)kl_call_times_quantile(&t, 0.5) / 1e3,
                (double)kl_call_times_quantile(&t, 0.99) / 1e3, (double)t.most_ns / 1e3,
                (double)kl_call_times_quantile(&own, 0.5) / 1e3, (double)kl_call_times_quantile(&own, 0.99) / 1e3,
                (double)own.most_ns / 1e3);
    }
}

/* ---- figures of the whole ---- */

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static void print_syscalls(const struct kl_net_bench_side *s, FILE *to)
{
    if (s[0].syscalls < 0 || s[1].syscalls < 0)
        fprintf(to, "#   bytes per system call: not counted (%s)\n",
                s[0].syscalls < 0 ? s[0].syscalls_why : s[1].syscalls_why);
    else
        fprintf(to, "#   bytes per system call: %.0f\n",
                share(s[0].bytes + s[1].bytes, (uint64_t)(s[0].syscalls + s[1].syscalls)));
}

static void print_whole(const struct kl_net_bench_side *s, FILE *to)
{
    const uint64_t sends = s[0].call[KL_NET_BENCH_ISEND].calls + s[1].call[KL_NET_BENCH_ISEND].calls;
    const uint64_t receives = s[0].call[KL_NET_BENCH_IRECV].calls + s[1].call[KL_NET_BENCH_IRECV].calls;
    const uint64_t tests = s[0].call[KL_NET_BENCH_TEST].calls + s[1].call[KL_NET_BENCH_TEST].calls;
    const uint64_t messages = s[0].messages + s[1].messages, bytes = s[0].bytes + s[1].bytes;

    fprintf(to, "#\n# %s, process 0 and 1 together\n", s[0].name);
    fprintf(to, "#   calls per message and side: %.2f; tests per completion: %.2f\n",
            share(sends + receives + tests, messages), share(tests, messages));
    fprintf(to,
            "#   without a request (NULL): %.2f%% of isend, %.2f%% of irecv; outstanding at most: %d in a process\n",
            100 * share(s[0].none[KL_NET_BENCH_ISEND] + s[1].none[KL_NET_BENCH_ISEND], sends),
            100 * share(s[0].none[KL_NET_BENCH_IRECV] + s[1].none[KL_NET_BENCH_IRECV], receives),
            s[0].most_outstanding > s[1].most_outstanding ? s[0].most_outstanding : s[1].most_outstanding);
    fprintf(to, "#   CPU time: %.4f ns per byte in the net, %.4f in its caller; threads created: %d and %d\n",
            (s[0].plugin_cpu_s + s[1].plugin_cpu_s) * 1e9 / (bytes ? (double)bytes : 1),
            (s[0].caller_cpu_s + s[1].caller_cpu_s) * 1e9 / (bytes ? (double)bytes : 1), s[0].threads, s[1].threads);
    print_syscalls(s, to);
    fprintf(to, "#   connecting %d connections: %.3f ms; registered for them: %.1f MiB on each side\n",
            2 * KL_NET_BENCH_CONNS,
            1e3 * (s[0].connecting_s > s[1].connecting_s ? s[0].connecting_s : s[1].connecting_s),
            (double)s[0].registered / (1 << 20));
    fprintf(to, "#   regMr, median:");
    for (int i = 0; i < KL_NET_BENCH_REGS; i++)
        fprintf(to, "%s %zu KiB %.2f us", i ? "," : "", kl_net_bench_reg_bytes[i] >> 10,
                (double)kl_call_times_quantile(&s->reg[i], 0.5) / 1e3);
    fprintf(to, "\n");
}

void kl_net_bench_text(const struct kl_perf_config *c, const struct kl_net_bench_side *side, FILE *to)
{
    fprintf(to, "# net plugin %s: ncclNetPlugin_v%d of %s, %d device%s\n", side->name, side->version, side->library,
            side->ndevices, side->ndevices == 1 ? "" : "s");
    print_devices(side, to);
    fprintf(to, "# beside %s over %s (NCCL_SOCKET_IFNAME); two processes of this machine, one thread each; %d rounds\n",
            side[2].name, side[2].device[0].name, c->iterations);
    print_sweep(c, side, to);
    print_calls(side, to);
    print_whole(side, to);
    print_whole(side + 2, to);
}
