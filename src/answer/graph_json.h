/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph_json.h - a topology as JSON: the values behind the keys that the answers about topologies and plans share.
 *
 * Each function returns a new value, or NULL when memory is short or a question has no answer (kl_error_text says
 * which). Numbers are the shortest decimals of their single-precision values; print with kl_output_answer.
 */
#ifndef KL_ANSWER_GRAPH_JSON_H
#define KL_ANSWER_GRAPH_JSON_H

#include "plan/cluster.h"
#include "topo/topo.h"

#include <jansson.h>

/** The shortest decimal that reads back as this float; an integer where it is one. */
json_t *kl_json_float(float value);

/** Nodes with their facts and links, in order. */
json_t *kl_json_system(const struct kl_topo *t);

/** gpu_gpu, gpu_net, net_gpu, gpu_cpu, gpu_nvs: matrices of {type, bw, hops}; null where there is no such table. */
json_t *kl_json_paths(const struct kl_topo *t);

/**
 * gpu_ranks, p2p, use_net, gdr, local_net, local_gpu, intermediate_rank, and p2p_net towards the ranks of another host
 * with `peers` GPUs like ours (0: none).
 */
json_t *kl_json_queries(const struct kl_topo *t, const struct kl_cluster *cluster);

#endif
