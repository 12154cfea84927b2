/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/capture.h"

#include "base/fork_lock.h"
#include "device/host/refuse.h"

#include <stdlib.h>
#include <string.h>

/* By lane: 1 + the last node known to run before; 0: none. Lanes beyond the end are unknown. */
struct knowledge {
    uint32_t *last, n;
};

struct lane {
    struct kl_stream *stream; /* NULL: destroyed */
    uint32_t last_work;       /* 1 + the last node that is not a wait; 0: none */
    struct knowledge knows;   /* including itself */
};

struct mark {
    uint32_t lane;
    struct knowledge knows;
};

struct kl_capture {
    struct kl_capture *next;
    uint64_t id;
    koloCaptureMode_t mode;
    pthread_t thread;
    bool invalidated;
    struct kl_recording *graph;
    struct lane *lane;
    uint32_t nlanes;
    struct mark *mark;
    uint32_t nmarks;
};

static struct {
    pthread_mutex_t lock;
    struct kl_capture *first; /* under lock, as all data of captures */
    uint64_t ids;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local koloCaptureMode_t thread_mode = koloCaptureModeGlobal;

KL_FORK_LOCK(all.lock, all.first = NULL); /* a parent's captures are not the child's; streams reset themselves */

static void hold_all(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&all.lock);
}

static ncclResult_t release_all(ncclResult_t rc)
{
    pthread_mutex_unlock(&all.lock);
    return rc;
}

/* ---- knowledge of lanes ---- */

static ncclResult_t make_room(struct knowledge *k, uint32_t lanes)
{
    if (lanes <= k->n) return ncclSuccess;
    uint32_t *grown = realloc(k->last, lanes * sizeof *grown);
    if (!grown) return KL_NOMEM("a capture");
    memset(grown + k->n, 0, (lanes - k->n) * sizeof *grown);
    k->last = grown;
    k->n = lanes;
    return ncclSuccess;
}

/* The array has room. */
static void know(struct knowledge *k, uint32_t lane, uint32_t last)
{
    if (k->last[lane] < last) k->last[lane] = last;
}

static void know_all(struct knowledge *k, const struct knowledge *of)
{
    for (uint32_t i = 0; i < of->n; i++) know(k, i, of->last[i]);
}

static uint32_t known(const struct knowledge *k, uint32_t lane)
{
    return lane < k->n ? k->last[lane] : 0;
}

/* ---- captures ---- */

static struct kl_capture *find_capture(uint64_t id)
{
    struct kl_capture *c = all.first;

    while (c && c->id != id) c = c->next;
    return c;
}

/* Under lock. NULL: it does not capture. */
static struct kl_capture *capture_of(struct kl_stream *s)
{
    return kl_capturing(s) ? s->capture : NULL;
}

static ncclResult_t refuse_invalidated(void)
{
    return KL_REFUSE(koloReasonCaptureInvalidated,
                     "the capture of this stream was invalidated by an earlier call: end it and begin again");
}

static ncclResult_t refuse_idle(const char *function)
{
    return KL_REFUSE(koloReasonCaptureState, "%s: the stream does not capture", function);
}

static ncclResult_t add_lane(struct kl_capture *c, struct kl_stream *s)
{
    struct lane *grown = realloc(c->lane, (c->nlanes + 1) * sizeof *grown);

    if (!grown) return KL_NOMEM("a capture");
    c->lane = grown;
    c->lane[c->nlanes] = (struct lane){.stream = s};
    s->capture = c;
    s->lane = c->nlanes++;
    c->graph->lanes = c->nlanes;
    kl_fetch_or_acq_rel(&s->flags, KL_STREAM_CAPTURING);
    return ncclSuccess;
}

static void detach(struct kl_stream *s)
{
    s->capture->lane[s->lane].stream = NULL;
    s->capture = NULL;
    kl_fetch_and_acq_rel(&s->flags, ~KL_STREAM_CAPTURING);
}

/* Returns its recording, for the caller to drop without the lock: functions of the program run then. */
static struct kl_recording *free_capture(struct kl_capture *c)
{
    struct kl_capture **link = &all.first;
    struct kl_recording *graph = c->graph;

    while (*link && *link != c) link = &(*link)->next;
    if (*link) *link = c->next;
    for (uint32_t i = 0; i < c->nlanes; i++) {
        if (c->lane[i].stream) detach(c->lane[i].stream);
        free(c->lane[i].knows.last);
    }
    for (uint32_t i = 0; i < c->nmarks; i++) free(c->mark[i].knows.last);
    free(c->lane);
    free(c->mark);
    free(c);
    return graph;
}

/* ---- begin ---- */

static ncclResult_t make_capture(struct kl_stream *s, koloCaptureMode_t mode)
{
    struct kl_capture *c = calloc(1, sizeof *c);

    if (!c) return KL_NOMEM("a capture");
    ncclResult_t rc = kl_recording_create(&c->graph);
    if (!rc) rc = add_lane(c, s);
    if (rc) {
        kl_recording_unref(free_capture(c)); /* empty so far */
        return rc;
    }
    c->id = ++all.ids;
    c->mode = mode;
    c->thread = pthread_self();
    c->next = all.first;
    all.first = c;
    return ncclSuccess;
}

ncclResult_t kl_capture_begin(struct kl_stream *s, koloCaptureMode_t mode)
{
    if ((unsigned)mode > koloCaptureModeRelaxed)
        return KL_FAIL(ncclInvalidArgument, "koloStreamBeginCapture: mode %d; there are 0 to %d", (int)mode,
                       koloCaptureModeRelaxed);
    if (kl_stream_is_default(s))
        return KL_REFUSE(koloReasonCaptureUnsupported, "koloStreamBeginCapture: the default stream cannot capture");
    hold_all();
    if (kl_capturing(s))
        return release_all(
            KL_REFUSE(koloReasonCaptureState, "koloStreamBeginCapture: the stream captures already: end that first"));
    return release_all(make_capture(s, mode));
}

/* ---- nodes ---- */

static ncclResult_t add_node(struct kl_capture *c, const struct kl_recorded *node)
{
    struct lane *lane = &c->lane[node->lane];

    KL_TRY(make_room(&lane->knows, c->nlanes)); /* first: a node that was added cannot be removed */
    KL_TRY(kl_recording_add(c->graph, node));
    if (node->type != KL_RECORDED_WAIT) lane->last_work = c->graph->n;
    know(&lane->knows, node->lane, c->graph->n);
    return ncclSuccess;
}

static ncclResult_t enter(struct kl_stream *s, const char *function, struct kl_capture **c)
{
    *c = capture_of(s);
    if (!*c) return refuse_idle(function);
    return (*c)->invalidated ? refuse_invalidated() : ncclSuccess;
}

static ncclResult_t add_work(struct kl_stream *s, const struct kl_work *work)
{
    struct kl_recorded node = {.type = KL_RECORDED_WORK, .lane = s->lane, .work = *work};
    struct kl_capture *c;

    KL_TRY(enter(s, "a stream's work", &c));
    return add_node(c, &node);
}

ncclResult_t kl_capture_work(struct kl_stream *s, const struct kl_work *work)
{
    hold_all();
    return release_all(add_work(s, work));
}

/* Find the streams' lanes, and reserve room for their knowledge. */
static ncclResult_t prepare_lanes(struct kl_capture *c, struct kl_stream *const *streams, size_t n, uint32_t *lanes)
{
    for (size_t i = 0; i < n; i++) {
        if (capture_of(streams[i]) != c)
            return KL_REFUSE(koloReasonCaptureMerge, "the streams of a group's operations are not all in one capture");
        lanes[i] = streams[i]->lane;
        KL_TRY(make_room(&c->lane[lanes[i]].knows, c->nlanes));
    }
    return ncclSuccess;
}

/* Merge the knowledge of all lanes with the last node, and store the result in each. */
static void merge_lane_knowledge(struct kl_capture *c, const uint32_t *lanes, size_t n)
{
    struct knowledge *knows = &c->lane[lanes[n - 1]].knows;

    for (size_t i = 0; i < n; i++) know_all(knows, &c->lane[lanes[i]].knows);
    for (size_t i = 0; i < n; i++) {
        c->lane[lanes[i]].last_work = c->graph->n;
        know(knows, lanes[i], c->graph->n);
    }
    for (size_t i = 0; i < n; i++) know_all(&c->lane[lanes[i]].knows, knows);
}

/* Each of the lanes continues after the node, and the node runs after all of them. */
static ncclResult_t add_joint(struct kl_stream *const *streams, size_t n, struct kl_recorded *node, uint32_t *lanes)
{
    struct kl_capture *c;

    KL_TRY(enter(streams[n - 1], "a collective", &c));
    KL_TRY(prepare_lanes(c, streams, n, lanes));
    node->lane = lanes[n - 1];
    KL_TRY(add_node(c, node));
    merge_lane_knowledge(c, lanes, n);
    return ncclSuccess;
}

ncclResult_t kl_capture_node(struct kl_stream *const *streams, size_t n, const struct kl_recorded_kind *kind,
                             void *data, uint32_t *lanes)
{
    struct kl_recorded node = {.type = KL_RECORDED_OTHER, .other = {.kind = kind, .data = data}};

    hold_all();
    return release_all(add_joint(streams, n, &node, lanes));
}

bool kl_capture_same(struct kl_stream *a, struct kl_stream *b)
{
    hold_all();
    bool same = capture_of(a) == capture_of(b);
    pthread_mutex_unlock(&all.lock);
    return same;
}

ncclResult_t kl_capture_check(struct kl_stream *s)
{
    struct kl_capture *c;

    hold_all();
    return release_all(enter(s, "a collective", &c));
}

/* ---- events ---- */

static ncclResult_t add_mark(struct kl_stream *s, struct kl_mark *mark)
{
    struct kl_capture *c;

    KL_TRY(enter(s, "koloEventRecord", &c));
    struct mark *grown = realloc(c->mark, (c->nmarks + 1) * sizeof *grown);
    if (!grown) return KL_NOMEM("a capture");
    c->mark = grown;
    struct mark *m = &c->mark[c->nmarks];
    *m = (struct mark){.lane = s->lane};
    KL_TRY(make_room(&m->knows, c->lane[s->lane].knows.n));
    know_all(&m->knows, &c->lane[s->lane].knows);
    *mark = (struct kl_mark){.capture = c->id, .number = c->nmarks++};
    return ncclSuccess;
}

ncclResult_t kl_capture_mark(struct kl_stream *s, struct kl_mark *mark)
{
    hold_all();
    return release_all(add_mark(s, mark));
}

/* No wait is needed if the mark's lane is empty, or its nodes are already known to run before. */
static ncclResult_t wait_for_mark(struct kl_capture *c, uint32_t lane, const struct mark *m)
{
    uint32_t last = known(&m->knows, m->lane);
    struct kl_recorded node = {.type = KL_RECORDED_WAIT, .lane = lane, .after = last - 1};

    if (lane != m->lane && last > known(&c->lane[lane].knows, m->lane)) KL_TRY(add_node(c, &node));
    KL_TRY(make_room(&c->lane[lane].knows, c->nlanes));
    know_all(&c->lane[lane].knows, &m->knows);
    return ncclSuccess;
}

static ncclResult_t join(struct kl_stream *s, const struct kl_mark *mark)
{
    struct kl_capture *c = find_capture(mark->capture), *own = capture_of(s);

    if (!c) {
        if (own) own->invalidated = true;
        return KL_REFUSE(koloReasonCapturedEvent,
                         "koloStreamWaitEvent: the event was last recorded in a capture that has ended");
    }
    if (own && own != c) {
        own->invalidated = c->invalidated = true;
        return KL_REFUSE(koloReasonCaptureMerge, "koloStreamWaitEvent: the event is of another capture");
    }
    if (c->invalidated) return refuse_invalidated();
    if (!own && kl_stream_is_default(s)) {
        c->invalidated = true;
        return KL_REFUSE(koloReasonCaptureImplicit, "koloStreamWaitEvent: the default stream cannot join a capture");
    }
    if (!own) KL_TRY(add_lane(c, s));
    return wait_for_mark(c, s->lane, &c->mark[mark->number]);
}

ncclResult_t kl_capture_join(struct kl_stream *s, const struct kl_mark *mark)
{
    hold_all();
    return release_all(join(s, mark));
}

/* ---- the end ---- */

static bool is_joined(const struct kl_capture *c)
{
    for (uint32_t i = 1; i < c->nlanes; i++)
        if (c->lane[i].last_work > known(&c->lane[0].knows, i)) return false;
    return true;
}

/* Creates the graph, whether or not the capture is valid. */
static ncclResult_t end_own(struct kl_capture *c, struct kl_recording **graph)
{
    ncclResult_t rc = c->invalidated ? refuse_invalidated()
                      : is_joined(c) ? ncclSuccess
                                     : KL_REFUSE(koloReasonCaptureUnjoined,
                                                 "koloStreamEndCapture: a stream that joined the capture has work that "
                                                 "the first stream does not wait for: record an event behind it");

    *graph = free_capture(c);
    return rc;
}

static ncclResult_t end(struct kl_stream *s, struct kl_recording **graph)
{
    struct kl_capture *c = capture_of(s);

    if (!c) return refuse_idle("koloStreamEndCapture");
    if (s->lane) {
        c->invalidated = true;
        return KL_REFUSE(koloReasonCaptureUnmatched, "koloStreamEndCapture: the capture began on another stream");
    }
    if (c->mode != koloCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self())) {
        c->invalidated = true;
        return KL_REFUSE(koloReasonCaptureWrongThread,
                         "koloStreamEndCapture: another thread began the capture, and not as koloCaptureModeRelaxed");
    }
    return end_own(c, graph);
}

ncclResult_t kl_capture_end(struct kl_stream *s, struct kl_recording **graph)
{
    struct kl_recording *ended = NULL;

    hold_all();
    ncclResult_t rc = release_all(end(s, &ended));
    *graph = rc ? NULL : ended;
    if (rc) kl_recording_unref(ended);
    return rc;
}

/* ---- queries and kept objects ---- */

koloCaptureStatus_t kl_capture_status(struct kl_stream *s, uint64_t *id)
{
    koloCaptureStatus_t status = koloCaptureStatusNone;

    *id = 0;
    if (!kl_capturing(s)) return status;
    hold_all();
    struct kl_capture *c = capture_of(s);
    if (c) {
        *id = c->id;
        status = c->invalidated ? koloCaptureStatusInvalidated : koloCaptureStatusActive;
    }
    pthread_mutex_unlock(&all.lock);
    return status;
}

ncclResult_t kl_capture_keep(struct kl_stream *s, void (*release)(void *), void *object)
{
    struct kl_capture *c;

    hold_all();
    ncclResult_t rc = enter(s, "koloStreamCaptureKeep", &c);
    return release_all(rc ? rc : kl_recording_keep(c->graph, release, object));
}

void kl_capture_remove_stream(struct kl_stream *s)
{
    if (!kl_capturing(s)) return;
    struct kl_recording *graph = NULL;
    hold_all();
    struct kl_capture *c = capture_of(s);
    if (c && !s->lane) {
        graph = free_capture(c); /* no other stream can end it */
    } else if (c) {
        c->invalidated = true;
        detach(s);
    }
    pthread_mutex_unlock(&all.lock);
    kl_recording_unref(graph);
}

/* ---- refusals ---- */

void kl_capture_invalidate(struct kl_stream *s)
{
    hold_all();
    struct kl_capture *c = capture_of(s);
    if (c) c->invalidated = true;
    pthread_mutex_unlock(&all.lock);
}

ncclResult_t kl_capture_refuse_wait(struct kl_stream *s, const char *function)
{
    kl_capture_invalidate(s);
    return KL_REFUSE(koloReasonCaptureUnsupported, "%s: the stream captures: its work is recorded and does not run",
                     function);
}

ncclResult_t kl_capture_refuse_unsupported(struct kl_stream *s, const char *function)
{
    kl_capture_invalidate(s);
    return KL_REFUSE(koloReasonCaptureUnsupported,
                     "%s: the stream captures, and a graph cannot have this: call it outside of the capture", function);
}

ncclResult_t kl_capture_refuse_event(struct kl_stream *s)
{
    kl_capture_invalidate(s);
    return KL_REFUSE(koloReasonCaptureIsolation,
                     "koloStreamWaitEvent: the stream captures, and the event was recorded outside of the capture");
}

ncclResult_t kl_capture_refuse_implicit(struct kl_stream *s)
{
    kl_capture_invalidate(s);
    return KL_REFUSE(koloReasonCaptureImplicit,
                     "the default stream waits for all blocking streams of its device, and one of them captures");
}

ncclResult_t kl_capture_refuse_mark(const struct kl_mark *mark, const char *function)
{
    hold_all();
    struct kl_capture *c = find_capture(mark->capture);
    if (c) c->invalidated = true;
    pthread_mutex_unlock(&all.lock);
    return KL_REFUSE(koloReasonCapturedEvent, "%s: the event was last recorded in a stream that captures", function);
}

/* ---- calls outside of captures ---- */

void kl_capture_exchange_mode(koloCaptureMode_t *mode)
{
    koloCaptureMode_t before = thread_mode;

    thread_mode = *mode;
    *mode = before;
}

static bool forbids(const struct kl_capture *c)
{
    if (c->mode == koloCaptureModeRelaxed) return false;
    return pthread_equal(c->thread, pthread_self()) ||
           (c->mode == koloCaptureModeGlobal && thread_mode == koloCaptureModeGlobal);
}

ncclResult_t kl_capture_unsafe(void)
{
    bool forbidden = false;

    if (thread_mode == koloCaptureModeRelaxed) return ncclSuccess;
    hold_all();
    for (struct kl_capture *c = all.first; c; c = c->next)
        if (forbids(c)) forbidden = c->invalidated = true;
    pthread_mutex_unlock(&all.lock);
    if (!forbidden) return ncclSuccess;
    return KL_REFUSE(koloReasonCaptureUnsupported,
                     "a call that no stream orders is made while a stream captures: use koloCaptureModeRelaxed, or "
                     "make it before");
}
