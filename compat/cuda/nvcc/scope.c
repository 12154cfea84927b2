/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/translate.h"

bool in_code(const struct translation *t)
{
    return t->depth && t->scopes[t->depth - 1].kind == SCOPE_CODE;
}

bool in_device_code(const struct translation *t)
{
    return in_code(t) && t->scopes[t->depth - 1].device;
}

bool in_device_code_only(const struct translation *t)
{
    return in_device_code(t) && !t->scopes[t->depth - 1].host;
}
