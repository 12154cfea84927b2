/* SPDX-License-Identifier: Apache-2.0 */
/**
 * handle.h - the users' handle of a communicator: a number that is looked up, never dereferenced.
 *
 * A communicator has a slot in a registry while it lives. Its handle is a use number of the slot and the slot's number:
 * handles of destroyed communicators, and values that never were handles, are recognised. Each use of a slot has a new
 * number. The slot's word holds it too, and counts the calls that are inside:
 *
 *              63         24 23      8 7      0
 *     word    |    use     | callers  | issuers |    use: odd while a communicator lives in the slot, else even
 *     handle  |    use (63 to 16)     |  slot (15 to 0)
 *
 * A communicator is for one thread at a time: of two threads that issue operations at once, the second is refused.
 *
 * Memory:  slots are reused, never freed: as many as communicators ever lived at once, 128 bytes each.
 * Threads: any. Only opening and releasing take a lock.
 * Fork:    a child finds its parent's communicators, and is refused.
 */
#ifndef KL_COMM_HANDLE_H
#define KL_COMM_HANDLE_H

#include "include/nccl.h"

#include <stdbool.h>

struct ncclComm;

/* ---- for the owner of a communicator ---- */

/** Give it a slot and a handle. */
ncclResult_t kl_handle_open(struct ncclComm *comm);

/** From now on no call can enter. False: another call has ended it. The caller is inside, or the handle is not
 * published yet. */
bool kl_handle_close(struct ncclComm *comm);

/** Wait until all callers have left. */
void kl_handle_drain(struct ncclComm *comm);

/** The slot may be reused: it is closed and drained. Works without a slot. */
void kl_handle_release(struct ncclComm *comm);

/* ---- for calls ---- */

/**
 * The communicator behind a handle; it stays until kl_handle_leave. No living communicator: ncclInvalidArgument. One of a
 * parent process: ncclInvalidUsage. `function` is named in texts.
 */
ncclResult_t kl_handle_enter(ncclComm_t handle, const char *function, struct ncclComm **comm);

/** The same for calls that issue operations, until kl_handle_leave_as_issuer: ncclInvalidUsage while another thread
 * does. */
ncclResult_t kl_handle_enter_as_issuer(ncclComm_t handle, const char *function, struct ncclComm **comm);
void kl_handle_leave_as_issuer(struct ncclComm *comm);

/** The issuer goes on as a caller. */
void kl_handle_end_issuing(struct ncclComm *comm);

/** The same without an error text: NULL if it cannot be entered. */
struct ncclComm *kl_handle_try(ncclComm_t handle);

/** The number of its slot, below 65,536; later ones reuse it. */
unsigned kl_handle_number(const struct ncclComm *comm);

/** As kl_handle_try: the communicator now in the slot. */
struct ncclComm *kl_handle_try_number(unsigned number);

/** The last access to the communicator. */
void kl_handle_leave(struct ncclComm *comm);

/** Call `fn` inside of every communicator of this process, one after the other, including communicators whose init is
 * not over. */
void kl_handle_each(void (*fn)(struct ncclComm *comm, void *ctx), void *ctx);

/** Number of callers inside at this moment. */
unsigned kl_handle_callers(ncclComm_t handle);

#endif
