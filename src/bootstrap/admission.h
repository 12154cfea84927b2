/* SPDX-License-Identifier: Apache-2.0 */
/**
 * admission.h - access control for a rendezvous with a public key: host:port without KOLO_SECRET.
 *
 * This host is admitted; others only if KOLO_OPEN_TO lists them by address or network
 * (10.99.0.0/24,fd00::/8,192.0.2.7), or is 1 for all.
 *
 * Threads: any.
 */
#ifndef KL_BOOTSTRAP_ADMISSION_H
#define KL_BOOTSTRAP_ADMISSION_H

#include "include/nccl.h"
#include "os/address.h"

#include <stdbool.h>

/** Does the list admit all hosts? */
bool kl_admission_is_open(const char *list);

/** Is every item of the list an address or a network? Else ncclInvalidArgument, with the item in the sentence. */
ncclResult_t kl_admission_check(const char *list);

/** Is the other end of a connection between these addresses admitted? */
bool kl_admission_allows(const char *list, union kl_address here, union kl_address there);

#endif
