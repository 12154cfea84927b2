/* SPDX-License-Identifier: Apache-2.0 */
/** graph_tuner.h - `kolo graph --tuner FILE`: the choices of a tuner for every function, from 1 byte to 16 GiB, beside the model's choices. */
#ifndef KOLO_TOOL_GRAPH_TUNER_H
#define KOLO_TOOL_GRAPH_TUNER_H

#include "answer/graph.h"
#include "tools/kolo/explain/coll_print.h"

struct kl_graph_tuner {
    const char *file;
    struct kl_tuner *tuner;
    struct kl_coll_tuned func[KL_FUNCS];
};

/** Open the tuner of `file` (graph/tuner.h) for the ranks of the plan, and ask it. Free with kl_graph_tuner_fini, also after a failure. */
ncclResult_t kl_graph_tuner_ask(const struct kl_plan_view *view, const char *file, struct kl_graph_tuner *asked);
void kl_graph_tuner_fini(struct kl_graph_tuner *asked);

void kl_graph_tuner_text(const struct kl_graph_tuner *asked, FILE *to);

/** NULL when memory is short. */
json_t *kl_graph_tuner_json(const struct kl_graph_tuner *asked);

#endif
