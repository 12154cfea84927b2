/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_graph.h - the operations of a thread's ranks captured into graphs, one for each rank, and their launches (-G).
 *
 * Blocking: a capture runs nothing; a launch queues the graphs on their ranks' streams.
 * Errors:   ncclResult_t of the library. After an error in a capture all captures have ended.
 * Threads:  a thread captures and launches for its own ranks.
 */
#ifndef KOLO_TOOL_PERF_GRAPH_H
#define KOLO_TOOL_PERF_GRAPH_H

#include "tools/kolo/perf_measure.h"

struct kl_perf_graphs {
    int n;
    koloGraphExec_t *exec; /* n, one for each rank of the thread */
};

/** Capture the operations that `issue(thread, count)` issues on the streams of the thread's ranks. */
ncclResult_t kl_perf_graphs_capture(struct kl_perf_graphs *graphs, struct kl_perf_thread *thread,
                                    ncclResult_t (*issue)(struct kl_perf_thread *thread, int count), int count);

/** Queue all graphs once. */
ncclResult_t kl_perf_graphs_launch(const struct kl_perf_graphs *graphs, const struct kl_perf_thread *thread);

/** Fine without graphs. */
void kl_perf_graphs_free(struct kl_perf_graphs *graphs);

#endif
