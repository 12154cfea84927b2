/* SPDX-License-Identifier: Apache-2.0 */
/** jobid.h - a unique id as text, the form in which KOLO_COMM_ID carries it: two hex digits per byte. */
#ifndef KOLO_TOOL_JOBID_H
#define KOLO_TOOL_JOBID_H

#include "include/nccl.h"

enum { KL_JOBID_TEXT = 2 * NCCL_UNIQUE_ID_BYTES + 1 }; /* with the final zero */

void kl_jobid_print(const ncclUniqueId *id, char text[KL_JOBID_TEXT]);

/** -1: not exactly 256 hex digits; `*id` is then untouched. */
int kl_jobid_parse(const char *text, ncclUniqueId *id);

#endif
