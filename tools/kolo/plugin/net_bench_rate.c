/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/net_bench.h"

double kl_net_bench_rate(const struct kl_net_bench_size *one, const struct kl_net_bench_size *other, uint64_t rounds,
                         int conns, int ways, int depth)
{
    const double a = one->seconds[conns][ways - 1][depth], b = other->seconds[conns][ways - 1][depth];
    const double seconds = a > b ? a : b;
    const double bytes = (double)one->bytes * (double)(rounds << depth) * (1 << conns) * ways;

    return seconds > 0 ? bytes / seconds : 0;
}

double kl_net_bench_best(const struct kl_net_bench_size *one, const struct kl_net_bench_size *other, uint64_t rounds,
                         int conns, int ways)
{
    double best = 0;

    for (int d = 0; d < KL_NET_BENCH_DEPTHS; d++) {
        const double rate = kl_net_bench_rate(one, other, rounds, conns, ways, d);
        if (rate > best) best = rate;
    }
    return best;
}
