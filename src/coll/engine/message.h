/* SPDX-License-Identifier: Apache-2.0 */
/**
 * message.h - one send or one receive: a message cut into fifo steps. Resumable, allocates nothing.
 *
 * A message has at least one step, also when it is empty, and marks in each whether more follow, so that a receive of
 * another count or type than the send is an error and not a hang. Between ranks of one address space long messages are
 * not copied: the receiver reads the sender's buffer. Between processes they may be offered likewise (zcopy_offer.h); else they
 * go through slots of the sender's pool.
 *
 * Errors:  ncclInvalidUsage when counts or types differ.
 * Threads: one at a time.
 */
#ifndef KL_COLL_ENGINE_MESSAGE_H
#define KL_COLL_ENGINE_MESSAGE_H

#include "coll/zcopy/zcopy_offer.h"
#include "device/host/stream.h"
#include "transport/transport.h"

struct kl_message {
    char *data; /* read only for a send */
    size_t bytes;
    size_t moved; /* bytes handed over or received so far */
    size_t
        offered; /* bytes of the last of these, offered and not returned yet; for a receive: of the step that it copies */
    bool accepted;      /* offers of it were accepted */
    bool declined;      /* or one was not: no more are made */
    uint64_t signature; /* kl_message_signature */
    bool ended;         /* the last step is done */
    bool of_gpu;        /* `data` is memory of a GPU: the connector moves it (use_gpu), and no step is copied */
    bool in_use;
};

/**
 * Do all of a message of up to two slots of the fifo at once, when it begins; or nothing: then it continues as any
 * other. The connector is ready, and its transport moves by itself.
 */
bool kl_message_try_send(struct kl_connector *connector, const void *data, size_t bytes, uint64_t signature);
bool kl_message_try_recv(struct kl_connector *connector, void *data, size_t bytes, uint64_t signature);

/** The connector is ready. DONE: the buffer may be reused. `offers`: this rank's. */
enum kl_progress kl_message_send(struct kl_message *message, struct kl_connector *connector,
                                 struct kl_zcopy_offers *offers);

/** Tell a connector that can place data the address of the next ones. */
void kl_message_set_target(const struct kl_message *message, struct kl_connector *connector);

/** *rc is set on failure, with DONE. */
enum kl_progress kl_message_recv(struct kl_message *message, struct kl_connector *connector,
                                 struct kl_zcopy_offers *offers, ncclResult_t *rc);

/** Does the message wait for a peer that has freed its communicator? */
bool kl_message_waits_for_departed(const struct kl_message *message, struct kl_connector *connector);

#endif
