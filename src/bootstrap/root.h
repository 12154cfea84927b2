/* SPDX-License-Identifier: Apache-2.0 */
/**
 * root.h - the rendezvous behind an id: receives every rank's announcement, then introduces the ranks to each other.
 *
 * It runs on the event loop of the process that made the id, or of rank 0, and keeps each rank's connection open to
 * answer on it. When all have announced, it stops listening, sends each rank its partners' address records, and ends.
 * Contradicting announcements, a rank whose connection ends, and ranks missing at the earliest deadline are failures:
 * all ranks that announced, or do so later, are told the ranks and the reason. A failed root stays until all ranks have
 * been told, for as long as they were willing to wait.
 */
#ifndef KL_BOOTSTRAP_ROOT_H
#define KL_BOOTSTRAP_ROOT_H

#include "bootstrap/id.h"
#include "os/rendezvous_file.h"

struct kl_root;

/**
 * Listen on the id's addresses, whose ports become known. `root` NULL: kl_root_stop will not be called.
 * Errors: ncclSystemError, for example if a port is taken.
 */
ncclResult_t kl_root_start(struct kl_id *id, struct kl_root **root);

/**
 * Rank 0, which holds the root, does not join; the reason is the calling thread's last sentence. All ranks are told
 * that, or an earlier failure. Returns when all have been told, or at the deadline; unless rank 0 has `announced`
 * itself, it counts as told. No effect if they have been introduced. NULL is fine.
 */
void kl_root_give_up(struct kl_root *root, bool announced, uint64_t deadline);

/**
 * `rank`, which has not announced itself, does not join; the reason is the calling thread's last sentence. Tells the
 * ranks that wait at this process's root of the id, if there is one.
 */
void kl_root_decline(const struct kl_id *id, int rank);

/**
 * The root of the id in this process takes over the file in which ranks find the id, and removes it before it answers
 * any rank: so a rank that has its answer and looks for the id of the next job never finds this one. If there is no
 * root, the file is removed at once. NULL: remove the file that the root has.
 */
void kl_root_own_file(const struct kl_id *id, struct kl_rendezvous_file *file);

/** End it, if it has not ended by itself; its addresses are free when this returns. NULL is fine. */
void kl_root_stop(struct kl_root *root);

#endif
