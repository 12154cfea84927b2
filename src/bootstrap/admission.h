/* SPDX-License-Identifier: Apache-2.0 */
/**
 * admission.h - who may come to a rendezvous whose key everybody knows: host:port without KOLO_SECRET.
 *
 * This host may; others only if KOLO_OPEN_TO says so, a list of addresses and networks (10.99.0.0/24,fd00::/8,192.0.2.7), or 1 for all.
 *
 * Threads: any.
 */
#ifndef KL_BOOTSTRAP_ADMISSION_H
#define KL_BOOTSTRAP_ADMISSION_H

#include "include/nccl.h"
#include "os/address.h"

#include <stdbool.h>

/** Does the list admit everybody? */
bool kl_admission_is_open(const char *list);

/** Is every item of the list an address or a network? Else ncclInvalidArgument, with the item in the sentence. */
ncclResult_t kl_admission_check(const char *list);

/** May the other end of a connection between these addresses come? */
bool kl_admission_allows(const char *list, union kl_address here, union kl_address there);

#endif
