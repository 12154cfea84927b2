/* SPDX-License-Identifier: Apache-2.0 */
/**
 * session_params.h - the parameters that the two ends of a connection agree on, sent right behind the proof of bootstrap/handshake.h,
 * and the handle by which the sender finds the listener.
 *
 *      sender                                    listener
 *        hello                             --->
 *                                          <---        hello
 *        proof, params                     --->
 *                                          <---        answer, params
 *
 * Both sides' parameters are authenticated with the session's key, derived from the communicator's secret and both hellos: they
 * cannot be forged, nor replayed at another time or on another socket.
 */
#ifndef KL_NET_SOCKET_SESSION_PARAMS_H
#define KL_NET_SOCKET_SESSION_PARAMS_H

#include "bootstrap/handshake.h"
#include "net/net.h"
#include "os/address.h"

enum { KL_SESSION_PARAMS_BODY = 32, KL_SESSION_PARAMS_BYTES = KL_SESSION_PARAMS_BODY + KL_PROOF_BYTES, KL_GROUP = 16 };

struct kl_session_params {
    bool crypt;
    bool both_ways;   /* the listener may send over this connection, too; set by the sender, repeated by the listener */
    unsigned ciphers; /* sender: all it has; listener: the chosen one, KL_CIPHER_PLAIN without encryption */
    unsigned lane, lanes;          /* this socket is number `lane` of 1 + `lanes` */
    unsigned char group[KL_GROUP]; /* identifies the connection that its sockets belong to; random, not a secret */
};

/** The key for the handshake. */
struct kl_key kl_session_params_handshake_key(const struct kl_key *secret);

/** The key of a socket, from a handshake with both hellos. */
struct kl_key kl_session_params_session_key(const struct kl_handshake *handshake);

void kl_session_params_encode(const struct kl_session_params *params, const struct kl_key *session, enum kl_side side,
                              unsigned char wire[KL_SESSION_PARAMS_BYTES]);

/** False: not authentic, or not valid in this version. Silent. */
bool kl_session_params_decode(const unsigned char wire[KL_SESSION_PARAMS_BYTES], const struct kl_key *session,
                              enum kl_side side, struct kl_session_params *params);

void kl_session_params_put_handle(const union kl_address *address, struct kl_net_handle *handle);

/** False: not a handle of a socket listener of this version. Silent. */
bool kl_session_params_get_handle(const struct kl_net_handle *handle, union kl_address *address);

#endif
