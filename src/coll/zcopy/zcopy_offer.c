/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/zcopy/zcopy_offer.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/host/copy_out.h"
#include "os/fault_inject.h"
#include "transport/pool.h"

#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 10000 }; /* for mapping an allocation */
enum { FEW = 2 };            /* messages of a launch: a ring. More are an all-to-all */
enum { WATCHED = 16 };

/* Bytes of a send that may be done before its receive is posted. */
enum { STAGED_AHEAD = KL_POOL_DEPTH * KL_POOL_SLOT_BYTES };

enum { NO_BLOCK = KL_PEER_BUFFER_BLOCKS }; /* the data are in no allocation that can be mapped */

/* As it travels, in the line of a step. */
struct offer {
    uint64_t at; /* in the allocation; or its address */
    uint32_t epoch, block;
    union {
        struct kl_range_export_handle handle;
        struct kl_cma_process owner;
    };
};
_Static_assert(sizeof(struct offer) <= KL_FIFO_INLINE, "an offer travels in a line");

/* ---- life ---- */

void kl_zcopy_offers_fini(struct kl_zcopy_offers *l)
{
    if (l->buffers) kl_peer_buffers_fini(l->buffers);
    free(l->buffers);
    free(l->peers);
    l->buffers = NULL;
    l->peers = NULL;
}

static bool begin(struct kl_zcopy_offers *l)
{
    struct kl_peer_buffers *buffers = kl_inject_calloc(1, sizeof *buffers);

    l->peers = kl_inject_calloc((size_t)l->nranks, sizeof *l->peers);
    if (!buffers || !l->peers || kl_peer_buffers_init(buffers, &kl_host_devices, l->nranks, l->rank)) {
        free(buffers);
        free(l->peers);
        l->peers = NULL;
        return false;
    }
    buffers->processes = true;
    l->buffers = buffers;
    return true;
}

/* Made when first needed. Without memory for it nothing is offered. */
static bool is_open(struct kl_zcopy_offers *l)
{
    int quiet = kl_error_quiet(1);
    bool open = l->buffers || begin(l);

    kl_error_quiet(quiet);
    return open;
}

/* ---- the sender ---- */

/* Least bytes of an offer to map memory. The fewer cores there are for the ranks, the longer the sender waits for the answer. */
static size_t mapped_least(const struct kl_zcopy_offers *l)
{
    return l->nranks > 4 ? 2 * KL_ZCOPY_MAPPED_LEAST : KL_ZCOPY_MAPPED_LEAST;
}

static bool may_try(const struct kl_zcopy_offer_peer *p, enum kl_zcopy_offer_kind kind)
{
    return p->refusals[kind] < KL_ZCOPY_REFUSALS;
}

static bool offer_mapped(const struct kl_zcopy_offers *l, const void *data, struct offer *offer)
{
    const void *const buffer[KL_PEER_BUFFER_BUFFERS] = {[KL_PEER_BUFFER_SEND] = data};
    struct kl_peer_buffer_info info;
    struct kl_peer_buffer_handles handles;

    kl_peer_buffer_info(l->buffers, buffer, &info);
    if (!info.reachable) return false;
    kl_peer_buffer_handles(l->buffers, &info, &handles);
    *offer = (struct offer){.at = info.at[KL_PEER_BUFFER_SEND],
                            .epoch = info.epoch,
                            .block = info.block[KL_PEER_BUFFER_SEND],
                            .handle = handles.handle[KL_PEER_BUFFER_SEND]};
    return true;
}

static struct offer offer_read(const struct kl_zcopy_offers *l, const void *data)
{
    return (struct offer){.at = (uint64_t)(uintptr_t)data, .block = NO_BLOCK, .owner = kl_cma_self(&l->zcopy.process)};
}

/* The offer of either kind that is possible; false: none is. */
static bool make(const struct kl_zcopy_offers *l, struct kl_zcopy_offer_peer *p, const void *data, size_t bytes,
                 struct offer *offer)
{
    if (l->zcopy.maps && bytes >= mapped_least(l) && may_try(p, KL_ZCOPY_MAPPED) && offer_mapped(l, data, offer)) {
        p->kind = KL_ZCOPY_MAPPED;
        return true;
    }
    if (!l->reads || !may_try(p, KL_ZCOPY_READ)) return false;
    p->kind = KL_ZCOPY_READ;
    *offer = offer_read(l, data);
    return true;
}

bool kl_zcopy_offer_make(struct kl_zcopy_offers *l, int peer, struct kl_fifo_tx *tx, const void *data, size_t bytes,
                         bool more)
{
    if (bytes < KL_ZCOPY_LEAST || (!l->zcopy.maps && !l->reads) || !is_open(l)) return false;
    if (!make(l, &l->peers[peer], data, bytes, kl_fifo_next_payload(tx))) return false;
    kl_fifo_publish_zcopy(tx, bytes, more);
    return true;
}

void kl_zcopy_offer_ended(struct kl_zcopy_offers *l, int peer, bool declined)
{
    struct kl_zcopy_offer_peer *p = &l->peers[peer];

    if (!declined)
        p->refusals[p->kind] = 0;
    else if (may_try(p, p->kind))
        p->refusals[p->kind]++;
}

/* ---- staged or read ---- */

/* One launch of so many looks at how long lines take. */
static void watch_lines(struct kl_zcopy_offers *l)
{
    uint32_t number;

    if (++l->launches % WATCHED || kl_select_says(&l->select->facts, KL_SELECT_FIXED)) return;
    const uint32_t line_ns = kl_copy_out_latest(&number);
    if (kl_line_watch(&l->watch, l->select->line_ns[1], line_ns, number, kl_now_coarse_ns()))
        kl_select_remake(l->select, line_ns, true);
}

void kl_zcopy_offers_begin(struct kl_zcopy_offers *l, size_t bytes, size_t messages, size_t received)
{
    l->reads = l->nt = false;
    if (!l->select) return;
    const size_t sent = bytes * messages, all = sent > received ? sent : received;
    const struct kl_select_row *row =
        kl_select_row(l->select, messages > FEW ? KL_SELECT_MANY : KL_SELECT_FEW, all, KL_BUFFERS_ORDINARY);
    if (all < KL_ZCOPY_LEAST) return;
    l->nt = row->nt;
    watch_lines(l);
    if (bytes < KL_ZCOPY_LEAST || (!received && bytes <= STAGED_AHEAD)) return;
    l->reads = l->zcopy.reads && row->copy == KL_COPY_KERNEL;
}

/* ---- the receiver ---- */

enum kl_zcopy_offer_state kl_zcopy_offer_find(struct kl_zcopy_offers *l, int peer, const struct kl_fifo_rx *rx,
                                              size_t bytes, struct kl_zcopy_offer_data *data)
{
    struct offer offer;

    memcpy(&offer, kl_fifo_payload(rx), sizeof offer);
    if (!is_open(l)) return KL_ZCOPY_LOST;
    if (offer.block == NO_BLOCK) {
        *data = (struct kl_zcopy_offer_data){.there = offer.at, .owner = offer.owner, .seen = &l->peers[peer].seen};
        return KL_ZCOPY_HERE;
    }
    if (offer.block >= KL_PEER_BUFFER_BLOCKS) return KL_ZCOPY_LOST;
    struct kl_peer_buffer_info info = kl_peer_buffer_info_of(KL_PEER_BUFFER_SEND, offer.at, offer.epoch, offer.block);
    struct kl_peer_buffer_handles handles = {.handle[KL_PEER_BUFFER_SEND] = offer.handle};
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = kl_peer_buffer_import(l->buffers, peer, &info, &handles, kl_deadline_in_ms(TIMEOUT_MS));

    kl_error_quiet(quiet);
    if (rc == ncclInProgress) return KL_ZCOPY_NOT_YET;
    data->here = rc ? NULL : kl_peer_buffer_find(l->buffers, peer, &info, KL_PEER_BUFFER_SEND, bytes);
    return data->here ? KL_ZCOPY_HERE : KL_ZCOPY_LOST;
}
