/* SPDX-License-Identifier: Apache-2.0 */
/* The number of a thread in its warp, in a source. */
#include "compat/cuda/nvcc/body.h"

#include <string.h>

const char before_lane[] = " ( , = [ && || ? : ; { return += -= ";
const char behind_lane[] = " ) , ; ] && || ? : } ";

bool token_is_32(const struct tokens *k, uint32_t i)
{
    return token_among(k, i, " 32 32u 32U warpSize 0x20 ");
}

uint32_t lane_end(const struct tokens *k, uint32_t i)
{
    if (!i || !token_is(k, i, "threadIdx") || !token_is(k, i + 1, ".") || !token_is(k, i + 2, "x")) return 0;
    if (token_is(k, i + 3, "%") && token_is_32(k, i + 4) &&
        (token_among(k, i - 1, before_lane) || token_among(k, i - 1, " + < > == != <= >= ")))
        return i + 5;
    if (!token_is(k, i + 3, "&") || !token_among(k, i - 1, before_lane)) return 0;
    if (token_among(k, i + 4, " 31 31u 31U 0x1f 0x1F 0x1fu ") && token_among(k, i + 5, behind_lane)) return i + 5;
    return token_is(k, i + 4, "(") && token_is(k, i + 5, "warpSize") && token_is(k, i + 6, "-") &&
                   token_is(k, i + 7, "1") && token_is(k, i + 8, ")") && token_among(k, i + 9, behind_lane)
               ? i + 9
               : 0;
}
