/* SPDX-License-Identifier: Apache-2.0 */
/** bottleneck.h - the narrowest links of a path. */
#ifndef KL_PLAN_BOTTLENECK_H
#define KL_PLAN_BOTTLENECK_H

#include "topo/topo.h"

/** GB/s of the narrowest link of a path; not always the path's own, which counts links the other way. 0 without links. */
float kl_path_narrowest(const struct kl_topo *t, const struct kl_path *p);

/** Is a link of a path its bottleneck: as narrow as any of them, and narrower than some? */
bool kl_path_is_bottleneck(const struct kl_topo *t, const struct kl_path *p, int link);

#endif
