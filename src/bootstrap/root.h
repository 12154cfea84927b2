/* SPDX-License-Identifier: Apache-2.0 */
/**
 * root.h - the rendezvous behind an id: hears every rank's announcement, then introduces them to each other.
 *
 * It lives on the event loop of the process that made the id, or of rank 0, and keeps each rank's connection open to
 * answer on it. When all have announced, it stops listening, sends each rank the cards of its partners, and is gone.
 * Announcements that contradict each other, a rank that is gone again, and ranks that are missing when the first of those
 * waiting loses patience are failures: everybody who announced, or does so later, is told which ranks and why. A failed
 * root stays for that until all ranks have been told, for as long as they were willing to wait.
 */
#ifndef KL_BOOTSTRAP_ROOT_H
#define KL_BOOTSTRAP_ROOT_H

#include "bootstrap/id.h"
#include "os/rendezvous_file.h"

struct kl_root;

/**
 * Listen on the id's addresses, whose ports become known. `root` NULL: nobody will stop it. Errors: ncclSystemError, when
 * a port is taken.
 */
ncclResult_t kl_root_start(struct kl_id *id, struct kl_root **root);

/**
 * Rank 0, which holds it, does not join, for the reason that the calling thread's last sentence says: everybody hears
 * that, or of the failure that came before. Returns when all ranks have, or at the deadline; unless it has `announced`
 * itself, nobody waits for it to hear. Nothing happens if they have been introduced. NULL is fine.
 */
void kl_root_give_up(struct kl_root *root, bool announced, uint64_t deadline);

/**
 * `rank`, which has not announced itself, does not join, for the reason that the calling thread's last sentence says: who
 * waits at this process's root of the id, if there is one, hears it.
 */
void kl_root_decline(const struct kl_id *id, int rank);

/**
 * The root of this process that is behind the id owns the file, in which ranks find the id, and removes it before any rank hears that all
 * have come, or that one does not: so who has heard, and looks for the id of the next job, never finds this one. Without a root, any
 * more, the file is removed at once. NULL: remove the one it has.
 */
void kl_root_own_file(const struct kl_id *id, struct kl_rendezvous_file *file);

/** End it, if it has not ended by itself; its addresses are free when this returns. NULL is fine. */
void kl_root_stop(struct kl_root *root);

#endif
