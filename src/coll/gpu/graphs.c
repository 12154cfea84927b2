/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/graphs.h"

#include "coll/gpu/words.h"

#include <stdlib.h>

struct kl_gpu_graphs {
    struct kl_gpu_words words;
    struct kl_gpu_call *call[KL_JOB_RANKS]; /* by rank, of the operation that is being submitted */
    kl_cu_stream own[KL_CUDA_DEVICES];      /* of the workers, meanwhile */
};

/* ---- life ---- */

ncclResult_t kl_gpu_graphs_create(struct kl_gpu_team *team)
{
    team->graphs = calloc(1, sizeof *team->graphs);
    return team->graphs ? ncclSuccess : KL_NOMEM("operations in several graphs");
}

static void free_words(struct kl_gpu_graphs *g, const struct kl_cuda_context *c)
{
    if (!c || kl_cuda_enter(c)) return;
    kl_gpu_words_free(&g->words, c->driver);
    kl_cuda_leave(c);
}

void kl_gpu_graphs_free(struct kl_gpu_team *team, bool failed)
{
    struct kl_gpu_graphs *g = team->graphs;

    if (!g) return;
    if (!failed) free_words(g, team->worker[team->leader].context);
    free(g);
    team->graphs = NULL;
}

void kl_gpu_graphs_release(struct kl_gpu_team *team)
{
    if (team->graphs) kl_gpu_words_release(&team->graphs->words);
}

/* ---- streams ---- */

static kl_cu_stream stream_of(const struct kl_gpu_call *call)
{
    return call->op[0].stream;
}

static const struct kl_cuda_context *context_of(const struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    return team->worker[team->worker_of[call->rank]].context;
}

static ncclResult_t record(const struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    const struct kl_cuda_context *c = context_of(team, call);

    KL_CUDA_TRY(c->driver, cuEventRecord(call->ready, stream_of(call)), "rank %d: its stream on device %d", call->rank,
                c->device);
    return ncclSuccess;
}

static ncclResult_t follow(const struct kl_gpu_team *team, const struct kl_gpu_call *call, kl_cu_event event)
{
    const struct kl_cuda_context *c = context_of(team, call);

    KL_CUDA_TRY(c->driver, cuStreamWaitEvent(stream_of(call), event, 0), "rank %d: its stream on device %d", call->rank,
                c->device);
    return ncclSuccess;
}

static ncclResult_t set(const struct kl_gpu_team *team, const struct kl_gpu_call *call, uint64_t word)
{
    const struct kl_cuda_context *c = context_of(team, call);

    KL_CUDA_TRY(c->driver, cuStreamWriteValue32(stream_of(call), word, 1, 0), "rank %d: device %d", call->rank,
                c->device);
    return ncclSuccess;
}

/* And set it back. */
static ncclResult_t await(const struct kl_gpu_team *team, const struct kl_gpu_call *call, uint64_t word)
{
    const struct kl_cuda_context *c = context_of(team, call);

    KL_CUDA_TRY(c->driver, cuStreamWaitValue32(stream_of(call), word, 1, KL_CU_WAIT_EQUAL), "rank %d: device %d",
                call->rank, c->device);
    KL_CUDA_TRY(c->driver, cuStreamWriteValue32(stream_of(call), word, 0, 0), "rank %d: device %d", call->rank,
                c->device);
    return ncclSuccess;
}

typedef ncclResult_t (*step)(const struct kl_gpu_team *team, const struct kl_gpu_call *call, void *argument);

static ncclResult_t do_record(const struct kl_gpu_team *team, const struct kl_gpu_call *call, void *argument)
{
    (void)argument;
    return record(team, call);
}

static ncclResult_t do_follow(const struct kl_gpu_team *team, const struct kl_gpu_call *call, void *argument)
{
    return follow(team, call, argument);
}

static ncclResult_t do_set(const struct kl_gpu_team *team, const struct kl_gpu_call *call, void *argument)
{
    return set(team, call, *(const uint64_t *)argument);
}

static ncclResult_t do_await(const struct kl_gpu_team *team, const struct kl_gpu_call *call, void *argument)
{
    return await(team, call, *(const uint64_t *)argument);
}

static ncclResult_t on_device(const struct kl_gpu_team *team, const struct kl_gpu_call *call, step do_it,
                              void *argument)
{
    const struct kl_cuda_context *c = context_of(team, call);

    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = do_it(team, call, argument);
    kl_cuda_leave(c);
    return rc;
}

static ncclResult_t take_word(struct kl_gpu_team *team, const struct kl_gpu_call *call, uint64_t *word)
{
    const struct kl_cuda_context *c = context_of(team, call);
    _Atomic uint32_t *unused;

    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = kl_gpu_words_take(&team->graphs->words, c->driver, &unused, word);
    kl_cuda_leave(c);
    return rc;
}

/* Within a graph by an event: CUDA has to know the order of a graph's branches. */
ncclResult_t kl_gpu_graphs_pass(struct kl_gpu_team *team, struct kl_gpu_call *from, struct kl_gpu_call *to)
{
    uint64_t word;

    if (stream_of(from) == stream_of(to)) return ncclSuccess;
    if (from->capture == to->capture) {
        KL_TRY(on_device(team, from, do_record, NULL));
        return on_device(team, to, do_follow, from->ready);
    }
    KL_TRY(take_word(team, from, &word));
    KL_TRY(on_device(team, from, do_set, &word));
    return on_device(team, to, do_await, &word);
}

ncclResult_t kl_gpu_graphs_join(const struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    const struct kl_cuda_context *c = context_of(team, call);

    KL_TRY(record(team, call));
    for (size_t i = 1; i < call->nops; i++) {
        if (call->op[i].stream == stream_of(call)) continue;
        KL_CUDA_TRY(c->driver, cuStreamWaitEvent(call->op[i].stream, call->ready, 0),
                    "rank %d: its stream on device %d", call->rank, c->device);
    }
    return ncclSuccess;
}

/* ---- an operation ---- */

static bool is_in_another_graph(const struct kl_cuda_context *c, kl_cu_stream stream, uint64_t capture)
{
    int capturing = 0;
    uint64_t id = 0;

    int rc = c->driver->cuStreamGetCaptureInfo(stream, &capturing, &id, NULL, NULL, NULL);
    return !rc && capturing && id != capture;
}

static bool is_taken(const struct kl_gpu_worker *w, uint64_t capture)
{
    if (!w->context || kl_cuda_enter(w->context)) return false;
    bool taken = is_in_another_graph(w->context, w->stream, capture);
    if (w->second) taken |= is_in_another_graph(w->context, w->second, capture);
    kl_cuda_leave(w->context);
    return taken;
}

bool kl_gpu_graphs_are_needed(const struct kl_gpu_team *team, struct kl_gpu_op *const *op, int n, uint64_t workers)
{
    const struct kl_gpu_call *first = NULL;

    for (int i = 0; i < n; i++) {
        if (!op[i]->call) continue;
        if (!first) first = op[i]->call;
        if (op[i]->call->apart || op[i]->call->capture != first->capture) return true;
    }
    for (int w = 0; w < team->nworkers; w++)
        if (workers >> w & 1 && is_taken(&team->worker[w], first->capture)) return true;
    return false;
}

/* Of a collective's ranks on the worker, the first one; NULL: none. */
static struct kl_gpu_call *host_of(const struct kl_gpu_team *team, int worker)
{
    for (int r = 0; r < team->nranks; r++)
        if (team->graphs->call[r] && team->worker_of[r] == worker) return team->graphs->call[r];
    return NULL;
}

static ncclResult_t check_streams(struct kl_gpu_op *const *op, int n)
{
    for (int i = 0; i < n; i++)
        if (op[i]->call && stream_of(op[i]->call) == KL_CU_PER_THREAD_STREAM)
            return KL_FAIL(ncclInvalidUsage,
                           "rank %d: its thread's default stream captures one of several graphs; other threads cannot "
                           "add to it: capture on a stream of cudaStreamCreate",
                           op[i]->call->rank);
    return ncclSuccess;
}

ncclResult_t kl_gpu_graphs_enter(struct kl_gpu_team *team, struct kl_gpu_op *const *op, int n)
{
    struct kl_gpu_graphs *g = team->graphs;

    KL_TRY(check_streams(op, n));
    for (int r = 0; r < team->nranks; r++) g->call[r] = NULL;
    for (int w = 0; w < team->nworkers; w++) g->own[w] = team->worker[w].stream;
    for (int i = n; i-- > 0;) {
        struct kl_gpu_call *call = op[i]->call;
        if (!call) continue;
        g->call[call->rank] = call;
        team->worker[team->worker_of[call->rank]].stream = stream_of(call);
        call->apart = op[i]->apart = true;
    }
    team->apart = true;
    return ncclSuccess;
}

void kl_gpu_graphs_leave(struct kl_gpu_team *team)
{
    if (!team->apart) return;
    for (int w = 0; w < team->nworkers; w++) team->worker[w].stream = team->graphs->own[w];
    team->apart = false;
}

/* ---- a collective ---- */

static struct kl_gpu_call *leader_of(const struct kl_gpu_team *team)
{
    return host_of(team, team->leader);
}

/* Of the ranks of a call's graph, the first one stands for all; in the leader's graph it is the leader. */
static struct kl_gpu_call *head_of(const struct kl_gpu_team *team, const struct kl_gpu_call *call)
{
    int r = 0;

    while (!team->graphs->call[r] || team->graphs->call[r]->capture != call->capture) r++;
    return team->graphs->call[r];
}

static ncclResult_t for_heads(struct kl_gpu_team *team,
                              ncclResult_t (*pass)(struct kl_gpu_team *team, struct kl_gpu_call *head))
{
    for (int r = 0; r < team->nranks; r++) {
        struct kl_gpu_call *c = team->graphs->call[r];
        if (c && c == head_of(team, c)) KL_TRY(pass(team, c));
    }
    return ncclSuccess;
}

/* The streams of a graph's ranks come to its first one; or go on behind it. */
static ncclResult_t within(struct kl_gpu_team *team, struct kl_gpu_call *head, bool to_head)
{
    for (int r = head->rank + 1; r < team->nranks; r++) {
        struct kl_gpu_call *c = team->graphs->call[r];
        if (!c || c->capture != head->capture) continue;
        KL_TRY(to_head ? kl_gpu_graphs_pass(team, c, head) : kl_gpu_graphs_pass(team, head, c));
    }
    return ncclSuccess;
}

static ncclResult_t come(struct kl_gpu_team *team, struct kl_gpu_call *head)
{
    KL_TRY(within(team, head, true));
    return kl_gpu_graphs_pass(team, head, leader_of(team));
}

/* A graph's own work is over before it waits for the leader's. */
static ncclResult_t go_on(struct kl_gpu_team *team, struct kl_gpu_call *head)
{
    KL_TRY(within(team, head, true));
    KL_TRY(kl_gpu_graphs_pass(team, leader_of(team), head));
    return within(team, head, false);
}

ncclResult_t kl_gpu_graphs_gather(struct kl_gpu_team *team)
{
    return for_heads(team, come);
}

ncclResult_t kl_gpu_graphs_let_go(struct kl_gpu_team *team)
{
    return for_heads(team, go_on);
}

/* A worker's stream waits behind the words that its graph sets for the leader: no wait is in front of them. */
ncclResult_t kl_gpu_graphs_spread(struct kl_gpu_team *team, uint64_t workers)
{
    for (int w = 0; w < team->nworkers; w++) {
        struct kl_gpu_call *host = workers >> w & 1 ? host_of(team, w) : NULL;
        if (!host) continue;
        KL_TRY(kl_gpu_graphs_pass(team, head_of(team, host), host));
        KL_TRY(kl_gpu_graphs_pass(team, leader_of(team), host));
    }
    return ncclSuccess;
}

ncclResult_t kl_gpu_graphs_collect(struct kl_gpu_team *team, uint64_t workers)
{
    for (int w = 0; w < team->nworkers; w++) {
        struct kl_gpu_call *host = workers >> w & 1 ? host_of(team, w) : NULL;
        if (host) KL_TRY(kl_gpu_graphs_pass(team, host, leader_of(team)));
    }
    return ncclSuccess;
}
