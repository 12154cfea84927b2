/* SPDX-License-Identifier: Apache-2.0 */
/** progress.h - progress of a link: completions, the peer's state, sleeping. */
#ifndef KL_NET_VERBS_PROGRESS_H
#define KL_NET_VERBS_PROGRESS_H

#include "net/verbs/link.h"

/** Do everything that can be done now. A failure is recorded in the link. */
void kl_verbs_progress(struct kl_verbs_link *l);

/** The same after a sleep on the descriptor, which stays ready for the next one. */
void kl_verbs_progress_again(struct kl_verbs_link *l);

/** The descriptor to sleep on. */
ncclResult_t kl_verbs_sleep_on(struct kl_verbs_link *l, int *fd);

#endif
