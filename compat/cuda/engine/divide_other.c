/* SPDX-License-Identifier: Apache-2.0 */
/* Where integer divisions do not trap (AArch64 gives 0), there is nothing to step over. */
#include "compat/cuda/engine/fault.h"

bool kl_divide_step(void *ucontext)
{
    (void)ucontext;
    return false;
}
