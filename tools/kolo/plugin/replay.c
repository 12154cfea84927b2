/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/replay.h"

#include "base/clock.h"
#include "base/error.h"
#include "tools/kolo/cmd.h"
#include "tools/kolo/plugin/raw_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

/* An object of the record, and the one that stands for it now. Addresses are used again: the last one counts. */
struct object {
    uint64_t recorded;
    void *now, *data; /* data: of a request or a registration, freed with it */
    void *comm;       /* of a request, whose closing frees it */
};

struct objects {
    struct object *of;
    size_t n, room;
};

struct handle {
    uint64_t hash;
    struct kl_net_handle bytes;
};

struct handles {
    struct handle *of;
    size_t n, room;
};

/* A file on its way. */
struct player {
    const struct kl_recorded *recorded;
    size_t next;
    struct objects objects;
    struct kl_net_handle connecting; /* of the connect that is repeated */
    bool is_connecting;
    void *half; /* its communicator so far */
    struct {
        bool made;
        int now;
    } merged[KL_NET_PLUGIN_DEVICES]; /* by the recorded number of a virtual device */
};

struct play {
    struct player *player;
    int n;
    int physical; /* devices of the plugin */
    struct handles handles;
    bool stuck; /* nothing moved in the last round */
    char why[512];
};

/* ---- objects ---- */

/* The array, with room for one more; NULL: no memory, and it stays as it is. */
static void *make_room(void *of, size_t n, size_t *room, size_t bytes)
{
    const size_t more = *room ? 2 * *room : FIRST_ROOM;

    if (n < *room) return of;
    void *new = realloc(of, more * bytes);
    if (new) *room = more;
    return new;
}

static struct object *find(struct player *p, uint64_t recorded)
{
    for (size_t i = p->objects.n; i-- > 0;)
        if (p->objects.of[i].recorded == recorded) return &p->objects.of[i];
    return NULL;
}

static bool keep(struct player *p, uint64_t recorded, void *now, void *data, void *comm)
{
    struct objects *o = &p->objects;
    struct object *of = make_room(o->of, o->n, &o->room, sizeof *of);

    if (!of) return false;
    o->of = of;
    o->of[o->n++] = (struct object){.recorded = recorded, .now = now, .data = data, .comm = comm};
    return true;
}

static void forget(struct player *p, struct object *o)
{
    free(o->data);
    *o = p->objects.of[--p->objects.n];
}

static void forget_requests_of(struct player *p, const void *comm)
{
    for (size_t i = p->objects.n; i-- > 0;)
        if (p->objects.of[i].comm == comm) forget(p, &p->objects.of[i]);
}

static const struct handle *find_handle(const struct play *y, uint64_t hash)
{
    for (size_t i = y->handles.n; i-- > 0;)
        if (y->handles.of[i].hash == hash) return &y->handles.of[i];
    return NULL;
}

/* ---- calls: ncclInProgress: not yet ---- */

static ncclResult_t failed(struct play *y, const struct player *p, const struct kl_recorded_call *c, const char *why)
{
    snprintf(y->why, sizeof y->why, "%s, call %zu (%s): %s", p->recorded->file, p->next + 1, kl_recorded_names[c->name],
             why);
    return ncclInternalError;
}

static ncclResult_t result(struct play *y, const struct player *p, const struct kl_recorded_call *c, ncclResult_t rc)
{
    char why[64];

    if (!rc || rc == ncclInProgress) return rc;
    snprintf(why, sizeof why, "it returned %d (%s)", (int)rc, kl_result_text(rc));
    return failed(y, p, c, why);
}

/* The device that stands for the recorded one. A plugin may have fewer. */
static int device_of(const struct play *y, const struct player *p, uint64_t recorded)
{
    if (recorded < KL_NET_PLUGIN_DEVICES && p->merged[recorded].made) return p->merged[recorded].now;
    return (int)(recorded % (uint64_t)y->physical);
}

/* The devices that stand for the members. Of a plugin that has fewer it may be one. */
static int members_of(const struct play *y, const struct player *p, const struct kl_recorded_call *c,
                      int member[KL_NET_MEMBERS])
{
    int n = 0;

    for (uint64_t i = 0; i < c->bytes && i < KL_NET_MEMBERS; i++) {
        const int device = device_of(y, p, c->extra >> 8 * i & 0xff);
        bool there = false;
        for (int k = 0; k < n; k++) there |= member[k] == device;
        if (!there) member[n++] = device;
    }
    return n;
}

static ncclResult_t play_make_vdevice(struct play *y, struct player *p, const struct kl_recorded_call *c)
{
    int member[KL_NET_MEMBERS], made = 0;
    const int n = members_of(y, p, c, member);

    if (!n) return failed(y, p, c, "it has no member");
    if (c->value < 0 || c->value >= KL_NET_PLUGIN_DEVICES)
        return failed(y, p, c, "its device is none that a plugin can have");
    const bool merged = n > 1 && !kl_net_raw.merge(member, n, &made);
    if (!merged) made = member[0];
    if (!merged && n > 1)
        fprintf(stderr,
                "kolo plugin: %s, call %zu (makeVDevice): %s does not merge these devices; device %d stands for them\n",
                p->recorded->file, p->next + 1, kl_raw_net_library()->name, made);
    p->merged[c->value].made = true;
    p->merged[c->value].now = made;
    return ncclSuccess;
}

static ncclResult_t play_listen(struct play *y, struct player *p, const struct kl_recorded_call *c)
{
    struct handle h = {.hash = c->out_extra};
    void *listener = NULL;
    const ncclResult_t rc = kl_net_raw.listen(device_of(y, p, c->bytes), NULL, &h.bytes, &listener);

    if (rc) return result(y, p, c, rc);
    struct handle *of = make_room(y->handles.of, y->handles.n, &y->handles.room, sizeof h);
    if (of) y->handles.of = of;
    if (!of || !keep(p, c->out, listener, NULL, NULL)) return failed(y, p, c, "out of memory");
    of[y->handles.n++] = h;
    return ncclSuccess;
}

/* The listener may be of another file, and not be there yet. */
static ncclResult_t play_connect(struct play *y, struct player *p, const struct kl_recorded_call *c)
{
    if (!p->is_connecting) {
        const struct handle *h = find_handle(y, c->extra);
        if (!h) return ncclInProgress;
        p->connecting = h->bytes;
        p->half = NULL;
        p->is_connecting = true;
    }
    const ncclResult_t rc = kl_net_raw.connect(device_of(y, p, c->bytes), NULL, &p->connecting, &p->half);
    if (rc) return result(y, p, c, rc);
    p->is_connecting = false;
    return keep(p, c->out, p->half, NULL, NULL) ? ncclSuccess : failed(y, p, c, "out of memory");
}

static ncclResult_t play_accept(struct play *y, struct player *p, const struct kl_recorded_call *c)
{
    const struct object *listener = find(p, c->object);
    void *comm = NULL;

    if (!listener) return failed(y, p, c, "its listener is not in the record");
    const ncclResult_t rc = kl_net_raw.accept(listener->now, NULL, &comm);
    if (rc) return result(y, p, c, rc);
    return keep(p, c->out, comm, NULL, NULL) ? ncclSuccess : failed(y, p, c, "out of memory");
}

static ncclResult_t play_reg_mr(struct play *y, struct player *p, const struct kl_recorded_call *c)
{
    const struct object *comm = find(p, c->object);
    char *data = calloc(1, c->bytes ? c->bytes : 1);
    void *mr = NULL;

    if (!comm || !data) {
        free(data);
        return failed(y, p, c, data ? "its communicator is not in the record" : "out of memory");
    }
    const ncclResult_t rc = kl_net_raw.reg_mr(comm->now, data, c->bytes, KL_NET_HOST, &mr);
    if (rc || !c->out || !keep(p, c->out, mr, data, NULL)) free(data);
    return result(y, p, c, rc);
}

/* Registrations without a handle are all alike, and nothing is kept of them. */
static ncclResult_t play_dereg_mr(struct play *y, struct player *p, const struct kl_recorded_call *c)
{
    const struct object *comm = find(p, c->object);
    struct object *mr = c->extra ? find(p, c->extra) : NULL;

    if (!comm) return failed(y, p, c, "its communicator is not in the record");
    if (c->extra && !mr) return failed(y, p, c, "its registration is not in the record");
    const ncclResult_t rc = kl_net_raw.dereg_mr(comm->now, mr ? mr->now : NULL);
    if (mr) forget(p, mr);
    return result(y, p, c, rc);
}

static ncclResult_t play_message(struct play *y, struct player *p, const struct kl_recorded_call *c)
{
    const struct object *comm = find(p, c->object), *mr = c->extra ? find(p, c->extra) : NULL;
    void *own = mr ? NULL : calloc(1, c->bytes ? c->bytes : 1), *request = NULL;

    if (!comm || (!mr && !own)) {
        free(own);
        return failed(y, p, c, own ? "its communicator is not in the record" : "out of memory");
    }
    const struct kl_net_recv part = {
        .data = mr ? mr->data : own, .bytes = c->bytes, .tag = 0, .mr = mr ? mr->now : NULL};
    const ncclResult_t rc = c->name == KL_REC_ISEND
                                ? kl_net_raw.isend(comm->now, part.data, part.bytes, 0, part.mr, &request)
                                : kl_net_raw.irecv(comm->now, 1, &part, &request);
    if (!rc && request && keep(p, c->out, request, own, comm->now)) return ncclSuccess;
    free(own);
    return rc ? result(y, p, c, rc) : request ? failed(y, p, c, "out of memory") : ncclInProgress;
}

static ncclResult_t play_test(struct play *y, struct player *p, const struct kl_recorded_call *c)
{
    struct object *request = find(p, c->object);
    bool done = false;

    if (!request) return failed(y, p, c, "its request is not in the record");
    const ncclResult_t rc = kl_net_raw.test(request->now, &done, NULL);
    if (rc) return result(y, p, c, rc);
    if (!done) return ncclInProgress;
    forget(p, request);
    return ncclSuccess;
}

/* Have the others made all calls that they made before this one? Then no message to its connection is missing. */
static bool is_turn(const struct play *y, const struct kl_recorded_call *c)
{
    for (int i = 0; i < y->n; i++) {
        const struct player *p = &y->player[i];
        if (p->next < p->recorded->n && p->recorded->call[p->next].begun < c->begun) return false;
    }
    return true;
}

/* Clocks of several hosts differ: their order counts only as long as it lets something go on. */
static ncclResult_t play_close(struct play *y, struct player *p, const struct kl_recorded_call *c)
{
    struct object *object = find(p, c->object);

    if (!object) return failed(y, p, c, "its object is not in the record");
    if (!y->stuck && !is_turn(y, c)) return ncclInProgress;
    void *const now = object->now;
    if (c->name == KL_REC_CLOSE_SEND) kl_net_raw.close_send(now);
    if (c->name == KL_REC_CLOSE_RECV) kl_net_raw.close_recv(now);
    if (c->name == KL_REC_CLOSE_LISTEN) kl_net_raw.close_listen(now);
    forget(p, object);
    forget_requests_of(p, now);
    return ncclSuccess;
}

/* ---- the whole ---- */

typedef ncclResult_t play_call(struct play *, struct player *, const struct kl_recorded_call *);

static play_call *const plays[KL_REC_NAMES] = {
    [KL_REC_LISTEN] = play_listen,    [KL_REC_CONNECT] = play_connect,    [KL_REC_ACCEPT] = play_accept,
    [KL_REC_REG_MR] = play_reg_mr,    [KL_REC_DEREG_MR] = play_dereg_mr,  [KL_REC_ISEND] = play_message,
    [KL_REC_IRECV] = play_message,    [KL_REC_TEST] = play_test,          [KL_REC_CLOSE_SEND] = play_close,
    [KL_REC_CLOSE_RECV] = play_close, [KL_REC_CLOSE_LISTEN] = play_close, [KL_REC_MAKE_VDEVICE] = play_make_vdevice};

/* A call that failed then, or had no result yet, is left out; so are the others, which have no counterpart in another process. */
static bool is_played(const struct kl_recorded_call *c)
{
    const bool makes = c->name == KL_REC_LISTEN || c->name == KL_REC_CONNECT || c->name == KL_REC_ACCEPT ||
                       c->name == KL_REC_ISEND || c->name == KL_REC_IRECV || c->name == KL_REC_TEST;

    return plays[c->name] && c->ended && !c->result && (!makes || c->value);
}

/* As far as it gets. */
static ncclResult_t advance(struct play *y, struct player *p, bool *moved, size_t *played)
{
    for (; p->next < p->recorded->n; p->next++) {
        const struct kl_recorded_call *c = &p->recorded->call[p->next];
        if (!is_played(c)) continue;
        const ncclResult_t rc = plays[c->name](y, p, c);
        if (rc) return rc;
        *moved = true;
        ++*played;
    }
    return ncclSuccess;
}

static void say_waiting(const struct play *y, int seconds)
{
    fprintf(stderr, "kolo plugin: no call came to its result for %d s:\n", seconds);
    for (int i = 0; i < y->n; i++) {
        const struct player *p = &y->player[i];
        if (p->next < p->recorded->n)
            fprintf(stderr, "  %s waits in call %zu, %s\n", p->recorded->file, p->next + 1,
                    kl_recorded_names[p->recorded->call[p->next].name]);
    }
}

static int play_all(struct play *y, int seconds, size_t *played)
{
    const uint64_t timeout_ms = (uint64_t)seconds * 1000;
    uint64_t deadline = kl_deadline_in_ms(timeout_ms);

    for (int left = y->n; left;) {
        left = 0;
        bool moved = false;
        for (int i = 0; i < y->n; i++) {
            const ncclResult_t rc = advance(y, &y->player[i], &moved, played);
            if (rc && rc != ncclInProgress) {
                fprintf(stderr, "kolo plugin: %s\n", y->why);
                return EXIT_PROBLEM;
            }
            left += rc == ncclInProgress;
        }
        y->stuck = !moved;
        if (moved) deadline = kl_deadline_in_ms(timeout_ms);
        if (!left || !kl_deadline_passed(deadline)) continue;
        say_waiting(y, seconds);
        return EXIT_PROBLEM;
    }
    return EXIT_OK;
}

int kl_plugin_replay(const struct kl_recorded *recorded, int n, const char *net, int seconds)
{
    struct play y = {.player = calloc((size_t)n, sizeof *y.player), .n = n};
    const uint64_t begun = kl_now_ns();
    size_t played = 0;
    int code = EXIT_PROBLEM;

    if (!y.player)
        fprintf(stderr, "kolo plugin: out of memory\n");
    else if (!kl_raw_net_open(net))
        fprintf(stderr, "kolo plugin: %s is not usable; `kolo plugin check %s` says why\n", net, net);
    else {
        for (int i = 0; i < n; i++) y.player[i].recorded = &recorded[i];
        y.physical = kl_net_raw.devices();
        code = play_all(&y, seconds, &played);
        if (!code)
            printf("%zu calls of %d process%s, made again in %.3f s with %s (ncclNetPlugin_v%d of %s)\n", played, n,
                   n == 1 ? "" : "es", (double)(kl_now_ns() - begun) / 1e9, kl_raw_net_library()->name,
                   kl_raw_net_library()->adapter->version, kl_raw_net_library()->file);
        if (!code) kl_raw_net_close();
    }
    for (int i = 0; y.player && i < n; i++) {
        struct objects *o = &y.player[i].objects;
        for (size_t k = 0; k < o->n; k++) free(o->of[k].data);
        free(o->of);
    }
    free(y.handles.of);
    free(y.player);
    return code;
}
