/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/ras.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fork_lock.h"
#include "base/log.h"
#include "comm/comm.h"
#include "comm/diagnosis/gather.h"
#include "comm/diagnosis/protocol.h"
#include "comm/diagnosis/report.h"
#include "event/loop.h"
#include "os/process.h"
#include "os/socket.h"

#include <errno.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CLIENTS = 32, /* on each listener, so that strangers on one do not keep the owner out of the other */
    BACKLOG = 16,
    SILENT_MS = 10000,  /* timeout of a client that has not sent a line yet */
    TIMEOUT_MS = 60000, /* timeout of a client that has, and then sends nothing, or does not read */
    GATHER_MS = 2000,   /* timeout of other processes, times NCCL_RAS_TIMEOUT_FACTOR */
    PAUSE_MS = 200,     /* pause when the process has no descriptor left */
    UNREAD = 4096,      /* bytes of replies that a client may leave unread */
};

struct listener;

struct client {
    struct client *next; /* older ones last */
    struct listener *listener;
    int fd;
    bool spoken; /* a line */
    struct kl_source *source;
    struct kl_ras_session session;
    struct kl_gathering *gathering;
    char *out; /* the output; `sent` of `bytes` have gone */
    size_t bytes, sent;
    bool last; /* read nothing more; close when all is sent */
};

struct listener {
    int fd;
    struct kl_source *source;
    bool local; /* a Unix socket */
    int nclients;
};

/* The event loop's, while there are users. */
static struct {
    struct listener listener[2];
    struct client *clients;
    uint64_t gather_ms;
} ras;

static struct {
    pthread_mutex_t lock;
    int users; /* under lock, as the next two */
    uint32_t generation;
    struct kl_loop *loop;
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- clients ---- */

static void end_client(struct client *c)
{
    struct client **at = &ras.clients;

    while (*at && *at != c) at = &(*at)->next;
    if (*at) *at = c->next;
    c->listener->nclients--;
    kl_gather_cancel(c->gathering);
    kl_source_remove(c->source);
    kl_socket_close(c->fd);
    free(c->out);
    free(c);
}

/* False: the client has ended. */
static bool flush(struct client *c)
{
    while (c->sent < c->bytes) {
        ssize_t n = send(c->fd, c->out + c->sent, c->bytes - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            end_client(c);
            return false;
        }
        c->sent += (size_t)n;
    }
    if (c->last && c->sent == c->bytes && !c->gathering) {
        end_client(c);
        return false;
    }
    kl_source_watch(c->source, (c->last ? 0 : (uint32_t)EPOLLIN) | (c->sent < c->bytes ? (uint32_t)EPOLLOUT : 0));
    if (c->spoken) kl_source_deadline(c->source, kl_deadline_in_ms(TIMEOUT_MS));
    return true;
}

/* False: no memory, or too much unread output. */
static bool add(struct client *c, const char *text, size_t n, size_t most)
{
    size_t unsent = c->bytes - c->sent;
    char *grown = unsent + n <= most ? malloc(unsent + n + 1) : NULL;

    if (!grown) return false;
    if (unsent) memcpy(grown, c->out + c->sent, unsent);
    memcpy(grown + unsent, text, n);
    free(c->out);
    c->out = grown;
    c->bytes = unsent + n;
    c->sent = 0;
    return true;
}

/* ---- the report ---- */

struct sought {
    uint64_t communicator;
    int rank;
    char *who;
};

/* A member of the communicator has the records of all of its ranks. */
static void describe_there(ncclComm_t comm, void *ctx)
{
    struct sought *s = ctx;

    if (kl_load_relaxed(&comm->name) != s->communicator || kl_load_acquire(&comm->phase)) return;
    kl_comm_describe(comm, s->rank, s->who, KL_REPORT_NAME_BYTES);
}

static const char *describe(uint64_t communicator, int rank, char who[KL_REPORT_NAME_BYTES])
{
    struct sought s = {.communicator = communicator, .rank = rank, .who = who};

    snprintf(who, KL_REPORT_NAME_BYTES, "rank %d", rank);
    kl_handle_each(describe_there, &s);
    return who;
}

static void on_gathered(void *ctx, const struct kl_gathered *gathered)
{
    struct client *c = ctx;
    struct kl_report report = {.gathered = gathered, .verbose = c->session.verbose, .describe = describe};
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);

    c->gathering = NULL;
    if (to) (c->session.json ? kl_report_json : kl_report_text)(&report, to);
    bool made = to && !fclose(to) && add(c, text, bytes, SIZE_MAX);
    free(text);
    if (made)
        flush(c);
    else
        end_client(c);
}

static bool begin_report(struct client *c)
{
    uint64_t ms = c->session.timeout_s ? (uint64_t)c->session.timeout_s * 1000 : ras.gather_ms;

    if (c->session.local) ms = 0;
    c->last = true;
    return !kl_gather_begin(held.loop, ms, on_gathered, c, &c->gathering);
}

/* ---- requests of clients ---- */

/* False: close the client. */
static bool hear(struct client *c, const char *bytes, size_t n)
{
    char reply[KL_RAS_REPLY];

    for (size_t taken; n && !c->last; bytes += taken, n -= taken) {
        enum kl_ras_result turn = kl_ras_parse(&c->session, bytes, n, &taken, reply);
        c->spoken |= turn != KL_RAS_MORE;
        if (*reply && !add(c, reply, strlen(reply), UNREAD)) return false;
        c->last = turn == KL_RAS_LEAVE;
        if (turn == KL_RAS_REPORT && !begin_report(c)) return false;
    }
    return true;
}

static void on_client(void *ctx, uint32_t events)
{
    struct client *c = ctx;
    char bytes[KL_RAS_LINE];

    if (!events || (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLIN))) { /* silent for too long, or gone */
        end_client(c);
        return;
    }
    if (events & EPOLLIN && !c->last) {
        ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0 || !hear(c, bytes, (size_t)n)) {
            end_client(c);
            return;
        }
    }
    flush(c);
}

/* ---- listeners ---- */

static bool is_ours(int fd)
{
    struct ucred who;
    socklen_t bytes = sizeof who;

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) && (who.uid == geteuid() || !who.uid);
}

static bool is_here(int fd)
{
    union kl_address here = kl_socket_local(fd), there = kl_socket_peer(fd);

    kl_address_set_port(&here, 0);
    kl_address_set_port(&there, 0);
    return !kl_address_is_none(&there) && !memcmp(&here, &there, sizeof here);
}

/* With all places taken, the oldest client that has not asked for a report has to go. False: all have asked, and are
 * about to leave. */
static bool make_room(const struct listener *d)
{
    struct client *idle = NULL;

    if (d->nclients < CLIENTS) return true;
    for (struct client *c = ras.clients; c; c = c->next)
        if (c->listener == d && !c->last) idle = c;
    if (idle) end_client(idle);
    return idle != NULL;
}

static void let_in(struct listener *d, int fd)
{
    struct client *c = (d->local ? is_ours(fd) : is_here(fd)) && make_room(d) ? calloc(1, sizeof *c) : NULL;

    if (c) c->fd = fd;
    if (c) c->listener = d;
    if (!c || kl_loop_add(held.loop, fd, EPOLLIN, on_client, c, &c->source)) {
        kl_socket_close(fd);
        free(c);
        return;
    }
    c->next = ras.clients;
    ras.clients = c;
    d->nclients++;
    kl_source_deadline(c->source, kl_deadline_in_ms(SILENT_MS));
}

static void on_listener(void *ctx, uint32_t events)
{
    struct listener *d = ctx;

    kl_source_watch(d->source, EPOLLIN);
    if (!events) return; /* the pause is over */
    int fd = accept4(d->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        let_in(d, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        kl_source_watch(d->source, 0);
        kl_source_deadline(d->source, kl_deadline_in_ms(PAUSE_MS));
    }
}

static ncclResult_t open_unix(int *fd)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, KL_RAS_NAME "%d-%08x", (int)getpid(),
                     randombytes_random());
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (s < 0) return KL_FAIL_ERRNO("cannot create a socket for `kolo ras`");
    if (bind(s, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
        listen(s, BACKLOG)) {
        ncclResult_t rc = KL_FAIL_ERRNO("cannot listen for `kolo ras`");
        close(s);
        return rc;
    }
    *fd = s;
    return ncclSuccess;
}

/* "localhost" is not looked up: that may take long, and it is the default. */
static ncclResult_t open_tcp(const char *text, int *fd)
{
    static const char local[] = "localhost:";
    char numeric[64];
    union kl_address address;

    if (!strncmp(text, local, sizeof local - 1)) {
        snprintf(numeric, sizeof numeric, "127.0.0.1:%.32s", text + sizeof local - 1);
        text = numeric;
    }
    KL_TRY(kl_address_parse(text, &address));
    return kl_socket_listen(&address, fd);
}

static void open_listener(struct listener *d, ncclResult_t opened)
{
    if (!opened && kl_loop_add(held.loop, d->fd, EPOLLIN, on_listener, d, &d->source)) {
        kl_socket_close(d->fd);
        opened = ncclSystemError;
    }
    if (opened) d->fd = -1;
    if (opened) KL_INFO(KL_RAS, "%s", kl_error_text());
}

/* ---- life; on the event loop ---- */

static ncclResult_t begin(void *ctx)
{
    const struct kl_comm_config *config = ctx;
    struct listener *own = &ras.listener[0], *tcp = &ras.listener[1];
    int quiet = kl_error_quiet(1);

    ras.gather_ms = GATHER_MS * (uint64_t)config->ras_timeout_factor;
    *own = (struct listener){.fd = -1, .local = true};
    *tcp = (struct listener){.fd = -1};
    open_listener(own, open_unix(&own->fd));
    open_listener(tcp, open_tcp(config->ras_address, &tcp->fd));
    kl_error_quiet(quiet);
    return ncclSuccess;
}

static ncclResult_t end(void *ctx)
{
    (void)ctx;
    while (ras.clients) end_client(ras.clients);
    for (int i = 0; i < 2; i++) {
        kl_source_remove(ras.listener[i].source);
        kl_socket_close(ras.listener[i].fd);
        ras.listener[i] = (struct listener){.fd = -1};
    }
    return ncclSuccess;
}

/* Installed after the loop's handlers, so that fork takes this lock before the loop's, as the code here does. */
KL_FORK_LOCK(held.lock, (void)0);

/* In a forked child: forget the parent's state; its descriptors are closed already (event/loop.h). */
static void forget_parent(void)
{
    if (!held.users || kl_process_is(held.generation)) return;
    held.users = 0;
    held.loop = NULL;
    memset(&ras, 0, sizeof ras);
}

void kl_ras_ref(const struct kl_comm_config *config)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char before[KL_ERROR_TEXT];

    if (!config->ras_enable) return;
    pthread_mutex_lock(&held.lock);
    forget_parent();
    if (!held.users++) {
        snprintf(before, sizeof before, "%s", kl_error_text());
        held.generation = kl_process_generation();
        bool served = !kl_loop_ref(&held.loop);
        pthread_once(&once, install_fork_handlers);
        if (served) (void)kl_loop_run(held.loop, begin, (void *)(uintptr_t)config);
        kl_error_adopt(before);
    }
    pthread_mutex_unlock(&held.lock);
}

void kl_ras_unref(void)
{
    pthread_mutex_lock(&held.lock);
    if (kl_process_is(held.generation) && held.users && !--held.users && held.loop) {
        (void)kl_loop_run(held.loop, end, NULL);
        kl_loop_unref(held.loop);
        held.loop = NULL;
    }
    pthread_mutex_unlock(&held.lock);
}
