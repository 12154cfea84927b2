/* SPDX-License-Identifier: Apache-2.0 */
#include "event/fdshare.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fork_lock.h"
#include "base/log.h"
#include "os/fault_inject.h"
#include "os/fdpass.h"
#include "os/fd_limit.h"
#include "os/socket.h"
#include "event/loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 4096,
    CLIENTS = 256,     /* served at the same time; further ones wait in the backlog */
    TIMEOUT_MS = 5000, /* for a client to show its export handle */
    SPARE_MS = 500,    /* the same, while the client occupies the reserve descriptor and others wait for that */
    PAUSE_MS = 100,    /* before accepting again when no descriptor is left, not even the reserve */
};

enum reply { GRANTED = 1, REFUSED };

struct offer {
    struct offer *next;
    unsigned char secret[16];
    int fd;
};

/* A connection. Belongs to the event loop. */
struct client {
    struct service *service;
    struct client *prev, *next;
    struct kl_source *source;
    int sock;
    bool spare; /* accepted with the reserve descriptor (kl_loop_use_reserve_fd): at most one client at a time */
};

/* Lives from the first offer to the last withdrawal; freed on the event loop, which owns its clients. */
struct service {
    uint64_t name;
    struct kl_loop *loop;
    struct kl_source *source;
    int listener;
    struct client *clients; /* used on the event loop only, as the next field */
    int nclients;
    bool warned; /* that it cannot accept */

    /* under the registry's lock: */
    struct offer *offers;
    bool ending; /* no offer is left */
};

/* The process's service; NULL without offers. */
static struct {
    pthread_mutex_t lock;
    struct service *service;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t fork_handlers_once = PTHREAD_ONCE_INIT;

/* ---- names and peers ---- */

/* Abstract: the first byte is zero, nothing appears in the file system. */
static socklen_t service_address(uint64_t name, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int bytes =
        snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "kolo-fd-%016llx", (unsigned long long)name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes);
}

static int open_socket(void)
{
    int sock;

    do sock = kl_inject_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK);
    while (sock < 0 && kl_fd_limit_make_room(errno));
    return sock;
}

/* `pid` receives the peer's process id, unless NULL. */
static bool same_user(int sock, pid_t *pid)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;

    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &bytes)) return false;
    if (pid) *pid = peer.pid;
    return peer.uid == geteuid();
}

static ncclResult_t random_bytes(void *to, size_t n)
{
    if (getrandom(to, n, 0) != (ssize_t)n) return KL_FAIL_ERRNO("cannot get random bytes");
    return ncclSuccess;
}

/* ---- serving; on the event loop ---- */

static void client_end(struct client *c)
{
    struct service *s = c->service;

    if (c->prev)
        c->prev->next = c->next;
    else
        s->clients = c->next;
    if (c->next) c->next->prev = c->prev;
    if (s->nclients-- == CLIENTS || c->spare) kl_source_watch(s->source, EPOLLIN);
    kl_source_remove(c->source);
    close(c->sock);
    if (c->spare) kl_loop_release_reserve_fd(s->loop);
    free(c);
}

static struct offer *find_offer(const struct service *s, const unsigned char secret[16])
{
    for (struct offer *o = s->offers; o; o = o->next)
        if (!sodium_memcmp(o->secret, secret, sizeof o->secret)) return o;
    return NULL;
}

/* Under lock, so that an offer that is being withdrawn stays until its descriptor has been sent. */
static void reply_to(struct client *c, const unsigned char secret[16])
{
    int quiet = kl_error_quiet(1); /* the client may have closed the connection */

    pthread_mutex_lock(&registry.lock);
    const struct offer *o = find_offer(c->service, secret);
    unsigned char reply = o ? GRANTED : REFUSED;
    (void)kl_fdpass_send(c->sock, o ? o->fd : -1, &reply, sizeof reply, 0);
    pthread_mutex_unlock(&registry.lock);
    kl_error_quiet(quiet);
}

/* An export handle is one message: it arrives whole or not at all. */
static void on_client(void *ctx, uint32_t events)
{
    struct client *c = ctx;
    unsigned char secret[16];

    if (events && recv(c->sock, secret, sizeof secret, MSG_DONTWAIT) == sizeof secret) reply_to(c, secret);
    client_end(c);
}

static void receive_client(struct service *s, int sock, bool spare)
{
    struct client *c = same_user(sock, NULL) ? calloc(1, sizeof *c) : NULL;

    if (!c) {
        close(sock);
        if (spare) kl_loop_release_reserve_fd(s->loop);
        return;
    }
    c->service = s;
    c->sock = sock;
    c->spare = spare;
    c->next = s->clients;
    if (c->next) c->next->prev = c;
    s->clients = c;
    if (++s->nclients == CLIENTS || spare) kl_source_watch(s->source, 0);
    if (kl_loop_add(s->loop, sock, EPOLLIN, on_client, c, &c->source))
        client_end(c);
    else
        kl_source_deadline(c->source, kl_deadline_in_ms(spare ? SPARE_MS : TIMEOUT_MS));
}

static void service_end(struct service *s)
{
    struct kl_loop *loop = s->loop;

    kl_source_remove(s->source);
    while (s->clients) client_end(s->clients);
    close(s->listener);
    free(s);
    kl_loop_unref(loop);
}

static bool is_ending(const struct service *s)
{
    pthread_mutex_lock(&registry.lock);
    bool ending = s->ending;
    pthread_mutex_unlock(&registry.lock);
    return ending;
}

static void warn_once(struct service *s, int err)
{
    char reason[128];

    if (!s->warned)
        KL_WARN("cannot hand out shared memory: %s%s; trying again", strerror_r(err, reason, sizeof reason),
                kl_errno_remedy(err));
    s->warned = true;
}

/* Accepts also when no descriptor is left: the client needs none here, only an answer. */
static int accept_client(struct service *s, bool *spare)
{
    int sock;

    *spare = false;
    do sock = kl_inject_accept(s->listener, SOCK_CLOEXEC | SOCK_NONBLOCK);
    while (sock < 0 && kl_fd_limit_make_room(errno));
    if (sock >= 0 || !kl_loop_use_reserve_fd(s->loop, errno)) return sock;
    sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int err = errno;
    *spare = sock >= 0;
    if (sock < 0) kl_loop_release_reserve_fd(s->loop);
    errno = err;
    return sock;
}

static void on_listener(void *ctx, uint32_t events)
{
    struct service *s = ctx;
    bool spare;

    if (is_ending(s)) {
        service_end(s);
        return;
    }
    if (!events && s->nclients < CLIENTS) kl_source_watch(s->source, EPOLLIN); /* end of a pause */
    int sock = accept_client(s, &spare);
    if (sock >= 0) {
        s->warned = false;
        receive_client(s, sock, spare);
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        warn_once(s, errno);
        kl_source_watch(s->source, 0);
        kl_source_deadline(s->source, kl_deadline_in_ms(PAUSE_MS));
    }
}

/* ---- starting; under lock ---- */

static ncclResult_t open_listener(struct service *s)
{
    struct sockaddr_un address;
    socklen_t bytes = service_address(s->name, &address);

    s->listener = open_socket();
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&address, bytes) || listen(s->listener, BACKLOG))
        return KL_FAIL_ERRNO("cannot open the socket through which descriptors are shared");
    return kl_loop_add(s->loop, s->listener, EPOLLIN, on_listener, s, &s->source);
}

/* A child of fork has no service: the inherited one belongs to the parent. */
KL_FORK_LOCK(registry.lock, registry.service = NULL);

static ncclResult_t service_start(struct service **out)
{
    struct service *s = kl_inject_calloc(1, sizeof *s);
    ncclResult_t rc;

    if (!s) return KL_NOMEM("the service that shares descriptors");
    s->listener = -1;
    KL_TRY_OR(rc, out, random_bytes(&s->name, sizeof s->name));
    KL_TRY_OR(rc, out, kl_loop_ref(&s->loop));
    /* Registered after the loop's own handlers: handlers registered later run earlier, so fork takes this lock first,
     * as the code here does. */
    pthread_once(&fork_handlers_once, install_fork_handlers);
    KL_TRY_OR(rc, out, open_listener(s));
    *out = s;
    return ncclSuccess;
out:
    if (s->listener >= 0) close(s->listener);
    kl_loop_unref(s->loop);
    free(s);
    return rc;
}

static ncclResult_t add_offer(struct offer *o, uint64_t *service)
{
    if (!registry.service) KL_TRY(service_start(&registry.service));
    o->next = registry.service->offers;
    registry.service->offers = o;
    *service = registry.service->name;
    return ncclSuccess;
}

/* ---- offering ---- */

ncclResult_t kl_fdshare_offer(int fd, struct kl_fd_export_handle *handle)
{
    struct offer *o = kl_inject_calloc(1, sizeof *o);
    struct kl_fd_export_handle made;

    if (!o) return KL_NOMEM("an offer of a descriptor");
    o->fd = fd;
    ncclResult_t rc = random_bytes(o->secret, sizeof o->secret);
    if (!rc) {
        pthread_mutex_lock(&registry.lock);
        rc = add_offer(o, &made.service);
        pthread_mutex_unlock(&registry.lock);
    }
    if (rc) {
        free(o);
        return rc;
    }
    memcpy(made.secret, o->secret, sizeof made.secret);
    *handle = made;
    return ncclSuccess;
}

/* Under lock. */
static struct offer *remove_offer(struct service *s, const unsigned char secret[16])
{
    struct offer *found = find_offer(s, secret);
    struct offer **link = &s->offers;

    if (!found) return NULL;
    while (*link != found) link = &(*link)->next;
    *link = found->next;
    return found;
}

void kl_fdshare_withdraw(const struct kl_fd_export_handle *handle)
{
    struct offer *o = NULL;

    pthread_mutex_lock(&registry.lock);
    struct service *s = registry.service;
    if (s && s->name == handle->service) o = remove_offer(s, handle->secret);
    if (o && !s->offers) {
        registry.service = NULL;
        s->ending = true;
        kl_source_deadline(s->source, 0);
    }
    pthread_mutex_unlock(&registry.lock);
    free(o);
}

/* ---- redeeming ---- */

struct kl_fd_request {
    struct kl_fd_export_handle handle;
    uint64_t deadline;
    int sock;
    pid_t pid;  /* of the other process, once connected; 0: it is in another pid namespace */
    bool shown; /* connected, and the export handle has been sent */
};

ncclResult_t kl_fdshare_request(const struct kl_fd_export_handle *handle, uint64_t deadline,
                                struct kl_fd_request **request)
{
    struct kl_fd_request *r = kl_inject_calloc(1, sizeof *r);

    if (!r) return KL_NOMEM("a request for a descriptor");
    *r = (struct kl_fd_request){.handle = *handle, .deadline = deadline};
    r->sock = open_socket();
    if (r->sock < 0) {
        free(r);
        return KL_FAIL_ERRNO("cannot create a Unix socket");
    }
    *request = r;
    return ncclSuccess;
}

void kl_fdshare_request_free(struct kl_fd_request *r)
{
    if (!r) return;
    close(r->sock);
    free(r);
}

/* connect(2) on a Unix socket does not queue while the backlog is full, so there is nothing to poll for. */
static ncclResult_t connect_now(const struct kl_fd_request *r)
{
    struct sockaddr_un address;
    char reason[128];
    socklen_t bytes = service_address(r->handle.service, &address);

    if (!connect(r->sock, (struct sockaddr *)&address, bytes)) return ncclSuccess;
    if (errno != EAGAIN && errno != EINTR)
        return KL_FAIL(ncclRemoteError, "the process that offered a descriptor is gone, or not on this host: %s",
                       strerror_r(errno, reason, sizeof reason));
    if (kl_deadline_passed(r->deadline))
        return KL_FAIL(ncclRemoteError, "the process that offered a descriptor is too busy to hand it out");
    return ncclInProgress;
}

static ncclResult_t show_handle(struct kl_fd_request *r)
{
    KL_TRY(connect_now(r));
    if (!same_user(r->sock, &r->pid))
        return KL_FAIL(ncclRemoteError, "a descriptor is offered by a process of another user");
    /* the new socket's buffer has room */
    KL_TRY(kl_fdpass_send(r->sock, -1, r->handle.secret, sizeof r->handle.secret, r->deadline));
    r->shown = true;
    return ncclSuccess;
}

/* The answer is one message: it arrives whole or not at all. */
static ncclResult_t take_answer(const struct kl_fd_request *r, int *fd)
{
    unsigned char reply = 0;
    int got = -1;

    KL_TRY(kl_fdpass_recv(r->sock, &got, &reply, sizeof reply, r->deadline));
    if (reply == GRANTED && got >= 0) {
        *fd = got;
        return ncclSuccess;
    }
    if (got >= 0) close(got);
    return KL_FAIL(ncclRemoteError, "a descriptor is no longer offered");
}

static bool has_answer(const struct kl_fd_request *r)
{
    struct pollfd p = {.fd = r->sock, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

ncclResult_t kl_fdshare_poll(struct kl_fd_request *r, int *fd)
{
    if (!r->shown) KL_TRY(show_handle(r));
    if (has_answer(r)) return take_answer(r, fd);
    if (!kl_deadline_passed(r->deadline)) return ncclInProgress;
    return KL_FAIL(ncclRemoteError, "process %d, which offered a descriptor, is silent past the deadline", (int)r->pid);
}
