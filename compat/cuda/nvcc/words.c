/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/translation.h"

static const char specifiers[] =
    " __device__ __host__ __global__ __constant__ __managed__ __grid_constant__ __nv_pure__ __tile_global__ ";
static const char bounds[] = " __launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__ ";

/* Within __attribute__((...)) or [[gnu::...]] words are GNU's own. */
static bool in_attribute(const struct tokens *k, uint32_t i)
{
    if (!i) return false;
    if (token_is(k, i - 1, "::")) return true;
    return token_among(k, i - 1, " ( , ") && i >= 2 && (token_is(k, i - 2, "(") || token_is_name(k, i - 2)) &&
           token_among(k, i + 1, " ) , ");
}

/* Is `inline` there already, or forbidden, as for a lambda? */
static bool needs_inline(const struct tokens *k, uint32_t i)
{
    uint32_t from = i, to = i;

    while (from && token_among(k, from - 1,
                               " __device__ __host__ __global__ static extern constexpr inline __inline__ __inline "))
        from--;
    while (token_among(k, to + 1, " __device__ __host__ static extern constexpr inline __inline__ __inline ")) to++;
    if (from && token_is(k, from - 1, "]")) return false;
    return find_outside(k, from, to + 1, " inline __inline__ __inline ") == NO_TOKEN;
}

static void drop_with_arguments(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;

    source_drop(&t->source, i);
    if (token_is(k, i + 1, "(") && k->at[i + 1].partner != NO_TOKEN)
        source_drop_range(&t->source, i + 1, k->at[i + 1].partner + 1);
}

static void translate_function(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;

    if (token_is(k, i, "__assert_fail"))
        source_replace(&t->source, i, "__koloAssert");
    else if (token_is(k, i, "printf") && token_is(k, i + 1, "(") && !(i && token_among(k, i - 1, " . -> :: ")))
        source_replace(&t->source, i, "__kolo_printf");
    else if (token_is(k, i, "clock") && token_is(k, i + 1, "(") && token_is(k, i + 2, ")") && in_device_code_only(t) &&
             !(i && token_among(k, i - 1, " . -> :: ")))
        source_replace(&t->source, i, "__kolo_clock");
    else if (token_is(k, i, "static_cast"))
        translate_static_cast(t, i);
    else if (token_is(k, i, "static"))
        translate_local_static(t, i);
    else if (!translate_type(t, i))
        translate_name(t, i);
}

/* A word of CUDA's, all of which begin with two of these; few others do. */
static bool translate_own(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;

    if (k->text[k->at[i].start] != '_') return false;
    if (token_among(k, i, specifiers)) {
        source_drop(&t->source, i);
        if (in_code(t) && token_is(k, i, "__device__")) t->lambda_device = true;
        if (in_code(t) && token_is(k, i, "__host__")) t->lambda_host = true;
    } else if (token_among(k, i, bounds)) {
        drop_with_arguments(t, i);
    } else if (token_is(k, i, "__CUDA_ARCH__")) {
        source_replace(&t->source, i, "800"); /* not defined for the preprocessor: this is in a branch for devices */
    } else if (token_is(k, i, "__kolo_for_device")) { /* of nv/target */
        source_replace(&t->source, i, in_device_code_only(t) ? "true" : "__kolo::in_kernel()");
    } else if (token_is(k, i, "__shared__")) {
        translate_shared(t, i);
    } else if (token_is(k, i, "__forceinline__")) {
        source_replace(&t->source, i, needs_inline(k, i) ? "inline" : "");
    } else if (token_is(k, i, "__noinline__") && !in_attribute(k, i)) {
        source_replace(&t->source, i, "__attribute__((noinline))");
    } else if (token_among(k, i, " __align__ __builtin_align__ ") && token_is(k, i + 1, "(") &&
               k->at[i + 1].partner != NO_TOKEN) {
        source_replace(&t->source, i, "__attribute__((aligned");
        source_after(&t->source, k->at[i + 1].partner, "))");
    } else {
        return false;
    }
    return true;
}

void translate_word(struct translation *t, uint32_t i)
{
    refuse_name(t, i);
    if (!translate_own(t, i) && in_device_code(t)) translate_function(t, i);
}
