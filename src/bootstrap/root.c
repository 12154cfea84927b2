/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/root.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/admission.h"
#include "bootstrap/outbox.h"
#include "bootstrap/partners.h"
#include "bootstrap/processes.h"
#include "bootstrap/ranges.h"
#include "os/fault_inject.h"
#include "os/fd_limit.h"
#include "os/socket.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ANNOUNCE_MS = 60000, /* between a right proof and the announcement: its process may have to wait for a core */
    TELL_MS = 60000,     /* for telling ranks of a failure, if none has announced how long it waits */
    WAIT_LIMIT_MAX_MS = 1000000000, /* eleven days */
    SPARE_DESCRIPTORS = 100,        /* descriptors in addition to one for each rank: requested, */
    LEAST_DESCRIPTORS = 10,         /* and required: the standard ones, the event loop's, listeners, a segment */
};

/* The connection of one rank. Used on the event loop only, like all code here. */
struct visitor {
    struct kl_root *root;
    struct visitor *prev, *next;
    struct kl_source *source;
    int fd;
    int rank;   /* -1 until announced */
    int proved; /* the rank in its hello */
    struct kl_assembler assembler;
    struct kl_outbox out;
    bool answered;
};

struct kl_root {
    struct kl_root *next; /* list of this process's roots */
    struct kl_id id;
    /* Public key: hosts that may come, besides this one (admission.h). NULL: the key is secret. */
    char *open_to;
    bool has_warned; /* about a host that is not admitted */
    struct kl_loop *loop;
    struct kl_source *clock; /* armed with the deadline, while a rank waits */
    uint64_t deadline;       /* the least patient_ms of all announcements, from its arrival */
    uint64_t timeout_ms;
    struct visitor *visitors;
    int nranks; /* 0 until the first announcement */
    int nannounced;
    int ndone;                                 /* announced visitors whose connection has ended: answered, or lost */
    uint32_t library;                          /* library version of the first rank */
    struct kl_address_record first;            /* record of the first rank that announced */
    struct kl_address_record *address_records; /* by rank; those without an address have not announced */
    bool introduced;                           /* all have announced; answers may still be on their way */
    bool failed;
    struct kl_notice failure;
    struct kl_acceptor *acceptor;    /* NULL when no longer listening */
    struct kl_rendezvous_file *file; /* NULL: none, or removed */
    bool held;                       /* until kl_root_stop, which frees it if it has retired */
    bool stopping;
    bool retired;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over; /* retired; protected by the lock, for its holder */
};

/* The live roots. Used on the event loop only; after a fork the child has another loop, and the entries in the list
 * are the parent's. */
static struct {
    struct kl_loop *loop;
    struct kl_root *first;
} process;

/* ---- ending ---- */

static void leave_list(const struct kl_root *root)
{
    struct kl_root **link = &process.first;

    while (*link && *link != root) link = &(*link)->next;
    if (*link) *link = root->next;
}

static void remove_file(struct kl_root *root)
{
    kl_rendezvous_file_remove(root->file);
    root->file = NULL;
}

static void stop_listening(struct kl_root *root)
{
    remove_file(root);
    kl_acceptor_close(root->acceptor);
    root->acceptor = NULL;
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
    kl_outbox_fini(&v->out);
    free(v);
}

/* The loop may be freed afterwards, too. */
static void root_free(struct kl_root *root)
{
    struct kl_loop *loop = root->loop;

    free(root->open_to);
    kl_key_wipe(&root->id.secret);
    pthread_cond_destroy(&root->changed);
    pthread_mutex_destroy(&root->lock);
    free(root->address_records);
    free(root);
    kl_loop_unref(loop);
}

/* At the end of a callback: the root may be freed afterwards. */
static void retire(struct kl_root *root)
{
    stop_listening(root);
    while (root->visitors) visitor_end(root->visitors);
    kl_source_remove(root->clock);
    root->clock = NULL;
    leave_list(root);
    root->retired = true;
    pthread_mutex_lock(&root->lock);
    root->over = true;
    pthread_cond_broadcast(&root->changed);
    pthread_mutex_unlock(&root->lock);
    if (!root->held) root_free(root);
}

static void retire_if_done(struct kl_root *root)
{
    bool all_told = root->introduced || root->stopping || (root->failed && root->nranks && root->ndone >= root->nranks);

    if (all_told && !root->visitors) retire(root);
}

/* ---- answers ---- */

/* The visitor has ended afterwards, unless the rest must wait for room in the socket. */
static void push_answer(struct visitor *v)
{
    bool gone = false;

    if (kl_outbox_flush(&v->out, v->fd, &gone) == EAGAIN)
        kl_source_watch(v->source, EPOLLOUT);
    else
        visitor_end(v);
}

static void answer(struct visitor *v, enum kl_frame_type type, const void *body, size_t bytes)
{
    struct kl_frame_head head = {.type = type, .length = (uint32_t)bytes};

    v->answered = true;
    if (kl_outbox_add(&v->out, &head, body))
        push_answer(v);
    else
        visitor_end(v); /* the rank notices the end of the connection */
}

static void refuse(struct visitor *v)
{
    unsigned char wire[KL_NOTICE_WIRE_MAX];

    answer(v, KL_FRAME_REFUSE, wire, kl_notice_encode(&v->root->failure, wire));
}

static void introduce(struct visitor *v, const struct kl_processes *p, struct kl_introduction *introduction)
{
    struct kl_root *root = v->root;
    int partner[KL_MAX_PARTNERS], n = kl_partners(v->rank, root->nranks, partner);
    unsigned char wire[KL_INTRODUCTION_WIRE(2 * KL_MAX_PARTNERS)];
    struct kl_address_record *record = introduction->partner;

    introduction->placement = kl_processes_placement(p, v->rank);
    introduction->npartners = n;
    for (int i = 0; i < n; i++) *record++ = root->address_records[partner[i]];
    n = introduction->placement.place ? 0 : kl_partners(introduction->placement.process, p->n, partner);
    introduction->nleaders = n;
    for (int i = 0; i < n; i++) *record++ = root->address_records[kl_processes_leader(p, partner[i])];
    kl_introduction_encode(introduction, wire);
    answer(v, KL_FRAME_INTRODUCE, wire, KL_INTRODUCTION_WIRE(introduction->npartners + introduction->nleaders));
}

/* Close the acceptor first: a rank that was introduced may open the next rendezvous at the same address. */
static void introduce_all(struct kl_root *root, const struct kl_processes *processes)
{
    struct kl_introduction introduction = {0};

    KL_INFO(KL_BOOTSTRAP, "all %d ranks have announced themselves", root->nranks);
    stop_listening(root);
    root->introduced = true;
    kl_key_random(introduction.session, sizeof introduction.session);
    for (struct visitor *v = root->visitors, *next; v; v = next) {
        next = v->next;
        if (v->rank >= 0)
            introduce(v, processes, &introduction);
        else
            visitor_end(v);
    }
}

/* The first failure counts. Ranks that have announced are told now, later ones when they announce. */
static void fail(struct kl_root *root, int culprit, ncclResult_t code, const char *text)
{
    if (root->failed || root->introduced) return;
    root->failed = true;
    root->failure = (struct kl_notice){.culprit = culprit, .code = code};
    snprintf(root->failure.text, sizeof root->failure.text, "%s", text);
    KL_INFO(KL_BOOTSTRAP, "the rendezvous failed: %s", text);
    remove_file(root);
    kl_source_deadline(root->clock, kl_deadline_in_ms(root->nranks ? root->timeout_ms : TELL_MS));
    for (struct visitor *v = root->visitors, *next; v; v = next) {
        next = v->next;
        if (v->rank >= 0) refuse(v);
    }
}

/* ---- announcements ---- */

static bool is_missing(const void *ctx, int rank)
{
    const struct kl_root *root = ctx;

    return !root->address_records[rank].naddresses;
}

static void name_the_missing(struct kl_root *root)
{
    char ranks[512], declined[256], text[KL_ERROR_TEXT];
    const bool told = kl_acceptor_has_declined(root->acceptor, declined, sizeof declined);
    int n = kl_ranges_format(root->nranks, is_missing, root, ranks, sizeof ranks), first = 0;

    while (!is_missing(root, first)) first++;
    snprintf(text, sizeof text,
             "%d of %d ranks did not join within %g s: rank%s %s; see whether %s started, or raise "
             "KOLO_BOOTSTRAP_TIMEOUT%s%s",
             n, root->nranks, (double)root->timeout_ms / 1000, n > 1 ? "s" : "", ranks, n > 1 ? "they" : "it",
             told ? "; " : "", told ? declined : "");
    fail(root, first, ncclRemoteError, text);
}

static void record_text(const struct kl_address_record *record, char text[128])
{
    snprintf(text, 128, "rank %d (host %s, pid %llu)", record->rank, record->host, (unsigned long long)record->pid);
}

/* All ranks stay connected until the last has announced: a limit of 1024 open files is too low for that many ranks. */
static void need_descriptors(struct kl_root *root)
{
    uint64_t need = (uint64_t)root->nranks + LEAST_DESCRIPTORS;
    uint64_t have = kl_fd_limit_raise((uint64_t)root->nranks + SPARE_DESCRIPTORS);
    char text[KL_ERROR_TEXT];

    if (have >= need) return;
    snprintf(text, sizeof text,
             "the rendezvous of %d ranks needs %llu open files, and may have %llu; raise `ulimit -n`", root->nranks,
             (unsigned long long)need, (unsigned long long)have);
    fail(root, -1, ncclSystemError, text);
}

/* The first announcement fixes the values that others must agree with. */
static bool begin(struct kl_root *root, const struct kl_announce *a)
{
    if (root->nranks) return true;
    root->address_records = calloc((size_t)a->nranks, sizeof *root->address_records);
    if (!root->address_records) return false;
    root->nranks = a->nranks;
    root->library = a->library;
    root->first = a->record;
    root->timeout_ms = a->timeout_ms;
    need_descriptors(root);
    if (!root->failed) kl_acceptor_expect(root->acceptor, root->nranks);
    return true;
}

/* If an announcement contradicts earlier ones, fail. */
static bool contradicts(struct kl_root *root, const struct kl_announce *a)
{
    const struct kl_address_record *same = a->nranks == root->nranks ? &root->address_records[a->record.rank] : NULL;
    char text[KL_ERROR_TEXT] = "", me[128], other[128];

    record_text(&a->record, me);
    record_text(same && same->naddresses ? same : &root->first, other);
    if (a->library != root->library)
        snprintf(text, sizeof text, "%s runs version %u of the library, %s version %u; install the same on all hosts",
                 me, a->library, other, root->library);
    else if (!same)
        snprintf(text, sizeof text, "%s joins %d ranks, %s joins %d; give all ranks the same number", me, a->nranks,
                 other, root->nranks);
    else if (same->naddresses)
        snprintf(text, sizeof text, "%s and %s both joined as rank %d; give each process its own rank", other, me,
                 a->record.rank);
    if (*text) fail(root, a->record.rank, ncclInvalidUsage, text);
    return *text;
}

static void all_have_come(struct kl_root *root)
{
    struct kl_processes processes;

    if (kl_processes_find(root->address_records, root->nranks, &processes)) {
        fail(root, -1, ncclSystemError, "the rendezvous has no memory to introduce the ranks to each other");
        return;
    }
    introduce_all(root, &processes);
    kl_processes_fini(&processes);
}

static void set_deadline(struct kl_root *root, uint64_t timeout_ms)
{
    uint64_t deadline = kl_deadline_in_ms(timeout_ms);

    if (root->nannounced > 1 && deadline >= root->deadline) return;
    root->deadline = deadline;
    root->timeout_ms = timeout_ms;
    kl_source_deadline(root->clock, deadline);
}

/* False: not an announcement. Otherwise the visitor may have ended. */
static bool on_frame(struct visitor *v, const struct kl_frame *f)
{
    struct kl_root *root = v->root;
    struct kl_announce a;

    if (f->head.type != KL_FRAME_ANNOUNCE || !kl_announce_decode(f->body, f->head.length, &a)) return false;
    if (a.timeout_ms > WAIT_LIMIT_MAX_MS) a.timeout_ms = WAIT_LIMIT_MAX_MS;
    if (!begin(root, &a)) return false;
    v->rank = a.record.rank;
    kl_source_deadline(v->source, KL_NO_DEADLINE);
    if (root->failed) {
        refuse(v);
    } else if (!contradicts(root, &a)) {
        root->address_records[v->rank] = a.record;
        root->nannounced++;
        set_deadline(root, a.timeout_ms);
        if (root->nannounced == root->nranks) all_have_come(root);
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
    record_text(&root->address_records[rank], who);
    snprintf(text, sizeof text, "%s has gone again while the other ranks were joining", who);
    fail(root, rank, ncclRemoteError, text);
}

/* A rank that holds the key has announced, and its message was altered: fail. It is among the ranks to be told. */
static void altered(struct visitor *v)
{
    union kl_address from = kl_socket_peer(v->fd);
    char address[KL_ADDRESS_TEXT], text[KL_ERROR_TEXT];

    v->rank = v->proved;
    kl_source_deadline(v->source, KL_NO_DEADLINE);
    snprintf(text, sizeof text,
             "a frame from rank %d at %s was altered on the way to the rendezvous; check the network between them",
             v->rank, kl_address_format(&from, address));
    if (v->root->failed)
        refuse(v);
    else
        fail(v->root, v->rank, ncclRemoteError, text);
}

/* Returns when the visitor has ended, or has sent no more for now. */
static void listen_to(struct visitor *v)
{
    for (;;) {
        struct kl_frame *frame;
        size_t room;
        unsigned char *to = kl_assembler_room(&v->assembler, &room);
        ssize_t n = kl_inject_recv(v->fd, to, room, 0);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0 || v->rank >= 0) {
            lost(v); /* closed, or unexpected bytes */
            return;
        }
        enum kl_frame_fault fault = kl_assembler_filled(&v->assembler, (size_t)n, KL_ANNOUNCE_WIRE, &frame);
        if (fault == KL_FRAME_ALTERED)
            altered(v);
        else if (fault)
            lost(v);
        if (fault) return;
        if (!frame) continue;
        bool heard = on_frame(v, frame);
        free(frame);
        if (!heard) lost(v);
        return;
    }
}

static void on_visitor(void *ctx, uint32_t events)
{
    struct visitor *v = ctx;
    struct kl_root *root = v->root;

    if (v->answered)
        push_answer(v);
    else if (events)
        listen_to(v);
    else
        visitor_end(v); /* no announcement came */
    retire_if_done(root);
}

/* Is its host admitted? Strangers may connect often: only the first gets a warning. */
static bool is_welcome(struct kl_root *root, int fd)
{
    union kl_address from = kl_socket_peer(fd);
    char text[KL_ADDRESS_TEXT];

    if (!root->open_to || kl_admission_allows(root->open_to, kl_socket_local(fd), from)) return true;
    KL_LOG(root->has_warned ? KL_LOG_INFO : KL_LOG_WARN, KL_BOOTSTRAP,
           "refused somebody at %s: without KOLO_SECRET only this host may join; set it to the same text on all ranks, "
           "or allow other hosts with KOLO_OPEN_TO",
           kl_address_format(&from, text));
    root->has_warned = true;
    return false;
}

static void fail_without_room(struct kl_root *root, int rank)
{
    char text[KL_ERROR_TEXT];

    snprintf(
        text, sizeof text,
        "the process that keeps the rendezvous (pid %d) cannot accept the connection of rank %d: too many open files%s",
        (int)getpid(), rank, kl_errno_remedy(EMFILE));
    fail(root, rank, ncclSystemError, text);
}

static void on_incoming(void *ctx, struct kl_incoming *incoming)
{
    struct kl_root *root = ctx;
    struct visitor *v;
    struct kl_connection c;

    if (!is_welcome(root, kl_incoming_fd(incoming))) {
        kl_incoming_decline(incoming, KL_REFUSED);
        return;
    }
    if (kl_incoming_rank(incoming) >= KL_MAX_RANKS) {
        kl_incoming_decline(incoming, KL_NOT_HERE);
        return;
    }
    v = calloc(1, sizeof *v);
    if (!v || !kl_incoming_admit(incoming, &c)) {
        if (v && errno == EMFILE) fail_without_room(root, (int)kl_incoming_rank(incoming));
        free(v);
        return;
    }
    v->root = root;
    v->fd = c.fd;
    v->assembler.seal = c.in;
    v->out.seal = c.out;
    kl_connection_forget(&c);
    v->rank = -1;
    v->proved = (int)kl_incoming_rank(incoming);
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
    if (root->failed || root->introduced) {
        retire(root);
        return;
    }
    name_the_missing(root);
    retire_if_done(root);
}

static ncclResult_t listen_for_ranks(struct kl_root *root, struct kl_id *id)
{
    struct kl_hello me = {.version = KL_PROTOCOL,
                          .type = KL_CONNECTION_ROOT,
                          .side = KL_HOST,
                          .from = KL_NO_RANK,
                          .name = kl_id_name(id)};
    struct kl_key key = kl_key_derive(&id->secret, "kolo root", NULL, 0);

    KL_TRY(kl_acceptor_create(root->loop, id->address, &id->naddresses, &me, on_incoming, root, &root->acceptor));
    kl_acceptor_open(root->acceptor, &key);
    kl_key_wipe(&key);
    return ncclSuccess;
}

static void enter_list(struct kl_root *root, const struct kl_id *id)
{
    if (process.loop != root->loop) process.first = NULL;
    process.loop = root->loop;
    root->id = *id;
    root->next = process.first;
    process.first = root;
}

struct start {
    struct kl_root *root;
    struct kl_id *id;
};

static ncclResult_t start(void *ctx)
{
    struct start *s = ctx;

    KL_TRY(kl_loop_add(s->root->loop, -1, 0, on_clock, s->root, &s->root->clock));
    ncclResult_t rc = listen_for_ranks(s->root, s->id);
    if (rc)
        kl_source_remove(s->root->clock);
    else
        enter_list(s->root, s->id);
    return rc;
}

static ncclResult_t load_admission(struct kl_root *root, const struct kl_id *id)
{
    struct kl_bootstrap_params params;

    if (!kl_id_is_public(id)) return ncclSuccess;
    kl_param_load(&kl_bootstrap_param_set, &params);
    root->open_to = strdup(params.open_to);
    return root->open_to ? ncclSuccess : KL_NOMEM("a rendezvous");
}

static struct kl_root *allocate(void)
{
    struct kl_root *root = calloc(1, sizeof *root);
    pthread_condattr_t monotonic;

    if (!root) return NULL;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&root->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&root->lock, NULL);
    return root;
}

ncclResult_t kl_root_start(struct kl_id *id, struct kl_root **out)
{
    struct kl_root *root = allocate();
    struct kl_id opened = *id;
    struct start s = {.root = root, .id = &opened};
    ncclResult_t rc;

    if (!root) return KL_NOMEM("a rendezvous");
    root->held = out != NULL;
    KL_TRY_OR(rc, out, load_admission(root, id));
    KL_TRY_OR(rc, out, kl_loop_ref(&root->loop));
    KL_TRY_OR(rc, out, kl_loop_run(root->loop, start, &s));
    *id = opened;
    if (out) *out = root; /* else it may be gone already */
    return ncclSuccess;
out:
    root_free(root);
    return rc;
}

struct giving_up {
    struct kl_root *root;
    bool announced;
    const char *why;
};

static ncclResult_t give_up(void *ctx)
{
    struct giving_up *g = ctx;

    if (g->root->retired) return ncclSuccess;
    fail(g->root, 0, ncclRemoteError, g->why);
    if (!g->announced) g->root->ndone++; /* it will not connect to be told */
    retire_if_done(g->root);
    return ncclSuccess;
}

struct declining {
    struct kl_loop *loop;
    const struct kl_id *id;
    int rank;
    const char *why;
};

static bool is_of(const struct kl_root *root, const struct kl_id *id)
{
    ncclUniqueId its, asked;

    kl_id_pack(&root->id, &its);
    kl_id_pack(id, &asked);
    bool same = !memcmp(&its, &asked, sizeof its);
    explicit_bzero(&its, sizeof its); /* their secrets */
    explicit_bzero(&asked, sizeof asked);
    return same;
}

static struct kl_root *find(const struct kl_loop *loop, const struct kl_id *id)
{
    struct kl_root *root = process.loop == loop ? process.first : NULL;

    while (root && !is_of(root, id)) root = root->next;
    return root;
}

static ncclResult_t decline(void *ctx)
{
    const struct declining *d = ctx;
    struct kl_root *root = find(d->loop, d->id);

    if (!root) return ncclSuccess;
    fail(root, d->rank, ncclRemoteError, d->why);
    root->ndone++; /* it will not connect to be told */
    retire_if_done(root);
    return ncclSuccess;
}

void kl_root_decline(const struct kl_id *id, int rank)
{
    char why[KL_ERROR_TEXT];
    struct declining d = {.id = id, .rank = rank, .why = why};

    snprintf(why, sizeof why, "rank %d did not join: %.900s", rank, kl_error_text());
    if (!kl_loop_ref_existing(&d.loop)) return; /* no loop, hence no root */
    (void)kl_loop_run(d.loop, decline, &d);
    kl_loop_unref(d.loop);
}

struct owning {
    struct kl_loop *loop;
    const struct kl_id *id;
    struct kl_rendezvous_file *file;
};

static ncclResult_t own_file(void *ctx)
{
    struct owning *o = ctx;
    struct kl_root *root = find(o->loop, o->id);

    if (!root || root->introduced || root->failed) return ncclSuccess;
    remove_file(root);
    root->file = o->file;
    o->file = NULL;
    return ncclSuccess;
}

void kl_root_take_file(const struct kl_id *id, struct kl_rendezvous_file *file)
{
    struct owning o = {.id = id, .file = file};

    if (kl_loop_ref_existing(&o.loop)) {
        (void)kl_loop_run(o.loop, own_file, &o);
        kl_loop_unref(o.loop);
    }
    kl_rendezvous_file_remove(o.file);
}

void kl_root_give_up(struct kl_root *root, bool announced, uint64_t deadline)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                                   .tv_nsec = (long)(deadline % 1000000000u)};
    char why[KL_ERROR_TEXT];
    struct giving_up g = {.root = root, .announced = announced, .why = why};

    if (!root) return;
    snprintf(why, sizeof why, "rank 0, which opened the rendezvous, did not join: %.800s", kl_error_text());
    (void)kl_loop_run(root->loop, give_up, &g);
    pthread_mutex_lock(&root->lock);
    while (!root->over && !pthread_cond_timedwait(&root->changed, &root->lock, &until)) continue;
    pthread_mutex_unlock(&root->lock);
}

/* Answered ranks get their answers; the others notice the end of the connection. */
static ncclResult_t stop(void *ctx)
{
    struct kl_root *root = ctx;

    root->held = false;
    root->stopping = true;
    if (root->retired) {
        root_free(root);
        return ncclSuccess;
    }
    stop_listening(root);
    for (struct visitor *v = root->visitors, *next; v; v = next) {
        next = v->next;
        if (!v->answered) visitor_end(v);
    }
    retire_if_done(root);
    return ncclSuccess;
}

void kl_root_stop(struct kl_root *root)
{
    struct kl_loop *loop;

    if (!root || kl_loop_ref(&loop)) return; /* a reference of its own, for the duration of this call */
    (void)kl_loop_run(loop, stop, root);
    kl_loop_unref(loop);
}
