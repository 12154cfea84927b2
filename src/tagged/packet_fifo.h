/* SPDX-License-Identifier: Apache-2.0 */
/**
 * packet_fifo.h - packets from one rank to another one, in memory that both map.
 *
 * The receiver reads packets in place. Each has a number beside its data: the packets that its sender had sent another
 * way before it. A receiver that looks at the fifo without being called says so in `watched`; else its sender calls it.
 *
 * Contents: zero at first. The sender is not trusted: a reader checks each number that it uses.
 * Threads:  one sender and one receiver at a time.
 */
#ifndef KL_TAGGED_PACKET_FIFO_H
#define KL_TAGGED_PACKET_FIFO_H

#include "base/atomic.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_PACKET_FIFO_BYTES = 64 << 10 };                        /* of packets that wait */
enum { KL_PACKET_FIFO_LARGEST = KL_PACKET_FIFO_BYTES / 2 - 64 }; /* bytes of a packet */

enum kl_packet_fifo_watch { KL_FIFO_UNWATCHED, KL_FIFO_WATCHED, KL_FIFO_CALLED };

struct kl_packet_fifo {
    alignas(KL_LINE) _Atomic uint64_t tail;    /* bytes written; the sender's */
    alignas(KL_LINE) _Atomic uint64_t head;    /* bytes read; the receiver's */
    alignas(KL_LINE) _Atomic uint32_t watched; /* enum kl_packet_fifo_watch */
    alignas(KL_LINE) unsigned char data[KL_PACKET_FIFO_BYTES];
};

/** A packet that was found. */
struct kl_packet {
    const unsigned char *data; /* in the fifo, until it is taken */
    size_t bytes;
    uint32_t before;
    uint64_t end;
};

/** False: there is no room, or the packet is too large. */
bool kl_packet_fifo_put(struct kl_packet_fifo *fifo, uint32_t before, const void *head, size_t head_bytes,
                        const void *data, size_t bytes);

/** Sender, behind a put: does the receiver have to be called? At most once until it has come. */
bool kl_packet_fifo_must_call(struct kl_packet_fifo *fifo);

/** Is there a packet? May miss one that is being put. Any thread of the receiver's. */
static inline bool kl_packet_fifo_is_empty(struct kl_packet_fifo *fifo)
{
    return kl_load_relaxed(&fifo->tail) == kl_load_relaxed(&fifo->head);
}

/** The first packet. False: there is none, or the contents are `*broken`. */
bool kl_packet_fifo_first(struct kl_packet_fifo *fifo, struct kl_packet *packet, bool *broken);
void kl_packet_fifo_take(struct kl_packet_fifo *fifo, const struct kl_packet *packet);

/** Receiver: from now on it looks by itself, or no longer does; look once more behind the latter. */
void kl_packet_fifo_watch(struct kl_packet_fifo *fifo, bool watches);

#endif
