/* SPDX-License-Identifier: Apache-2.0 */
/**
 * switches.h - switches between hosts, as schedulers know them: Slurm's topology.conf and topology.yaml, and topograph's output (either
 * of these, its model, or labels of Kubernetes' nodes as YAML, JSON or text of kubectl).
 *
 * A tree: each host hangs on one switch or block (a pod), each switch on at most one other. Hosts are sorted by name; `by_place` has
 * them tree by tree, so that hosts of a pod are neighbours, and pods below one switch too.
 *
 * Memory:  texts belong to the tree.
 * Errors:  ncclInvalidUsage with the line for a text that is no tree.
 * Threads: const once made.
 */
#ifndef KL_PLAN_SWITCHES_H
#define KL_PLAN_SWITCHES_H

#include "topo/input.h"

#include "include/nccl.h"

enum { KL_SWITCH_LEVELS = 32 };

struct kl_switch {
    const char *name;
    int parent; /* -1: none */
    int hosts;  /* directly below */
};

struct kl_switch_host {
    const char *name;
    int parent;
    int pod; /* numbered by place */
};

struct kl_switches {
    enum kl_input_kind kind;
    struct kl_switch *sw;
    struct kl_switch_host *host;
    int *by_place; /* indices of hosts */
    int nsw, nhosts, npods, levels;
    struct kl_switches_made *made; /* inner: texts and declarations */
};

/** Read a text of the kinds KL_INPUT_SLURM and KL_INPUT_TOPOGRAPH. Free with kl_switches_fini, also after a failure. */
ncclResult_t kl_switches_read(const char *file, const char *text, size_t bytes, struct kl_switches *switches);
void kl_switches_fini(struct kl_switches *switches);

/** Neighbours of a ring over the hosts in an order that hang on different pods; `order` NULL: by name. */
int kl_switches_crossings(const struct kl_switches *switches, const int *order);

#endif
