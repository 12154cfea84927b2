/* SPDX-License-Identifier: Apache-2.0 */
/**
 * duplex.h - two connections, one each way, over one socket.
 *
 *      rank 0                                   rank 1
 *        sends      o=== messages =======>        receives              connected as usual, with both_ways
 *        receives   <=== KL_HEAD_BACK, messages ===o  sends             its opposite
 *
 * Between two hosts that both send, each message then carries the acknowledgement of the other, which otherwise takes a
 * packet of its own: 1.05 packets for an all-reduce of 8 bytes instead of 1.49, each way.
 *
 * A connection is a sender or a receiver as any other, and uses its half of the lane: the opposite takes the other half
 * over, with its keys and its position in the sequence. A receiver's messages to its sender go through the opposite. An
 * error of one is an error of both. The socket is closed with the second of them; when a sender is freed first, its
 * receiver is told.
 *
 * Threads:  the two connections' caller: one at a time for both.
 */
#ifndef KL_NET_SOCKET_DUPLEX_H
#define KL_NET_SOCKET_DUPLEX_H

#include "net/socket/conn.h"

/** As send_back and recv_back of net.h. */
ncclResult_t kl_duplex_send(struct kl_conn *recv, const struct kl_net_end *me, struct kl_conn **send);
ncclResult_t kl_duplex_recv(struct kl_conn *send, const struct kl_net_end *me, struct kl_conn **recv);

#endif
