/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/codes.h"

#include "graph/graph.h"
#include "graph/names.h"

const char *kl_attempt_end_code(int end)
{
    static const char *const codes[] = {
        [KL_ATTEMPT_PERFECT] = "perfect",
        [KL_ATTEMPT_EXHAUSTED] = "exhausted",
        [KL_ATTEMPT_TIMEOUT] = "timeout",
        [KL_ATTEMPT_PRUNED] = "hopeless",
    };

    return KL_NAME_IN(codes, end);
}

const char *kl_relaxation_code(int relaxation)
{
    static const char *const codes[] = {
        [KL_RELAX_NONE] = "none",
        [KL_RELAX_SAME_CHANNELS] = "same_channels",
        [KL_RELAX_PATTERN] = "pattern",
        [KL_RELAX_TYPE_INTRA] = "type_intra",
        [KL_RELAX_TYPE_INTER] = "type_inter",
        [KL_RELAX_CROSS_NIC] = "cross_nic",
        [KL_RELAX_SPEED] = "speed",
        [KL_RELAX_FASTER] = "faster",
    };

    return KL_NAME_IN(codes, relaxation);
}

const char *kl_search_end_code(int end)
{
    static const char *const codes[] = {
        [KL_END_INJECTED] = "injected",   [KL_END_NOT_ASKED] = "not_asked", [KL_END_PERFECT] = "perfect",
        [KL_END_SATURATED] = "saturated", [KL_END_BUDGET] = "budget",       [KL_END_SLOW] = "slow",
        [KL_END_FALLBACK] = "fallback",
    };

    return KL_NAME_IN(codes, end);
}

const char *kl_doubling_code(int doubling)
{
    static const char *const codes[] = {
        [KL_DOUBLING_NOT_ASKED] = "not_asked", [KL_DOUBLING_DONE] = "done",     [KL_DOUBLING_HEADS] = "heads",
        [KL_DOUBLING_SLOW] = "slow",           [KL_DOUBLING_ENOUGH] = "enough", [KL_DOUBLING_FULL] = "full",
    };

    return KL_NAME_IN(codes, doubling);
}
