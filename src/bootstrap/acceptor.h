/* SPDX-License-Identifier: Apache-2.0 */
/**
 * acceptor.h - accepts authenticated connections: many acceptors share few listening sockets.
 *
 * An acceptor belongs to a rank, or a root. A caller's hello names a connection type, a rank, and the job (kl_id_name);
 * it only selects the keys that its proof is checked with, and has no other effect before the proof was right. The
 * event loop accepts, plays the host's part of the handshake, and hands over proven connections. Others are closed: at
 * once when they speak another protocol, after 5 seconds of silence, and the oldest first when there are more than
 * KL_INCOMING_MAX plus the expected ones. A caller dropped for lack of room retries. A caller of an acceptor without a
 * key waits for the key.
 *
 * A given port has one acceptor, whatever name a caller asks for: a different name means a different secret.
 *
 * Threads:  create, open and close from any thread, without a lock that callbacks may be waiting for; callbacks come
 *           from the event loop.
 */
#ifndef KL_BOOTSTRAP_ACCEPTOR_H
#define KL_BOOTSTRAP_ACCEPTOR_H

#include "bootstrap/handshake.h"
#include "bootstrap/handshake_io.h"
#include "event/loop.h"
#include "os/address.h"

/** Limit of connections of the process in a handshake: room for strangers, and for each acceptor's early callers. */
#define KL_INCOMING_MAX(acceptors) (KL_HANDSHAKES_MAX + 32 * (acceptors))

struct kl_acceptor;
struct kl_incoming;

/**
 * A caller with a right proof asks for this acceptor. The callback calls exactly one of kl_incoming_admit and
 * kl_incoming_decline, and does not close the acceptor.
 */
typedef void kl_acceptor_fn(void *ctx, struct kl_incoming *incoming);

/**
 * Listen on `*n` addresses, whose ports become known. An address that this host cannot use at the moment (an IPv6
 * address that is still being checked, say) is removed from the list, unless it is the last one. `me` is the host's
 * hello: version, type, rank (its `from`) and name.
 * Errors: ncclSystemError, for example if a given port is taken.
 */
ncclResult_t kl_acceptor_create(struct kl_loop *loop, union kl_address *addresses, int *n, const struct kl_hello *me,
                                kl_acceptor_fn *fn, void *ctx, struct kl_acceptor **acceptor);

/** Begin to accept callers that prove to hold `key`. */
void kl_acceptor_open(struct kl_acceptor *acceptor, const struct kl_key *key);

/** Make room for this many simultaneous callers among the connections in a handshake. On the event loop. */
void kl_acceptor_expect(struct kl_acceptor *acceptor, int callers);

/**
 * Was a caller of this acceptor declined? If so, `text` describes the last one's address and the reason. NULL is fine.
 * On the event loop.
 */
bool kl_acceptor_has_declined(const struct kl_acceptor *acceptor, char *text, size_t size);

/** Free; no callbacks afterwards. NULL is fine. */
void kl_acceptor_close(struct kl_acceptor *acceptor);

/** The caller's rank, as claimed in its hello. */
uint32_t kl_incoming_rank(const struct kl_incoming *incoming);

/** Its socket, for callers that need its addresses. */
int kl_incoming_fd(const struct kl_incoming *incoming);

/**
 * Let it in; the connection is the callee's from now on. False: the caller has gone meanwhile, or with errno EMFILE,
 * this process has no descriptor left, and the caller has been told.
 */
bool kl_incoming_admit(struct kl_incoming *incoming, struct kl_connection *connection);

void kl_incoming_decline(struct kl_incoming *incoming, enum kl_handshake_outcome outcome);

#endif
