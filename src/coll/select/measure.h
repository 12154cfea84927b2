/* SPDX-License-Identifier: Apache-2.0 */
/**
 * measure.h - the machine's profile (graph/profile.h), measured.
 *
 * Once per process: later calls return the same. Some milliseconds at most, of which a second thread spins for a tenth. Fields that could not be measured
 * in that time, or at all (one CPU, no kernel copies), are 0.
 *
 * Threads: any; one measures, the others wait for it.
 */
#ifndef KL_COLL_SELECT_MEASURE_H
#define KL_COLL_SELECT_MEASURE_H

#include "graph/profile.h"

struct kl_profile kl_profile_measured(void);

#endif
