/* SPDX-License-Identifier: Apache-2.0 */
/** cuda_awbarrier_primitives.h - barriers in shared memory whose arrivals give tokens to wait with. */
#ifndef KOLO_CUDA_AWBARRIER_PRIMITIVES_H
#define KOLO_CUDA_AWBARRIER_PRIMITIVES_H

#include "cuda_runtime.h"
#include "kolo_cuda/arrivals.h"

typedef uint64_t __mbarrier_t;
typedef uint64_t __mbarrier_token_t;

static inline uint32_t __mbarrier_maximum_count()
{
    return (uint32_t)__kolo::arrivals::most;
}
static inline void __mbarrier_init(__mbarrier_t *barrier, uint32_t count)
{
    __kolo::arrivals::init(barrier, count);
}
static inline void __mbarrier_inval(__mbarrier_t *)
{
}
static inline __mbarrier_token_t __mbarrier_arrive(__mbarrier_t *barrier)
{
    return __kolo::arrivals::change(barrier, 1);
}
static inline __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t *barrier)
{
    return __kolo::arrivals::change(barrier, 1, 1);
}
static inline bool __mbarrier_test_wait(__mbarrier_t *barrier, __mbarrier_token_t token)
{
    return __kolo::arrivals::ended(barrier, token);
}
static inline bool __mbarrier_test_wait_parity(__mbarrier_t *barrier, bool parity)
{
    return __kolo::arrivals::ended_parity(barrier, parity);
}
static inline bool __mbarrier_try_wait(__mbarrier_t *barrier, __mbarrier_token_t token, uint32_t = 0)
{
    return __kolo::arrivals::ended(barrier, token);
}
static inline bool __mbarrier_try_wait_parity(__mbarrier_t *barrier, bool parity, uint32_t = 0)
{
    return __kolo::arrivals::ended_parity(barrier, parity);
}
static inline uint32_t __mbarrier_token_pending_count(__mbarrier_token_t token)
{
    return (uint32_t)__kolo::arrivals::pending(token);
}

#endif
