/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/listener.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "os/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Before accepting again after a failure, such as no descriptor left; twice as long after each failure. */
    PAUSE_MS = 100,
    LONGEST_PAUSE_MS = 3200,
    AT_ONCE = 64,    /* connections accepted before the loop serves others */
    REMEMBERED = 16, /* ports */
};

struct kl_listener {
    struct kl_listener *next; /* list of the shared ones */
    struct kl_loop *loop;
    struct kl_source *source;
    int fd;
    int pause_ms; /* 0: the last accept succeeded */
    union kl_address address;
    kl_listener_fn *fn;
    void *owner; /* NULL: shared */
    int holders;
};

/* All belong to one loop: there is one at a time, and each holder holds it. */
static struct {
    struct kl_loop *loop;
    struct kl_listener *shared;
} process;

/* Addresses with the ports that the system chose for them earlier; a ring. */
static union kl_address remembered[REMEMBERED];
static unsigned nremembered;

/* ---- ports ---- */

static bool same_but_for_port(union kl_address a, union kl_address b)
{
    kl_address_unbind(&a);
    kl_address_unbind(&b);
    return !memcmp(&a, &b, sizeof a);
}

static union kl_address *find_remembered(const union kl_address *address)
{
    for (unsigned i = 0; i < REMEMBERED && i < nremembered; i++)
        if (same_but_for_port(remembered[i], *address)) return &remembered[i];
    return NULL;
}

static void remember(const union kl_address *address)
{
    union kl_address *place = find_remembered(address);

    if (!place) place = &remembered[nremembered++ % REMEMBERED];
    *place = *address;
}

/* Another process may have taken the earlier port meanwhile. */
static bool listen_as_before(union kl_address *address, int *fd)
{
    const union kl_address *before = find_remembered(address);
    int quiet = kl_error_quiet(1);
    union kl_address again;
    bool done = false;

    if (before) {
        again = *before;
        done = !kl_socket_listen(&again, fd);
    }
    kl_error_quiet(quiet);
    if (done) *address = again;
    return done;
}

static ncclResult_t listen_on(union kl_address *address, int *fd)
{
    if (kl_address_is_bound(address)) return kl_socket_listen(address, fd);
    if (listen_as_before(address, fd)) return ncclSuccess;
    KL_TRY(kl_socket_listen(address, fd));
    remember(address);
    return ncclSuccess;
}

/* ---- connections ---- */

/* Callers wait in the backlog meanwhile. */
static void pause_after(struct kl_listener *l, int err)
{
    char address[KL_ADDRESS_TEXT], reason[128];

    if (!l->pause_ms)
        KL_WARN("cannot accept connections at %s: %s%s; trying again", kl_address_format(&l->address, address),
                strerror_r(err, reason, sizeof reason), kl_errno_remedy(err));
    l->pause_ms = !l->pause_ms ? PAUSE_MS : 2 * l->pause_ms < LONGEST_PAUSE_MS ? 2 * l->pause_ms : LONGEST_PAUSE_MS;
    kl_source_watch(l->source, 0);
    kl_source_deadline(l->source, kl_deadline_in_ms((uint64_t)l->pause_ms));
}

/* Callers get an answer also when no descriptor is left, if only that one. */
static enum kl_io accept_one(struct kl_listener *l, int *fd, bool *spare)
{
    const struct kl_io_wait at_once = {.deadline = 0};
    enum kl_io io = kl_socket_accept(l->fd, &at_once, fd);

    *spare = false;
    if (io != KL_IO_ERROR || !kl_loop_use_reserve_fd(l->loop, errno)) return io;
    io = kl_socket_accept(l->fd, &at_once, fd);
    int err = errno;
    *spare = !io;
    if (io) kl_loop_release_reserve_fd(l->loop);
    errno = err;
    return io;
}

static void on_listener(void *ctx, uint32_t events)
{
    struct kl_listener *l = ctx;
    enum kl_io io;
    int fd, n = 0;
    bool spare;

    if (!events) kl_source_watch(l->source, EPOLLIN); /* end of a pause */
    while (!(io = accept_one(l, &fd, &spare))) {
        l->pause_ms = 0;
        l->fn(l, l->owner, fd, spare);
        if (++n == AT_ONCE) return;
    }
    if (io == KL_IO_ERROR) pause_after(l, errno);
}

/* ---- holders ---- */

/* After a fork the child has another loop, and the entries in the list are the parent's. */
static void notice_another_loop(struct kl_loop *loop)
{
    if (process.loop == loop) return;
    process.loop = loop;
    process.shared = NULL;
}

static struct kl_listener *find_shared(const union kl_address *address)
{
    struct kl_listener *l = process.shared;

    while (l && !same_but_for_port(l->address, *address)) l = l->next;
    return l;
}

static ncclResult_t open_listener(struct kl_loop *loop, const union kl_address *address, struct kl_listener **out)
{
    struct kl_listener *l = calloc(1, sizeof *l);
    ncclResult_t rc;

    if (!l) return KL_NOMEM("a listener");
    l->loop = loop;
    l->fd = -1;
    l->address = *address;
    KL_TRY_OR(rc, out, listen_on(&l->address, &l->fd));
    KL_TRY_OR(rc, out, kl_loop_add(loop, l->fd, EPOLLIN, on_listener, l, &l->source));
    *out = l;
    return ncclSuccess;
out:;
    int err = errno;
    kl_socket_close(l->fd);
    free(l);
    errno = err;
    return rc;
}

ncclResult_t kl_listener_ref(struct kl_loop *loop, union kl_address *address, kl_listener_fn *fn, void *owner,
                             struct kl_listener **out)
{
    bool fixed = kl_address_is_bound(address);

    notice_another_loop(loop);
    struct kl_listener *l = fixed ? NULL : find_shared(address);
    if (!l) {
        KL_TRY(open_listener(loop, address, &l));
        l->fn = fn;
        l->owner = fixed ? owner : NULL;
        if (!fixed) {
            l->next = process.shared;
            process.shared = l;
        }
    }
    l->holders++;
    *address = l->address;
    *out = l;
    return ncclSuccess;
}

static void unlink_shared(const struct kl_listener *l)
{
    struct kl_listener **link = &process.shared;

    while (*link && *link != l) link = &(*link)->next;
    if (*link) *link = l->next;
}

bool kl_listener_unref(struct kl_listener *l)
{
    if (--l->holders) return false;
    unlink_shared(l);
    kl_source_remove(l->source);
    kl_socket_close(l->fd);
    free(l);
    return true;
}
