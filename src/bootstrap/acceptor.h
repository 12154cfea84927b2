/* SPDX-License-Identifier: Apache-2.0 */
/**
 * acceptor.h - who waits for authenticated connections: many, behind few listening sockets.
 *
 * An acceptor is of a rank, or a root. A caller's hello says whom it wants: a connection type, a rank, and the name of the job
 * (kl_id_name). That only chooses whose key its proof is tried with; nothing else of it counts before the proof was right.
 * The event loop accepts, plays the host's part of the handshake, and hands over the connections that prove themselves.
 * Others are dropped: at once when they speak something else, after 5 seconds when they say nothing, and the oldest first
 * when there are more in the middle of it than KL_INCOMING_MAX and those who are expected. Whoever was dropped for lack of
 * room tries again. Who wants an acceptor that has no key yet waits for that.
 *
 * A fixed port has one acceptor, whatever name a caller asks for: another name is another secret.
 *
 * Threads:  create, open and close from any thread, without a lock that callbacks may be waiting for; callbacks come from the
 *           event loop.
 */
#ifndef KL_BOOTSTRAP_ACCEPTOR_H
#define KL_BOOTSTRAP_ACCEPTOR_H

#include "bootstrap/handshake.h"
#include "event/loop.h"
#include "os/address.h"

/** Connections of the process in the middle of a handshake: room for strangers, and for the early callers of each. */
#define KL_INCOMING_MAX(acceptors) (256 + 32 * (acceptors))

struct kl_acceptor;
struct kl_incoming;

/**
 * Someone with a right proof is here, and wants us. The callback calls exactly one of kl_incoming_admit and
 * kl_incoming_decline, and does not close the acceptor.
 */
typedef void kl_acceptor_fn(void *ctx, struct kl_incoming *incoming);

/**
 * Listen on `*n` addresses, whose ports become known. One that this host cannot use at the moment (an IPv6 address that is still
 * being checked, say) is taken off the list, as long as another is left. `me` is our hello: version, type, rank (its `from`)
 * and name. Errors: ncclSystemError, when a given port is taken, say.
 */
ncclResult_t kl_acceptor_create(struct kl_loop *loop, union kl_address *addresses, int *n, const struct kl_hello *me,
                                kl_acceptor_fn *fn, void *ctx, struct kl_acceptor **acceptor);

/** Begin to accept who proves to hold `key`. */
void kl_acceptor_open(struct kl_acceptor *acceptor, const struct kl_key *key);

/** So many may call at the same time: there is room for them among those in the middle of a handshake. On the event loop. */
void kl_acceptor_expect(struct kl_acceptor *acceptor, int callers);

/** Was somebody turned away who wanted this acceptor? Then where the last one called from, and why, in words. NULL is fine. On the event loop. */
bool kl_acceptor_has_declined(const struct kl_acceptor *acceptor, char *text, size_t size);

/** Free; no callbacks afterwards. NULL is fine. */
void kl_acceptor_close(struct kl_acceptor *acceptor);

/** The caller's rank, as it says. */
uint32_t kl_incoming_rank(const struct kl_incoming *incoming);

/** Its socket, for who asks where it comes from. */
int kl_incoming_fd(const struct kl_incoming *incoming);

/**
 * Let it in; the connection is the callee's from now on. False: there is none, as the caller has gone meanwhile, or with errno EMFILE,
 * as this process has no descriptor left, which the caller has been told.
 */
bool kl_incoming_admit(struct kl_incoming *incoming, struct kl_connection *connection);

void kl_incoming_decline(struct kl_incoming *incoming, enum kl_handshake_outcome outcome);

#endif
