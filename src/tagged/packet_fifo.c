/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet is a head and its data, in one piece, at a multiple of 8 bytes. One that does not fit before the end of the
 * memory begins at its start again, behind a head without data that says so.
 *
 * Memory order: tail is stored behind a packet, and loaded before it is read; head likewise for its memory. A sender
 * stores tail and then loads `watched`, a receiver stores `watched` and then loads tail, all sequentially consistent:
 * one of the two sees the other's store, so no packet stays without a reader.
 */
#include "tagged/packet_fifo.h"

#include <string.h>

enum { ALIGNMENT = 8 };

struct packet_head {
    uint32_t bytes; /* GAP: none, up to the end of the memory */
    uint32_t before;
};

#define GAP UINT32_MAX

static size_t length_of(size_t bytes)
{
    return sizeof(struct packet_head) + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

bool kl_packet_fifo_put(struct kl_packet_fifo *f, uint32_t before, const void *head, size_t head_bytes,
                        const void *data, size_t bytes)
{
    const size_t all = head_bytes + bytes, length = length_of(all);

    if (all > KL_PACKET_FIFO_LARGEST) return false;
    uint64_t tail = kl_load_relaxed(&f->tail); /* this thread's */
    size_t at = tail % KL_PACKET_FIFO_BYTES, left = KL_PACKET_FIFO_BYTES - at, gap = left < length ? left : 0;
    uint64_t used = tail - kl_load_acquire(&f->head); /* pairs with take: the memory was read */
    if (used > KL_PACKET_FIFO_BYTES || gap + length > KL_PACKET_FIFO_BYTES - used) return false;

    if (gap) {
        *(struct packet_head *)(void *)(f->data + at) = (struct packet_head){.bytes = GAP};
        at = 0;
    }
    *(struct packet_head *)(void *)(f->data + at) = (struct packet_head){.bytes = (uint32_t)all, .before = before};
    memcpy(f->data + at + sizeof(struct packet_head), head, head_bytes);
    if (bytes) memcpy(f->data + at + sizeof(struct packet_head) + head_bytes, data, bytes);
    (void)kl_swap_seq_cst(&f->tail, tail + gap + length);
    return true;
}

bool kl_packet_fifo_must_call(struct kl_packet_fifo *f)
{
    uint32_t unwatched = KL_FIFO_UNWATCHED;

    return kl_load_seq_cst(&f->watched) == unwatched && kl_cas_acq_rel(&f->watched, &unwatched, KL_FIFO_CALLED);
}

bool kl_packet_fifo_first(struct kl_packet_fifo *f, struct kl_packet *packet, bool *broken)
{
    uint64_t head = kl_load_relaxed(&f->head), here = kl_load_seq_cst(&f->tail) - head;
    size_t at = head % KL_PACKET_FIFO_BYTES, left = KL_PACKET_FIFO_BYTES - at;

    *broken = here > KL_PACKET_FIFO_BYTES || here % ALIGNMENT;
    if (*broken || !here) return false;
    struct packet_head h = {.bytes = kl_read_once(&((struct packet_head *)(void *)(f->data + at))->bytes)};
    if (h.bytes == GAP) {
        *broken = here <= left;
        head += left;
        here -= left;
        left = KL_PACKET_FIFO_BYTES;
        at = 0;
        if (*broken) return false;
        h.bytes = kl_read_once(&((struct packet_head *)(void *)f->data)->bytes);
    }
    h.before = kl_read_once(&((struct packet_head *)(void *)(f->data + at))->before);
    *broken = h.bytes > KL_PACKET_FIFO_LARGEST || length_of(h.bytes) > here || length_of(h.bytes) > left;
    if (*broken) return false;
    *packet = (struct kl_packet){
        .data = f->data + at + sizeof h, .bytes = h.bytes, .before = h.before, .end = head + length_of(h.bytes)};
    return true;
}

void kl_packet_fifo_take(struct kl_packet_fifo *f, const struct kl_packet *packet)
{
    kl_store_release(&f->head, packet->end); /* pairs with put: the packet was read */
}

void kl_packet_fifo_watch(struct kl_packet_fifo *f, bool watches)
{
    (void)kl_swap_seq_cst(&f->watched, watches ? KL_FIFO_WATCHED : KL_FIFO_UNWATCHED);
}
