/* SPDX-License-Identifier: Apache-2.0 */
/* Features of GPUs only are refused at their place in the source, with the remedy, instead of by errors of the compiler. */
#include "compat/cuda/nvcc/translation.h"

static const char texture_functions[] = " texCubemap texCubemapLayered tex1DGrad tex2DGrad tex3DGrad tex2Dgather ";

/* A name of the program's own: of a member, of a namespace, or being declared. */
static bool is_own(const struct tokens *k, uint32_t i)
{
    return i && (token_among(k, i - 1, " . -> :: * & ") || (token_is_name(k, i - 1) && !token_is(k, i - 1, "return")));
}

void refuse_name(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    bool type = !in_code(t) && token_is(k, i, "texture") && token_is(k, i + 1, "<") && i == t->statement,
         function = in_device_code(t) && token_among(k, i, texture_functions) && token_among(k, i + 1, " < ( ") &&
                    !is_own(k, i);

    if (type || function)
        source_error(&t->source, i,
                     type ? "texture references are gone since CUDA 12: use a texture object"
                          : "cube maps, gathers and gradients of textures need a GPU: use tex2D and its kind");
}
