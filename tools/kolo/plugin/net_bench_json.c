/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/net_bench.h"

#include <jansson.h>
#include <string.h>

enum { SIDES = 2 };

static json_t *times_json(const struct kl_call_times *t)
{
    return json_pack("{s:I,s:f,s:f,s:f}", "calls", (json_int_t)t->calls, "p50_us",
                     (double)kl_call_times_quantile(t, 0.5) / 1e3, "p99_us",
                     (double)kl_call_times_quantile(t, 0.99) / 1e3, "max_us", (double)t->most_ns / 1e3);
}

static json_t *devices_json(const struct kl_net_bench_side *s)
{
    json_t *list = json_array();

    for (int i = 0; i < s->ndevices && i < KL_NET_BENCH_DEVICES; i++) {
        const struct kl_net_bench_device *d = &s->device[i];
        json_array_append_new(list, json_pack("{s:s,s:i,s:s?,s:i,s:i}", "name", d->name, "speed_mbps", d->speed_mbps,
                                              "pci_path", *d->pci_path ? d->pci_path : NULL, "max_recvs", d->max_recvs,
                                              "ptr_support", (int)d->memory));
    }
    return list;
}

static json_t *side_json(const struct kl_net_bench_side *s)
{
    json_t *calls = json_object(), *reg = json_array();

    for (int i = 0; i < KL_NET_BENCH_CALLS; i++)
        json_object_set_new(calls, kl_net_bench_call_name[i], times_json(&s->call[i]));
    for (int i = 0; i < KL_NET_BENCH_REGS; i++) {
        json_t *one = times_json(&s->reg[i]);
        json_object_set_new(one, "bytes", json_integer((json_int_t)kl_net_bench_reg_bytes[i]));
        json_array_append_new(reg, one);
    }
    return json_pack("{s:o,s:o,s:I,s:I,s:I,s:I,s:I,s:i,s:i,s:f,s:f,s:f,s:o}", "calls", calls, "registrations", reg,
                     "messages", (json_int_t)s->messages, "bytes", (json_int_t)s->bytes, "registered_bytes",
                     (json_int_t)s->registered, "isend_without_request", (json_int_t)s->none[KL_NET_BENCH_ISEND],
                     "irecv_without_request", (json_int_t)s->none[KL_NET_BENCH_IRECV], "most_outstanding",
                     s->most_outstanding, "threads_created", s->threads, "connecting_s", s->connecting_s, "net_cpu_s",
                     s->plugin_cpu_s, "caller_cpu_s", s->caller_cpu_s, "system_calls",
                     s->syscalls < 0 ? json_null() : json_integer((json_int_t)s->syscalls));
}

static json_t *points_json(const struct kl_perf_config *c, const struct kl_net_bench_side *side)
{
    json_t *list = json_array();

    for (int z = 0; z < side->nsizes; z++)
        for (int conns = 0; conns < KL_NET_BENCH_CONN_STEPS; conns++)
            for (int ways = 1; ways <= 2; ways++)
                for (int d = 0; d < KL_NET_BENCH_DEPTHS; d++)
                    json_array_append_new(list, json_pack("{s:I,s:i,s:i,s:i,s:f}", "bytes",
                                                          (json_int_t)side->size[z].bytes, "connections", 1 << conns,
                                                          "ways", ways, "outstanding", 1 << d, "bytes_per_s",
                                                          kl_net_bench_rate(&side[0].size[z], &side[1].size[z],
                                                                            (uint64_t)c->iterations, conns, ways, d)));
    return list;
}

static json_t *net_json(const struct kl_perf_config *c, const struct kl_net_bench_side *side)
{
    json_t *sides = json_array();

    for (int i = 0; i < SIDES; i++) json_array_append_new(sides, side_json(&side[i]));
    return json_pack("{s:s,s:s?,s:i,s:o,s:o,s:o}", "name", side->name, "library", *side->library ? side->library : NULL,
                     "version", side->version, "devices", devices_json(side), "points", points_json(c, side),
                     "processes", sides);
}

int kl_net_bench_json(const struct kl_perf_config *c, const struct kl_net_bench_side *side, const char *file)
{
    json_t *all = json_pack("{s:o,s:o}", "plugin", net_json(c, side), "socket", net_json(c, side + SIDES));
    const int rc = all ? json_dump_file(all, file, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : -1;

    json_decref(all);
    return rc;
}
