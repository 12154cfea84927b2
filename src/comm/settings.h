/* SPDX-License-Identifier: Apache-2.0 */
/**
 * settings.h - the users' settings, compared among the ranks of a new communicator.
 *
 * A rank's record (transport/peer.h) holds a hash of the settings that have to be alike on all ranks (KL_ALIKE in the
 * tables of parameters, and of ncclConfig_t), and one of the settings that have to be alike on a host (KL_HOST_ALIKE).
 * Only where hashes differ, the settings themselves are exchanged, so that every rank reports which differ, where, and
 * how.
 *
 * Threads: any; kl_comm_check_settings is an exchange of the bootstrap.
 */
#ifndef KL_COMM_SETTINGS_H
#define KL_COMM_SETTINGS_H

#include "base/param.h"
#include "include/nccl.h"
#include "transport/peer.h"

struct kl_wish;

/** The parameters of every module; ends with NULL. */
extern const struct kl_param_set *const kl_comm_param_sets[];

/** Hash of all settings in force with this scope; numbers count by value, texts as they are written. */
uint64_t kl_comm_settings_hash(const struct kl_wish *wish, enum kl_param_scope scope);

/**
 * Are the ranks with these records alike as they have to be? If not, all of them fail: ncclInvalidUsage, naming
 * settings, values and ranks. Every rank calls it.
 */
ncclResult_t kl_comm_check_settings(ncclComm_t comm, const struct kl_peer *peers);

#endif
