/* SPDX-License-Identifier: Apache-2.0 */
/** nics_make.h - shared by the nics*.c. Private to them. */
#ifndef KL_PLAN_NICS_MAKE_H
#define KL_PLAN_NICS_MAKE_H

#include "plan/nics.h"
#include "plan/plan.h"

/** The inputs. */
struct kl_nics_source {
    const struct kl_cluster *cluster;
    const struct kl_plan *plan;
    const struct kl_topo *whole; /* host 0 untrimmed */
    const struct kl_xml *document;
};

/** The channels of each NIC (nics_use.c). */
ncclResult_t kl_nics_find_use(const struct kl_nics_source *source, struct kl_nics *nics);

/** NICs that are not used, look like one, or could be one (nics_why.c). */
ncclResult_t kl_nics_find_why(const struct kl_nics_source *source, struct kl_nics *nics);

#endif
