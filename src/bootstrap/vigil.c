/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/vigil.h"

#include "base/clock.h"
#include "bootstrap/failure.h"
#include "bootstrap/link.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LOOK_MS = 5000,
    PAUSED_MS = 3 * LOOK_MS, /* between checks: this process was stopped */
    LOST_MS = 20000,
    KNOWN_MS = 1000, /* how long a check of an address is cached */
};

static const uint64_t ms = 1000000u; /* ns */

/* ---- the own address ---- */

/* False only if it certainly cannot be used. */
static bool is_here(union kl_address address)
{
    int fd = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0) return true;
    kl_address_set_port(&address, 0);
    bool here = !bind(fd, &address.any, kl_address_bytes(&address)) || errno != EADDRNOTAVAIL;
    close(fd);
    return here;
}

/* Of thousands of ranks of a process, one checks. On the event loop. */
static bool is_still_here(const union kl_address *address)
{
    static union kl_address last;
    static uint64_t looked;
    static bool here;
    const uint64_t now = kl_now_ns();

    if (now - looked < KNOWN_MS * ms && kl_address_same_host(&last, address)) return here;
    last = *address;
    looked = now;
    here = is_here(*address);
    return here;
}

static void look_at_own(struct kl_bootstrap *b, uint64_t now)
{
    struct kl_notice why = {.culprit = b->rank, .code = ncclRemoteError};
    char me[KL_WHO_TEXT], text[KL_ADDRESS_TEXT];

    pthread_mutex_lock(&b->lock);
    const union kl_address near = b->near;
    pthread_mutex_unlock(&b->lock);
    if (is_still_here(&near)) {
        b->homeless_since = 0;
        return;
    }
    if (!b->homeless_since) b->homeless_since = now;
    if (now - b->homeless_since < LOST_MS * ms) return;
    pthread_mutex_lock(&b->lock);
    snprintf(why.text, sizeof why.text,
             "%s is cut off: its host has lost the address %s, at which the other ranks know it, in phase %s",
             kl_who(b, b->rank, me), kl_address_format(&near, text), b->phase);
    pthread_mutex_unlock(&b->lock);
    kl_failure_hear(b, &why);
}

/* ---- unacknowledged data ---- */

/* Time since the last acknowledgement, or since one was found to be due, whichever is later; ns. */
static uint64_t silent_ns(struct kl_contact *peer, uint64_t now)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;

    bool due = !getsockopt(peer->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) && info.tcpi_unacked;
    if (!due || !peer->due_since || info.tcpi_last_ack_recv * ms < now - peer->due_since) peer->due_since = now;
    if (!due) peer->due_since = 0;
    return due ? now - peer->due_since : 0;
}

static bool is_up(const struct kl_contact *peer)
{
    pthread_mutex_lock(&peer->bootstrap->lock);
    bool up = peer->state == KL_LINK_UP && peer->far;
    pthread_mutex_unlock(&peer->bootstrap->lock);
    return up;
}

static void look_at_links(struct kl_bootstrap *b, uint64_t now, bool paused)
{
    for (int rank = 0; rank < b->nranks; rank++) {
        struct kl_contact *peer = kl_contact_find(b, rank);
        if (!peer || !is_up(peer)) continue;
        if (paused) peer->due_since = 0;
        if (silent_ns(peer, now) >= LOST_MS * ms) kl_link_lose(peer, "its connection is dead: nothing is acknowledged");
    }
}

/* ---- timer ---- */

void kl_vigil_on_clock(void *ctx, uint32_t events)
{
    struct kl_bootstrap *b = ctx;
    const uint64_t now = kl_now_ns();
    const bool paused = now - b->looked > PAUSED_MS * ms; /* this process was stopped: no conclusion is possible */

    (void)events;
    if (paused) b->homeless_since = 0;
    b->looked = now;
    look_at_own(b, now);
    look_at_links(b, now, paused);
    kl_source_deadline(b->vigil, kl_deadline_in_ms(LOOK_MS));
}

void kl_vigil_begin(struct kl_contact *peer)
{
    struct kl_bootstrap *b = peer->bootstrap;
    union kl_address here = kl_socket_local(peer->fd), there = kl_socket_peer(peer->fd);
    bool within = kl_address_same_host(&here, &there);

    if (kl_address_is_door(&here) || (within && kl_address_is_loopback(&here))) return;
    peer->far = !within;
    b->near = here;
    if (b->looked) return;
    b->looked = kl_now_ns();
    kl_source_deadline(b->vigil, kl_deadline_in_ms(LOOK_MS));
}
