/* SPDX-License-Identifier: Apache-2.0 */
/** aside.h - kinds of control messages between the observers of a communicator (kl_bootstrap_aside): the first byte is
 * the kind. */
#ifndef KL_COMM_WATCH_ASIDE_H
#define KL_COMM_WATCH_ASIDE_H

enum kl_aside {
    KL_ASIDE_CLOCK_ASK = 1, /* clock.c */
    KL_ASIDE_CLOCK_ANSWER,
    KL_ASIDE_STATUS_ASK, /* gather.c */
    KL_ASIDE_STATUS_ANSWER,
};

#endif
