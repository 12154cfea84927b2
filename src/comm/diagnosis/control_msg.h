/* SPDX-License-Identifier: Apache-2.0 */
/** control_msg.h - kinds of control messages between the observers of a communicator (kl_bootstrap_control_send): the first byte is
 * the kind. */
#ifndef KL_COMM_DIAGNOSIS_CONTROL_MSG_H
#define KL_COMM_DIAGNOSIS_CONTROL_MSG_H

enum kl_control_msg {
    KL_CONTROL_MSG_CLOCK_ASK = 1, /* clock.c */
    KL_CONTROL_MSG_CLOCK_ANSWER,
    KL_CONTROL_MSG_STATUS_ASK, /* gather.c */
    KL_CONTROL_MSG_STATUS_ANSWER,
};

#endif
