/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/door.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 5000,      /* for a handshake */
    NO_DESCRIPTORS_MS = 100, /* before accepting again when the process has no descriptor left */
};

/* One connection in the middle of its handshake. Belongs to the event loop, but for `door->lock`. */
struct kl_guest {
    struct kl_door *door;
    struct kl_source *source;
    int fd; /* -1 once handed over */
    struct kl_handshake handshake;
    bool greeted; /* both hellos are exchanged, the proof is next */
    unsigned char proof[KL_PROOF_BYTES];
    size_t have; /* bytes of what is next */

    /* under the door's lock: */
    struct kl_guest *prev, *next;
    bool taken; /* by kl_door_close, which frees it */
};

struct listener {
    struct kl_door *door;
    struct kl_source *source;
    int fd;
};

struct kl_door {
    struct kl_loop *loop;
    struct kl_key key;
    struct kl_hello me;
    kl_door_fn *fn;
    void *ctx;
    int nlisteners;
    struct listener listener[KL_ADDRESSES];

    pthread_mutex_t lock;
    /* under lock: */
    struct kl_guest *oldest, *newest;
    int nguests;
};

/* ---- the list of guests; under lock ---- */

static void append(struct kl_door *door, struct kl_guest *g)
{
    g->prev = door->newest;
    if (door->newest)
        door->newest->next = g;
    else
        door->oldest = g;
    door->newest = g;
    door->nguests++;
}

static void detach(struct kl_door *door, struct kl_guest *g)
{
    if (g->prev)
        g->prev->next = g->next;
    else
        door->oldest = g->next;
    if (g->next)
        g->next->prev = g->prev;
    else
        door->newest = g->prev;
    door->nguests--;
}

/* ---- guests ---- */

static void guest_free(struct kl_guest *g)
{
    kl_source_remove(g->source);
    kl_socket_close(g->fd);
    kl_key_wipe(&g->handshake.key);
    free(g);
}

/* On the loop: the guest is done with. A door that is being closed has taken it, and frees it instead. */
static void guest_end(struct kl_guest *g)
{
    struct kl_door *door = g->door;

    pthread_mutex_lock(&door->lock);
    bool taken = g->taken;
    if (!taken) detach(door, g);
    pthread_mutex_unlock(&door->lock);
    if (!taken) guest_free(g);
}

uint32_t kl_guest_rank(const struct kl_guest *g)
{
    return kl_hello_decode(g->handshake.caller).from;
}

/* Nothing was sent on the socket but a hello: there is room for an answer, or the connection is dead. */
static bool say(struct kl_guest *g, const void *bytes, size_t n)
{
    return send(g->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

static bool answer(struct kl_guest *g, enum kl_handshake_outcome outcome)
{
    unsigned char bytes[KL_ANSWER_BYTES];

    kl_handshake_answer(&g->handshake, outcome, bytes);
    return say(g, bytes, sizeof bytes);
}

bool kl_guest_admit(struct kl_guest *g, int *fd)
{
    kl_source_watch(g->source, 0); /* the next owner watches the descriptor */
    if (!answer(g, KL_ADMITTED)) return false;
    *fd = g->fd;
    g->fd = -1;
    return true;
}

void kl_guest_decline(struct kl_guest *g, enum kl_handshake_outcome outcome)
{
    static const char *const why[] = {[KL_REFUSED] = "another secret",
                                      [KL_ELSEWHERE] = "there is another connection",
                                      [KL_OTHER_VERSION] = "another version of the protocol",
                                      [KL_NOT_HERE] = "it wants somebody else"};
    char text[KL_ADDRESS_TEXT];
    union kl_address peer = kl_socket_peer(g->fd);

    KL_INFO(KL_BOOTSTRAP, "declined a connection from %s: %s", kl_address_format(&peer, text), why[outcome]);
    answer(g, outcome);
}

/* The hello has come. False: not one of ours. */
static bool greet(struct kl_guest *g)
{
    if (!kl_hello_plausible(g->handshake.caller)) return false;
    g->handshake.key = g->door->key;
    kl_hello_encode(&g->door->me, g->handshake.host);
    g->greeted = true;
    g->have = 0;
    return say(g, g->handshake.host, sizeof g->handshake.host);
}

/* The proof has come: the guest is handed over or declined, and done with in any case. */
static void judge(struct kl_guest *g)
{
    enum kl_handshake_outcome outcome = KL_REFUSED;

    if (kl_handshake_proved(&g->handshake, g->proof)) outcome = kl_handshake_judge(&g->handshake);
    if (outcome == KL_ADMITTED)
        g->door->fn(g->door->ctx, g);
    else
        kl_guest_decline(g, outcome);
}

/* Read what is next, never more: what follows the proof is for the next owner. False: the guest is done with. */
static bool listen_to(struct kl_guest *g)
{
    for (;;) {
        unsigned char *to = g->greeted ? g->proof : g->handshake.caller;
        size_t whole = g->greeted ? sizeof g->proof : sizeof g->handshake.caller;
        ssize_t n = recv(g->fd, to + g->have, whole - g->have, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (n <= 0) return false;
        g->have += (size_t)n;
        if (g->have < whole) continue;
        if (g->greeted) {
            judge(g);
            return false;
        }
        if (!greet(g)) return false;
    }
}

static void on_guest(void *ctx, uint32_t events)
{
    struct kl_guest *g = ctx;

    if (!events || !listen_to(g)) guest_end(g); /* 0: its time is up */
}

static void make_room(struct kl_door *door)
{
    pthread_mutex_lock(&door->lock);
    struct kl_guest *g = door->nguests > KL_DOOR_GUESTS ? door->oldest : NULL;
    pthread_mutex_unlock(&door->lock);
    if (g) guest_end(g);
}

static void receive_guest(struct kl_door *door, int fd)
{
    struct kl_guest *g = calloc(1, sizeof *g);

    if (!g) {
        kl_socket_close(fd);
        return;
    }
    g->door = door;
    g->fd = fd;
    pthread_mutex_lock(&door->lock);
    append(door, g);
    pthread_mutex_unlock(&door->lock);
    if (kl_loop_add(door->loop, fd, EPOLLIN, on_guest, g, &g->source)) {
        guest_end(g);
        return;
    }
    kl_source_deadline(g->source, kl_deadline_in_ms(PATIENCE_MS));
    make_room(door);
}

/* ---- listeners ---- */

static void on_listener(void *ctx, uint32_t events)
{
    struct listener *l = ctx;
    const struct kl_wait at_once = {.deadline = 0};
    enum kl_io io;
    int fd;

    if (!events) kl_source_watch(l->source, EPOLLIN); /* a pause is over */
    while (!(io = kl_socket_accept(l->fd, &at_once, &fd))) receive_guest(l->door, fd);
    if (io != KL_IO_BROKEN) return;
    KL_INFO(KL_BOOTSTRAP, "cannot accept connections: %s; raise the limit of open files", strerror(errno));
    kl_source_watch(l->source, 0);
    kl_source_deadline(l->source, kl_deadline_in_ms(NO_DESCRIPTORS_MS));
}

/* Listen where we can; the addresses that are not to be had go. */
static ncclResult_t listen_on(struct kl_door *door, union kl_address *addresses, int *n)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < *n; i++) {
        struct listener *l = &door->listener[door->nlisteners];

        l->door = door;
        rc = kl_socket_listen(&addresses[i], &l->fd);
        if (!rc)
            addresses[door->nlisteners++] = addresses[i];
        else if (errno != EADDRNOTAVAIL)
            return rc;
    }
    if (!door->nlisteners) return rc;
    *n = door->nlisteners;
    return ncclSuccess;
}

ncclResult_t kl_door_create(struct kl_loop *loop, union kl_address *addresses, int *n, struct kl_door **out)
{
    struct kl_door *door = calloc(1, sizeof *door);
    ncclResult_t rc;

    if (!door) return KL_NOMEM("a listener");
    door->loop = loop;
    pthread_mutex_init(&door->lock, NULL);
    KL_TRY_OR(rc, out, listen_on(door, addresses, n));
    *out = door;
    door = NULL;
out:
    kl_door_close(door);
    return rc;
}

ncclResult_t kl_door_open(struct kl_door *door, const struct kl_key *key, const struct kl_hello *me, kl_door_fn *fn,
                          void *ctx)
{
    door->key = *key;
    door->me = *me;
    door->fn = fn;
    door->ctx = ctx;
    ncclResult_t rc = ncclSuccess;
    pthread_mutex_lock(&door->lock); /* the loop may close the door as soon as somebody has come in */
    for (int i = 0; i < door->nlisteners && !rc; i++) {
        struct listener *l = &door->listener[i];
        rc = kl_loop_add(door->loop, l->fd, EPOLLIN, on_listener, l, &l->source);
    }
    pthread_mutex_unlock(&door->lock);
    return rc;
}

static struct kl_guest *take_guest(struct kl_door *door)
{
    pthread_mutex_lock(&door->lock);
    struct kl_guest *g = door->oldest;
    if (g) {
        detach(door, g);
        g->taken = true;
    }
    pthread_mutex_unlock(&door->lock);
    return g;
}

void kl_door_close(struct kl_door *door)
{
    if (!door) return;
    for (int i = 0; i < door->nlisteners; i++) {
        kl_source_remove(door->listener[i].source);
        kl_socket_close(door->listener[i].fd);
    }
    for (struct kl_guest *g; (g = take_guest(door));) guest_free(g); /* waits for its callback, if that is running */
    kl_key_wipe(&door->key);
    pthread_mutex_destroy(&door->lock);
    free(door);
}
