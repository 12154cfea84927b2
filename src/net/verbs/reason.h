/* SPDX-License-Identifier: Apache-2.0 */
/** reason.h - statuses of completions and errors of queue pairs, in words: their likely causes. Pure. */
#ifndef KL_NET_VERBS_REASON_H
#define KL_NET_VERBS_REASON_H

/** "a wrong GID, no route ..." of a status (enum kl_ibv_status): a cause, without a full stop. */
const char *kl_verbs_status_cause(int status);

/** The same of the errno of a queue pair that could not be connected. */
const char *kl_verbs_connect_cause(int err);

#endif
