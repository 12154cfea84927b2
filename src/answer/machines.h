/* SPDX-License-Identifier: Apache-2.0 */
/** machines.h - the machines that are known by name (topo/known.h). */
#ifndef KL_ANSWER_MACHINES_H
#define KL_ANSWER_MACHINES_H

#include "include/nccl.h"

#include <stdio.h>

ncclResult_t kl_machines_json(FILE *to);

#endif
