/* SPDX-License-Identifier: Apache-2.0 */
/** request.h - a caller's request, checked and copied. */
#ifndef KL_KOLOPLAN_REQUEST_H
#define KL_KOLOPLAN_REQUEST_H

#include "include/koloplan.h"
#include "plan/cluster.h"

struct kl_plan_texts; /* the copies */

/** ncclInvalidArgument for a request that is malformed. On success free `texts` (kl_plan_texts_free) after the last use of `request`. */
ncclResult_t kl_plan_request_copy(const koloplanRequest_t *from, struct kl_cluster_request *request,
                                  struct kl_plan_texts **texts);
void kl_plan_texts_free(struct kl_plan_texts *texts);

/** Is this the name of standard input, which belongs to the program? */
bool kl_plan_is_stdin(const char *path);

#endif
