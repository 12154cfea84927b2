/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph.h"

#include "base/error.h"
#include "base/log.h"
#include "graph/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int kl_graph_order[KL_GRAPHS] = {KL_GRAPH_RING, KL_GRAPH_TREE, KL_GRAPH_COLLNET_CHAIN, KL_GRAPH_COLLNET_DIRECT,
                                       KL_GRAPH_NVLS};

struct kl_graph_request kl_graph_request_for(enum kl_graph_id id)
{
    static const struct kl_graph_request request[] = {
        [KL_GRAPH_RING] = {KL_GRAPH_RING, KL_PATTERN_RING, 0, 1, KL_MAX_CHANNELS / 2},
        [KL_GRAPH_TREE] = {KL_GRAPH_TREE, KL_PATTERN_BALANCED_TREE, 0, 1, KL_MAX_CHANNELS},
        [KL_GRAPH_COLLNET_CHAIN] = {KL_GRAPH_COLLNET_CHAIN, KL_PATTERN_TREE, 1, 1, KL_MAX_CHANNELS},
        [KL_GRAPH_NVLS] = {KL_GRAPH_NVLS, KL_PATTERN_NVLS, 0, 1, KL_MAX_CHANNELS},
        [KL_GRAPH_COLLNET_DIRECT] = {KL_GRAPH_COLLNET_DIRECT, KL_PATTERN_COLLNET_DIRECT, 1, 1, KL_MAX_CHANNELS},
    };

    return request[id];
}

ncclResult_t kl_graph_create(int max_channels, int ngpus, struct kl_graph **graph)
{
    size_t orders = (size_t)max_channels * (size_t)ngpus * sizeof(int32_t);
    size_t nets = 2 * (size_t)max_channels * sizeof(int64_t);
    struct kl_graph *g = calloc(1, sizeof *g + nets + orders); /* one block: the arrays follow the struct */

    if (!g) return KL_NOMEM("a graph");
    g->ngpus = ngpus;
    g->inter = (int64_t *)(g + 1);
    g->intra = (int32_t *)(g->inter + 2 * (size_t)max_channels);
    *graph = g;
    return ncclSuccess;
}

void kl_graph_copy(struct kl_graph *to, const struct kl_graph *from)
{
    int32_t *intra = to->intra;
    int64_t *inter = to->inter;

    *to = *from;
    to->intra = intra;
    to->inter = inter;
    memcpy(intra, from->intra, (size_t)from->nchannels * (size_t)from->ngpus * sizeof *intra);
    memcpy(inter, from->inter, 2 * (size_t)from->nchannels * sizeof *inter);
}

bool kl_graph_same_nets(const struct kl_graph *g, int a, int b)
{
    return g->inter[2 * a] == g->inter[2 * b] && g->inter[2 * a + 1] == g->inter[2 * b + 1];
}

bool kl_graph_same_channel(const struct kl_graph *g, int a, int b)
{
    size_t n = g->pattern == KL_PATTERN_NVLS ? 1 : (size_t)g->ngpus;
    const int32_t *order = g->intra + (size_t)a * (size_t)g->ngpus, *other = g->intra + (size_t)b * (size_t)g->ngpus;

    return kl_graph_same_nets(g, a, b) && !memcmp(order, other, n * sizeof *order);
}

void kl_graph_free(struct kl_graph *graph)
{
    free(graph);
}

void kl_graph_why_free(struct kl_graph_why *why)
{
    if (!why) return;
    free(why->attempt);
    free(why->refused);
    free(why);
}

static int append_net(char *line, size_t size, int at, uint64_t id)
{
    if (at < 0 || (size_t)at >= size) return at;
    return at + snprintf(line + at, size - (size_t)at, " NET/%x-%llx", (unsigned)kl_id_host(id),
                         (unsigned long long)kl_id_local(id));
}

static void log_channel(const struct kl_graph *g, int channel, bool has_nets)
{
    char line[1024];
    int at = snprintf(line, sizeof line, "%2d :", channel);

    if (has_nets) at = append_net(line, sizeof line, at, (uint64_t)g->inter[2 * channel]);
    for (int i = 0; i < g->ngpus && at >= 0 && (size_t)at < sizeof line; i++)
        at += snprintf(line + at, sizeof line - (size_t)at, " GPU/%d", g->intra[channel * g->ngpus + i]);
    if (has_nets) append_net(line, sizeof line, at, (uint64_t)g->inter[2 * channel + 1]);
    KL_INFO(KL_GRAPH, "%s", line);
}

void kl_graph_log(const struct kl_graph *g, bool has_nets)
{
    if (!kl_log_on(KL_LOG_INFO, KL_GRAPH)) return;
    KL_INFO(KL_GRAPH, "Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %s/%s, sameChannels %d", g->pattern,
            g->cross_nic, g->nchannels, g->bw_intra, g->bw_inter, kl_path_type_name[g->type_intra],
            kl_path_type_name[g->type_inter], g->same_channels);
    for (int c = 0; c < g->nchannels; c++) log_channel(g, c, has_nets);
}

const char *kl_graph_name(int id)
{
    static const char *const names[] = {
        [KL_GRAPH_RING] = "ring",
        [KL_GRAPH_TREE] = "tree",
        [KL_GRAPH_COLLNET_CHAIN] = "collnet_chain",
        [KL_GRAPH_NVLS] = "nvls",
        [KL_GRAPH_COLLNET_DIRECT] = "collnet_direct",
    };

    return KL_NAME_IN(names, id);
}

const char *kl_graph_pattern_name(int pattern)
{
    static const char *const names[] = {
        [KL_PATTERN_BALANCED_TREE] = "balanced tree",
        [KL_PATTERN_SPLIT_TREE] = "split tree",
        [KL_PATTERN_TREE] = "tree",
        [KL_PATTERN_RING] = "ring",
        [KL_PATTERN_NVLS] = "nvls",
        [KL_PATTERN_COLLNET_DIRECT] = "collnet direct",
    };

    return KL_NAME_IN(names, pattern);
}

const char *kl_relaxation_name(int relaxation)
{
    static const char *const names[] = {
        [KL_RELAX_NONE] = "none",
        [KL_RELAX_SAME_CHANNELS] = "different orders per channel",
        [KL_RELAX_PATTERN] = "another pattern",
        [KL_RELAX_TYPE_INTRA] = "longer paths between GPUs",
        [KL_RELAX_TYPE_INTER] = "longer paths to NICs",
        [KL_RELAX_CROSS_NIC] = "entering and leaving through different NICs",
        [KL_RELAX_SPEED] = "less bandwidth per channel",
        [KL_RELAX_FASTER] = "more bandwidth per channel",
    };

    return KL_NAME_IN(names, relaxation);
}

const char *kl_search_end_name(int end)
{
    static const char *const names[] = {
        [KL_END_INJECTED] = "given by a graph file",
        [KL_END_NOT_ASKED] = "this machine has no such graph",
        [KL_END_PERFECT] = "as many channels as wanted",
        [KL_END_SATURATED] = "the machine's bandwidth is used up",
        [KL_END_BUDGET] = "step limit reached",
        [KL_END_SLOW] = "lower bandwidths cannot give more",
        [KL_END_FALLBACK] = "nothing found",
    };

    return KL_NAME_IN(names, end);
}

const char *kl_doubling_name(int doubling)
{
    static const char *const names[] = {
        [KL_DOUBLING_NOT_ASKED] = "not asked",
        [KL_DOUBLING_DONE] = "every channel is used twice, at half the bandwidth",
        [KL_DOUBLING_HEADS] = "not doubled: a GPU is head of one channel only",
        [KL_DOUBLING_SLOW] = "not doubled: below 25 GB/s a channel is not worth dividing",
        [KL_DOUBLING_ENOUGH] = "not doubled: more than 4 channels below 50 GB/s are enough after sm 80",
        [KL_DOUBLING_FULL] = "not doubled: there may be no more channels",
    };

    return KL_NAME_IN(names, doubling);
}
