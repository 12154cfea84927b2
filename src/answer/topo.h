/* SPDX-License-Identifier: Apache-2.0 */
/**
 * topo.h - a machine as a graph of nodes, links and paths.
 *
 * Errors: as kl_cluster_whole; ncclInvalidUsage for ends of a path that are not there.
 */
#ifndef KL_ANSWER_TOPO_H
#define KL_ANSWER_TOPO_H

#include "answer/opened.h"
#include "topo/warn.h"

#include <stdio.h>

struct kl_topo_answer {
    const struct kl_cluster *cluster;
    struct kl_topo *topo;
    struct kl_xml *document;
};

/** `trimmed`: the system of rank 0, as a plan uses it; else the machine with all its NICs. Free with kl_topo_answer_fini, also after a failure. */
ncclResult_t kl_topo_answer_make(struct kl_opened *opened, bool trimmed, struct kl_topo_answer *answer);
void kl_topo_answer_fini(struct kl_topo_answer *answer);

/** Suspicious facts of the machine (topo/warn.h). */
void kl_topo_answer_warn(const struct kl_topo_answer *answer, kl_topo_warning *warn, void *ctx);

ncclResult_t kl_topo_json(const struct kl_topo_answer *answer, FILE *to);

/** The node that is the end of a path; `name` as in topo_name.h. */
ncclResult_t kl_topo_end(const struct kl_topo_answer *answer, const char *name, int *node);

#endif
