/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph.h - communication graphs: in which order the GPUs of a machine are visited, and through which NICs it is entered.
 *
 * A graph is a set of channels. A channel is an order of all GPUs of the machine (a ring closes it, a tree hangs the rest
 * below its first GPU, an NVLS channel has only its head), and, when the machine has NETs, the NET it is entered
 * through and the NET it is left through:
 *
 *     channel 0:  NET/0 -> GPU 0 -> GPU 7 -> ... -> GPU 1 -> NET/0
 *
 * A search finds as many channels as the links carry at a bandwidth that it lowers step by step. It is deterministic: effort is
 * counted in visited GPUs, never in time, and equal machines give equal graphs on every rank.
 *
 * Units:   GB/s per channel as float (results depend on single precision), latency in microseconds.
 * Errors:  ncclSystemError when memory is short. Finding nothing is not an error: see kl_graph.nchannels.
 * Threads: a search belongs to one thread; finished graphs are const. The topology is only read.
 * Source:  the graph specification, 2 to 7.
 */
#ifndef KL_GRAPH_GRAPH_H
#define KL_GRAPH_GRAPH_H

#include "include/nccl.h"
#include "topo/topo.h"

#include <stdbool.h>
#include <stdint.h>

enum { KL_MAX_CHANNELS = 64 }; /* of a communicator: NCCL's limit, which results depend on */

/** Kinds of graph; the values are the `id` of graph files. */
enum kl_graph_id {
    KL_GRAPH_RING,
    KL_GRAPH_TREE,
    KL_GRAPH_COLLNET_CHAIN,
    KL_GRAPH_NVLS,
    KL_GRAPH_COLLNET_DIRECT,
    KL_GRAPHS
};

/** All of them, in the order of computation and output. */
extern const int kl_graph_order[KL_GRAPHS];

/** How the channels of a graph meet the network; values as in graph files. */
enum kl_graph_pattern {
    KL_PATTERN_BALANCED_TREE = 1, /* first and second GPU both return to the network, at half bandwidth each */
    KL_PATTERN_SPLIT_TREE,        /* the first GPU is entered, the second returns */
    KL_PATTERN_TREE,              /* the first GPU is entered and returns, through the same NET */
    KL_PATTERN_RING,              /* the first GPU is entered, the last returns */
    KL_PATTERN_NVLS,              /* a head and the NVSwitch */
    KL_PATTERN_COLLNET_DIRECT     /* a head that every GPU talks to */
};

struct kl_graph {
    int id;      /* enum kl_graph_id */
    int pattern; /* enum kl_graph_pattern: the search may have changed it */
    int cross_nic;
    int collnet; /* every entry NET must offer collectives */
    int min_channels, max_channels;
    int nchannels;              /* 0: nothing found, or not computed */
    float bw_intra, bw_inter;   /* per channel, inside the machine and to the network */
    float latency_inter;        /* of the entry NET of the channel tried last */
    int type_intra, type_inter; /* worst enum kl_path_type used */
    int same_channels;          /* 1: all channels have the same order */
    int nhops;
    int ngpus;      /* entries of a channel's order */
    int32_t *intra; /* ranks: channel c is intra[c * ngpus ...]; of NVLS channels only the first entry counts */
    int64_t *inter; /* NET ids: inter[2 c] is the entry, inter[2 c + 1] the exit; zeros in machines without NET */
};

/** A search request; kl_graph_request_for sets every field that is not a preference of the user. */
struct kl_graph_request {
    int id, pattern, collnet, min_channels, max_channels;
};

/** The specification's request for a graph, before any channel count is known. */
struct kl_graph_request kl_graph_request_for(enum kl_graph_id id);

/* ---- explanation of a graph ---- */

/** How one attempt ended. */
enum kl_attempt_end {
    KL_ATTEMPT_PERFECT,   /* it stored a solution with max_channels */
    KL_ATTEMPT_EXHAUSTED, /* nothing left to try */
    KL_ATTEMPT_TIMEOUT,   /* its budget of steps is used up */
    KL_ATTEMPT_HOPELESS   /* not made: the machine can't carry a better solution */
};

/** The change after an attempt, in the order in which the search relaxes its limits. */
enum kl_relaxation {
    KL_RELAX_NONE, /* the search, or its first pass, ended */
    KL_RELAX_SAME_CHANNELS,
    KL_RELAX_PATTERN,
    KL_RELAX_TYPE_INTRA,
    KL_RELAX_TYPE_INTER,
    KL_RELAX_CROSS_NIC,
    KL_RELAX_SPEED,
    KL_RELAX_FASTER /* second pass: try more bandwidth for the solution */
};

/** The reason why the search ended. */
enum kl_search_end {
    KL_END_INJECTED,  /* the graph came from a file */
    KL_END_NOT_ASKED, /* this machine cannot have such a graph */
    KL_END_PERFECT,   /* the maximum of channels, at the best bandwidth that was tried */
    KL_END_SATURATED, /* the solution uses all bandwidth of the machine */
    KL_END_BUDGET,    /* the overall budget of steps is used up */
    KL_END_SLOW,      /* lower bandwidths cannot win any more, or there are none */
    KL_END_FALLBACK   /* nothing found: the devices in their order, at 0.1 GB/s */
};

/** Does the second pass begin with every channel twice, at half the bandwidth each? */
enum kl_doubling {
    KL_DOUBLING_NOT_ASKED, /* there was no search, or no solution */
    KL_DOUBLING_DONE,
    KL_DOUBLING_HEADS,  /* NVLS: a GPU is head only once */
    KL_DOUBLING_SLOW,   /* below 25 GB/s per channel one is enough */
    KL_DOUBLING_ENOUGH, /* sm above 80, more than 4 channels, below 50 GB/s each */
    KL_DOUBLING_FULL    /* the maximum of channels */
};

struct kl_attempt {
    int pass; /* 1: relax until there is a solution; 2: raise its bandwidth */
    int pattern, cross_nic, same_channels, type_intra, type_inter;
    float bw_intra, bw_inter;
    int budget, steps; /* allowed, and used */
    int stored;        /* channels of the last solution it stored; 0: none that was better */
    int end;           /* enum kl_attempt_end */
    int next;          /* enum kl_relaxation */
    int repeats;       /* index of an earlier attempt that this one equals step for step; -1 */
    int limiting_link; /* link of the topology that refused most often; -1 if none did */
    int refusals;      /* how often it refused */
};

struct kl_graph_why {
    struct kl_attempt *attempt;
    int nattempts;
    int end;         /* enum kl_search_end: of the first pass */
    int doubling;    /* enum kl_doubling */
    int found;       /* channels before doubling */
    uint64_t cpu_ns; /* of the calling thread */
    char *refused;   /* why a graph of a file was not taken; NULL if none was offered or it was */
};

/* ---- searching ---- */

struct kl_xml;
struct kl_search;

/** Prepare to search a finished topology (after kl_topo_paths), which must outlive the search. */
ncclResult_t kl_search_create(const struct kl_topo *topo, struct kl_search **search);
void kl_search_free(struct kl_search *search);

/**
 * Compute one graph. Searches of one struct kl_search share the machine's bandwidths and their rounding errors: compute
 * graphs in the order ring, tree, collnet chain, collnet direct, NVLS to get the reference's results.
 *
 * `file` (may be NULL) is a parsed graph file; a graph in it with this id replaces the search if it fits the machine, and
 * is refused with a warning if not. `why` may be NULL. Free results with kl_graph_free and kl_graph_why_free.
 */
ncclResult_t kl_search_run(struct kl_search *search, const struct kl_graph_request *request, const struct kl_xml *file,
                           struct kl_graph **graph, struct kl_graph_why **why);

/* ---- graphs ---- */

/** A graph with room for `max_channels` channels of `ngpus` GPUs, zeroed. */
ncclResult_t kl_graph_create(int max_channels, int ngpus, struct kl_graph **graph);

/** Copy scalars and the first `from->nchannels` channels; both must have room for them. */
void kl_graph_copy(struct kl_graph *to, const struct kl_graph *from);

void kl_graph_free(struct kl_graph *graph);

/** Are two channels entered and left through the same NETs; and do they visit the GPUs in the same order as well? */
bool kl_graph_same_nets(const struct kl_graph *graph, int a, int b);
bool kl_graph_same_channel(const struct kl_graph *graph, int a, int b);
void kl_graph_why_free(struct kl_graph_why *why);

/** Log a graph in the reference's form (INFO, GRAPH). */
void kl_graph_log(const struct kl_graph *graph, bool has_nets);

const char *kl_graph_name(int id);              /* "ring", "tree", "collnet_chain", "nvls", "collnet_direct" */
const char *kl_graph_pattern_name(int pattern); /* "balanced tree", ... */
const char *kl_relaxation_name(int relaxation);
const char *kl_search_end_name(int end);
const char *kl_doubling_name(int doubling);

#endif
