/* SPDX-License-Identifier: Apache-2.0 */
/**
 * load.h - the load of a finished graph's channels on every link, and the load of one more channel.
 *
 * The channels are walked as the search placed them (graph/legs.h), along the same routes and with the same charges: 6/5
 * through Intel host bridges, an eighth back for old GPUs, half for each exit of a balanced tree, and so on.
 *
 * Units:   GB/s.
 * Threads: a load is const once made; topology and graph are only read, and not kept.
 */
#ifndef KL_GRAPH_LOAD_H
#define KL_GRAPH_LOAD_H

#include "graph/graph.h"

/** The obstacle to one more channel. */
enum kl_limit {
    KL_LIMIT_NONE,     /* nothing on the machine: see the end of the search */
    KL_LIMIT_CHANNELS, /* the graph has as many as it may have */
    KL_LIMIT_LINKS,    /* links are full */
    KL_LIMIT_PORTS     /* links have room, but not the port of the NIC that it would enter through */
};

struct kl_load {
    int nlinks, nnets;
    float *used;                  /* by link: load of all channels */
    float *more;                  /* by link: load of one more channel like `like` */
    float *port_used, *port_more; /* by NET: the same, of the port that it belongs to, by entering channels */
    int like;                     /* the channel that lacks least if there were another like it; -1 without channels */
    int limit;                    /* enum kl_limit */
};

/** NETs that a graph file invented are passed over. Free with kl_load_free. */
ncclResult_t kl_load_create(const struct kl_topo *topo, const struct kl_graph *graph, struct kl_load **load);
void kl_load_free(struct kl_load *load);

/** The bandwidth that a link, or the port of a NET, lacks for one more channel; 0: enough. */
float kl_load_lacks(const struct kl_load *load, const struct kl_topo *topo, int link);
float kl_load_port_lacks(const struct kl_load *load, const struct kl_topo *topo, int net);

const char *kl_limit_name(int limit); /* "links" */

#endif
