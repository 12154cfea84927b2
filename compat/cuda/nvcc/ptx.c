/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/translate.h"

uint32_t translate_asm(struct translation *t, uint32_t i)
{
    source_error(&t->source, i, "this PTX has no translation");
    return i;
}
