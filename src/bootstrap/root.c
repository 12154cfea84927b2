/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/root.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/door.h"
#include "bootstrap/frame.h"
#include "bootstrap/partners.h"
#include "bootstrap/ranges.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    ANNOUNCE_MS = 5000,           /* between a right proof and the announcement */
    PATIENCE_MAX_MS = 1000000000, /* eleven days */
    SPARE_DESCRIPTORS = 100,      /* of the process, beside one for each rank */
};

/* The connection of one rank. Belongs to the event loop, as everything here that is not under a lock. */
struct visitor {
    struct kl_root *root;
    struct visitor *prev, *next;
    struct kl_source *source;
    int fd;
    int rank; /* -1 until announced */
    struct kl_assembler assembler;
    unsigned char *answer; /* NULL until there is one */
    size_t answer_bytes, answer_sent;
};

struct kl_root {
    struct kl_loop *loop;
    struct kl_source *clock; /* armed with the deadline, once somebody waits */
    uint64_t deadline;       /* of the least patient rank, who gives it patience_ms */
    uint64_t patience_ms;
    struct visitor *visitors;
    int nranks; /* 0 until the first announcement */
    int nannounced;
    int ndone;             /* visitors who had announced and have ended: told, or gone */
    uint32_t library;      /* version, of the first rank */
    struct kl_card first;  /* who announced first */
    struct kl_card *cards; /* by rank; those without an address have not announced */
    bool introduced;       /* all is well; answers may still be on their way */
    bool failed;
    struct kl_notice failure;

    pthread_mutex_t lock;
    /* under lock: */
    struct kl_door *door; /* NULL when no longer listening */
    bool held;            /* until kl_root_stop */
    bool stopping;
    bool retired;
};

/* ---- ending ---- */

/* The loop and kl_root_stop may both want to: who finds the door closes it. */
static void close_door(struct kl_root *root)
{
    pthread_mutex_lock(&root->lock);
    struct kl_door *door = root->door;
    root->door = NULL;
    pthread_mutex_unlock(&root->lock);
    kl_door_close(door);
}

static void visitor_end(struct visitor *v)
{
    if (v->prev)
        v->prev->next = v->next;
    else
        v->root->visitors = v->next;
    if (v->next) v->next->prev = v->prev;
    if (v->rank >= 0) v->root->ndone++;
    kl_source_remove(v->source);
    kl_socket_close(v->fd);
    kl_assembler_fini(&v->assembler);
    free(v->answer);
    free(v);
}

static void root_free(struct kl_root *root)
{
    if (!root) return;
    pthread_mutex_destroy(&root->lock);
    free(root->cards);
    free(root);
}

/* On the loop, at the end of a callback: the root may be gone afterwards. */
static void retire(struct kl_root *root)
{
    struct kl_loop *loop = root->loop;

    close_door(root);
    while (root->visitors) visitor_end(root->visitors);
    pthread_mutex_lock(&root->lock);
    kl_source_remove(root->clock);
    root->clock = NULL;
    root->retired = true;
    bool held = root->held;
    pthread_mutex_unlock(&root->lock);
    if (!held) root_free(root);
    kl_loop_drop(loop);
}

static void retire_if_done(struct kl_root *root)
{
    bool all_told = root->introduced || (root->failed && root->ndone >= root->nranks);

    if (all_told && !root->visitors) retire(root);
}

/* ---- answers ---- */

/* The visitor has ended afterwards, unless the rest must wait for room in the socket. */
static void push_answer(struct visitor *v)
{
    while (v->answer_sent < v->answer_bytes) {
        ssize_t n = send(v->fd, v->answer + v->answer_sent, v->answer_bytes - v->answer_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            kl_source_watch(v->source, EPOLLOUT);
            return;
        }
        if (n < 0 && errno != EINTR) break;
        if (n > 0) v->answer_sent += (size_t)n;
    }
    visitor_end(v);
}

static void answer(struct visitor *v, enum kl_frame_type type, const void *body, size_t bytes)
{
    struct kl_frame_head head = {.type = type, .length = (uint32_t)bytes};

    v->answer = malloc(KL_FRAME_HEAD + bytes);
    if (!v->answer) {
        visitor_end(v); /* the rank sees its connection end */
        return;
    }
    kl_frame_encode(&head, v->answer);
    memcpy(v->answer + KL_FRAME_HEAD, body, bytes);
    v->answer_bytes = KL_FRAME_HEAD + bytes;
    push_answer(v);
}

static void refuse(struct visitor *v)
{
    unsigned char wire[KL_NOTICE_WIRE_MAX];

    answer(v, KL_FRAME_REFUSE, wire, kl_notice_encode(&v->root->failure, wire));
}

static void introduce(struct visitor *v, struct kl_introduction *introduction)
{
    struct kl_root *root = v->root;
    int partner[KL_MAX_PARTNERS];
    unsigned char wire[KL_INTRODUCTION_WIRE(KL_MAX_PARTNERS)];

    introduction->npartners = kl_partners(v->rank, root->nranks, partner);
    for (int i = 0; i < introduction->npartners; i++) introduction->partner[i] = root->cards[partner[i]];
    kl_introduction_encode(introduction, wire);
    answer(v, KL_FRAME_INTRODUCE, wire, KL_INTRODUCTION_WIRE(introduction->npartners));
}

/* The door is closed first: whoever has been introduced may open the next rendezvous at the same address. */
static void introduce_all(struct kl_root *root)
{
    struct kl_introduction introduction = {0};

    KL_INFO(KL_BOOTSTRAP, "all %d ranks have announced themselves", root->nranks);
    close_door(root);
    root->introduced = true;
    kl_key_random(introduction.session, sizeof introduction.session);
    for (struct visitor *v = root->visitors, *next; v; v = next) {
        next = v->next;
        if (v->rank >= 0)
            introduce(v, &introduction);
        else
            visitor_end(v);
    }
}

/* The first failure counts. Who has announced is told now, who announces later then. */
static void fail(struct kl_root *root, int culprit, ncclResult_t code, const char *text)
{
    if (root->failed || root->introduced) return;
    root->failed = true;
    root->failure = (struct kl_notice){.culprit = culprit, .code = code};
    snprintf(root->failure.text, sizeof root->failure.text, "%s", text);
    KL_INFO(KL_BOOTSTRAP, "the rendezvous failed: %s", text);
    kl_source_deadline(root->clock, kl_deadline_in_ms(root->patience_ms));
    for (struct visitor *v = root->visitors, *next; v; v = next) {
        next = v->next;
        if (v->rank >= 0) refuse(v);
    }
}

/* ---- announcements ---- */

static bool is_missing(const void *ctx, int rank)
{
    const struct kl_root *root = ctx;

    return !root->cards[rank].naddresses;
}

static void name_the_missing(struct kl_root *root)
{
    char ranks[512], text[KL_ERROR_TEXT];
    int n = kl_ranges_format(root->nranks, is_missing, root, ranks, sizeof ranks), first = 0;

    while (!is_missing(root, first)) first++;
    snprintf(
        text, sizeof text,
        "%d of %d ranks did not join within %g s: rank%s %s; see whether %s started, or raise KOLO_BOOTSTRAP_TIMEOUT",
        n, root->nranks, (double)root->patience_ms / 1000, n > 1 ? "s" : "", ranks, n > 1 ? "they" : "it");
    fail(root, first, ncclRemoteError, text);
}

static void card_text(const struct kl_card *card, char text[128])
{
    snprintf(text, 128, "rank %d (host %s, pid %llu)", card->rank, card->host, (unsigned long long)card->pid);
}

/* All ranks stay connected until the last has come: a limit of 1024 open files is too low for as many ranks. */
static void need_descriptors(struct kl_root *root)
{
    rlim_t need = (rlim_t)root->nranks + SPARE_DESCRIPTORS;
    struct rlimit limit;
    char text[KL_ERROR_TEXT];

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= need) return;
    if (limit.rlim_max >= need) {
        limit.rlim_cur = need;
        if (!setrlimit(RLIMIT_NOFILE, &limit)) return;
    }
    snprintf(text, sizeof text,
             "the rendezvous of %d ranks needs %llu open files, and may have %llu; raise `ulimit -n`", root->nranks,
             (unsigned long long)need, (unsigned long long)limit.rlim_max);
    fail(root, -1, ncclSystemError, text);
}

/* The first announcement fixes what the others have to say. */
static bool begin(struct kl_root *root, const struct kl_announce *a)
{
    if (root->nranks) return true;
    root->cards = calloc((size_t)a->nranks, sizeof *root->cards);
    if (!root->cards) return false;
    root->nranks = a->nranks;
    root->library = a->library;
    root->first = a->card;
    root->patience_ms = a->patience_ms;
    need_descriptors(root);
    return true;
}

/* Does it contradict what others said? Then that is the end for all. */
static bool contradicts(struct kl_root *root, const struct kl_announce *a)
{
    const struct kl_card *same = a->nranks == root->nranks ? &root->cards[a->card.rank] : NULL;
    char text[KL_ERROR_TEXT] = "", me[128], other[128];

    card_text(&a->card, me);
    card_text(same && same->naddresses ? same : &root->first, other);
    if (a->library != root->library)
        snprintf(text, sizeof text, "%s runs version %u of the library, %s version %u; install the same on all hosts",
                 me, a->library, other, root->library);
    else if (!same)
        snprintf(text, sizeof text, "%s joins %d ranks, %s joins %d; give all ranks the same number", me, a->nranks,
                 other, root->nranks);
    else if (same->naddresses)
        snprintf(text, sizeof text, "%s and %s both joined as rank %d; give each process its own rank", other, me,
                 a->card.rank);
    if (*text) fail(root, a->card.rank, ncclInvalidUsage, text);
    return *text;
}

static void set_deadline(struct kl_root *root, uint64_t patience_ms)
{
    uint64_t deadline = kl_deadline_in_ms(patience_ms);

    if (root->nannounced > 1 && deadline >= root->deadline) return;
    root->deadline = deadline;
    root->patience_ms = patience_ms;
    kl_source_deadline(root->clock, deadline);
}

/* False: it was no announcement. Otherwise the visitor may have ended. */
static bool hear(struct visitor *v, const struct kl_frame *f)
{
    struct kl_root *root = v->root;
    struct kl_announce a;

    if (f->head.type != KL_FRAME_ANNOUNCE || !kl_announce_decode(f->body, f->head.length, &a)) return false;
    if (a.patience_ms > PATIENCE_MAX_MS) a.patience_ms = PATIENCE_MAX_MS;
    if (!begin(root, &a)) return false;
    v->rank = a.card.rank;
    kl_source_deadline(v->source, KL_NO_DEADLINE);
    if (root->failed) {
        refuse(v);
    } else if (!contradicts(root, &a)) {
        root->cards[v->rank] = a.card;
        root->nannounced++;
        set_deadline(root, a.patience_ms);
        if (root->nannounced == root->nranks) introduce_all(root);
    }
    return true;
}

/* ---- visitors ---- */

static void lost(struct visitor *v)
{
    struct kl_root *root = v->root;
    char who[128], text[KL_ERROR_TEXT];
    int rank = v->rank;

    visitor_end(v);
    if (rank < 0 || root->failed || root->introduced) return;
    card_text(&root->cards[rank], who);
    snprintf(text, sizeof text, "%s has gone again while the other ranks were joining", who);
    fail(root, rank, ncclRemoteError, text);
}

/* Returns when the visitor has ended, or has no more to say at the moment. */
static void listen_to(struct visitor *v)
{
    for (;;) {
        struct kl_frame *frame;
        size_t room;
        unsigned char *to = kl_assembler_room(&v->assembler, &room);
        ssize_t n = recv(v->fd, to, room, 0);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0 || v->rank >= 0 || kl_assembler_filled(&v->assembler, (size_t)n, KL_ANNOUNCE_WIRE, &frame)) {
            lost(v); /* gone, or talking nonsense */
            return;
        }
        if (!frame) continue;
        bool heard = hear(v, frame);
        free(frame);
        if (!heard) lost(v);
        return;
    }
}

static void on_visitor(void *ctx, uint32_t events)
{
    struct visitor *v = ctx;
    struct kl_root *root = v->root;

    if (v->answer)
        push_answer(v);
    else if (events)
        listen_to(v);
    else
        visitor_end(v); /* no announcement came */
    retire_if_done(root);
}

static void on_guest(void *ctx, struct kl_guest *guest)
{
    struct kl_root *root = ctx;
    struct visitor *v = calloc(1, sizeof *v);

    if (!v || !kl_guest_admit(guest, &v->fd)) {
        free(v);
        return;
    }
    v->root = root;
    v->rank = -1;
    v->next = root->visitors;
    if (v->next) v->next->prev = v;
    root->visitors = v;
    if (kl_loop_add(root->loop, v->fd, EPOLLIN, on_visitor, v, &v->source))
        visitor_end(v);
    else
        kl_source_deadline(v->source, kl_deadline_in_ms(ANNOUNCE_MS));
}

/* ---- life ---- */

static void on_clock(void *ctx, uint32_t events)
{
    struct kl_root *root = ctx;

    (void)events;
    pthread_mutex_lock(&root->lock);
    bool stopping = root->stopping;
    pthread_mutex_unlock(&root->lock);
    if (stopping || root->failed || root->introduced) {
        retire(root);
        return;
    }
    name_the_missing(root);
    retire_if_done(root);
}

static ncclResult_t open_door(struct kl_root *root, struct kl_id *id)
{
    struct kl_hello me = {.version = KL_PROTOCOL, .type = KL_CONNECTION_ROOT, .side = KL_HOST, .from = KL_NO_RANK};
    struct kl_key key = kl_key_derive(&id->secret, "kolo root", NULL, 0);
    struct kl_door *door;

    KL_TRY(kl_door_create(root->loop, id->address, &id->naddresses, &door));
    pthread_mutex_lock(&root->lock); /* whoever closes the door, on the loop, waits until it is wholly open */
    root->door = door;
    ncclResult_t rc = kl_door_open(door, &key, &me, on_guest, root);
    pthread_mutex_unlock(&root->lock);
    return rc;
}

ncclResult_t kl_root_start(struct kl_id *id, struct kl_root **out)
{
    struct kl_root *root = calloc(1, sizeof *root);
    struct kl_id opened = *id;
    ncclResult_t rc;

    if (!root) return KL_NOMEM("a rendezvous");
    pthread_mutex_init(&root->lock, NULL);
    root->held = out != NULL;
    KL_TRY_OR(rc, out, kl_loop_hold(&root->loop));
    KL_TRY_OR(rc, out, kl_loop_add(root->loop, -1, 0, on_clock, root, &root->clock));
    rc = open_door(root, &opened);
    if (rc) {
        kl_root_stop(root); /* by the loop, which may already be busy with visitors */
        return rc;
    }
    *id = opened;
    if (out) *out = root;
    return ncclSuccess;
out:
    kl_source_remove(root->clock);
    kl_loop_drop(root->loop);
    root_free(root);
    return rc;
}

void kl_root_stop(struct kl_root *root)
{
    if (!root) return;
    close_door(root); /* before the root can be gone: the door's callbacks use it */
    pthread_mutex_lock(&root->lock);
    bool retired = root->retired;
    root->held = false;
    root->stopping = true;
    if (!retired) kl_source_deadline(root->clock, 0);
    pthread_mutex_unlock(&root->lock);
    if (retired) root_free(root);
}
