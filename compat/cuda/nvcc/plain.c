/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/plain.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN, CHECKING, PLAIN, WAITS };

static const char pure[] = " min max abs fabs fabsf fmin fmax fminf fmaxf sqrt sqrtf rsqrtf rsqrt ceil ceilf floor "
                           "floorf umin umax __mul24 __umul24 "
                           "__popc __popcll __clz __clzll __ffs __ffsll __brev __brevll __byte_perm __float_as_int "
                           "__int_as_float __float_as_uint "
                           "__uint_as_float ";
static const char known[] = " llabs labs exp expf exp2 exp2f exp10 exp10f expm1 expm1f log logf log2 log2f log10 "
                            "log10f log1p log1pf pow powf sin sinf cos cosf "
                            "tan tanf sinpi sinpif cospi cospif asin asinf acos acosf atan atanf atan2 atan2f sinh "
                            "sinhf cosh coshf tanh tanhf asinh asinhf acosh "
                            "acoshf atanh atanhf erf erff erfc erfcf cbrt cbrtf hypot hypotf fma fmaf fmod fmodf "
                            "remainder remainderf round roundf rint rintf lrint "
                            "lrintf lround lroundf llrint llrintf trunc truncf nearbyint nearbyintf copysign copysignf "
                            "ldexp ldexpf frexp frexpf modf modff sincos "
                            "sincosf fdim fdimf isnan isinf isfinite signbit saturate __saturatef __expf __exp10f "
                            "__logf __log2f __log10f __powf __sinf __cosf "
                            "__tanf __fdividef __fadd_rn __fmul_rn __fsub_rn __fmaf_rn __fdiv_rn __frcp_rn __fsqrt_rn "
                            "__frsqrt_rn __dadd_rn __dmul_rn __dsub_rn "
                            "__fma_rn __ddiv_rn __drcp_rn __dsqrt_rn __mulhi __umulhi __mul64hi __umul64hi __sad "
                            "__usad __hadd __rhadd __funnelshift_l "
                            "__funnelshift_r __funnelshift_lc __funnelshift_rc __ldg __ldcg __ldca __ldcs __stcg "
                            "__stcs __stwb __float2int_rn __float2int_rz "
                            "__float2int_ru __float2int_rd __float2uint_rn __float2uint_rz __int2float_rn "
                            "__uint2float_rn __int2double_rn __double2int_rn "
                            "__double2int_rz __double2float_rn __float2half __float2half_rn __half2float "
                            "__float2bfloat16 __bfloat162float __dp4a "
                            "make_char2 make_char4 make_uchar2 make_uchar4 make_short2 make_short4 make_ushort2 "
                            "make_ushort4 make_int2 make_int3 make_int4 "
                            "make_uint2 make_uint3 make_uint4 make_float2 make_float3 make_float4 make_double2 "
                            "make_double3 make_double4 make_longlong2 "
                            "make_ulonglong2 make_cuComplex make_cuFloatComplex make_cuDoubleComplex cuCadd cuCaddf "
                            "cuCmul cuCmulf cuCsub cuCsubf cuCreal cuCrealf "
                            "cuCimag cuCimagf cuConj cuConjf cuCabs cuCabsf cuCdiv cuCdivf dim3 printf memcpy memset ";
/* Of cuda_fp16.h, cuda_bf16.h and curand_kernel.h. */
static const char of_headers[] =
    " __hadd2 __hsub __hsub2 __hmul __hmul2 __hdiv __h2div __hfma __hfma2 __hneg __hneg2 __habs __habs2 __hlt __hgt "
    "__hle "
    "__hge __heq __hne __hmax __hmin __hmax2 __hmin2 hexp hexp2 hlog hlog2 hsqrt hrsqrt hrcp hfloor hceil h2exp h2log "
    "h2sqrt "
    "h2rsqrt h2rcp __float2half2_rn __floats2half2_rn __float22half2_rn __half22float2 __low2float __high2float "
    "__low2half "
    "__high2half __low2half2 __high2half2 __lows2half2 __highs2half2 __halves2half2 __half2half2 __int2half_rn "
    "__half2int_rn "
    "__float2bfloat16_rn __float2bfloat162_rn __floats2bfloat162_rn __float22bfloat162_rn __bfloat1622float2 "
    "__low2bfloat16 __high2bfloat16 __halves2bfloat162 __bfloat162bfloat162 curand_init curand curand4 curand_uniform "
    "curand_uniform_double curand_uniform4 curand_normal curand_normal_double curand_normal2 curand_normal4 "
    "curand_log_normal curand_poisson skipahead skipahead_sequence ";
static const char polling[] =
    " atomicAdd atomicSub atomicMin atomicMax atomicExch atomicInc atomicDec atomicCAS atomicAnd atomicOr atomicXor "
    "atomicAdd_block "
    "atomicSub_block atomicMin_block atomicMax_block atomicExch_block atomicCAS_block atomicAnd_block atomicOr_block "
    "atomicXor_block "
    "atomicInc_block atomicDec_block atomicAdd_system atomicSub_system atomicMin_system atomicMax_system "
    "atomicExch_system atomicCAS_system atomicAnd_system atomicOr_system atomicXor_system atomicInc_system "
    "atomicDec_system clock clock64 __threadfence __threadfence_block __threadfence_system ";
static const char not_calls[] = " if for while switch return sizeof alignof decltype static_assert noexcept constexpr "
                                "else do case and or not catch alignas "
                                "__attribute__ __builtin_expect __builtin_assume __align__ ";
static const char casts[] = " static_cast reinterpret_cast const_cast ";
static const char banned[] = " asm __asm__ __asm goto new delete throw try co_await co_return co_yield thread_local "
                             "this_thread_block tiled_partition "
                             "coalesced_threads this_grid this_cluster setjmp longjmp alloca ";

bool is_type_word(const struct tokens *k, uint32_t i)
{
    return token_among(
        k, i,
        " void bool char short int long float double unsigned signed int8_t int16_t int32_t int64_t uint8_t uint16_t "
        "uint32_t uint64_t size_t ssize_t ptrdiff_t uint ushort uchar ulong half __half __nv_bfloat16 ");
}

bool is_pure_function(const struct tokens *k, uint32_t i)
{
    return token_among(k, i, pure) && token_is(k, i + 1, "(");
}

/* ---- shapes ---- */

static uint32_t behind_group(const struct tokens *k, uint32_t open, uint32_t end)
{
    return token_is(k, open, "(") && k->at[open].partner != NO_TOKEN && k->at[open].partner < end
               ? k->at[open].partner + 1
               : end;
}

uint32_t statement_end(const struct tokens *k, uint32_t i, uint32_t end)
{
    uint32_t at;

    if (i >= end) return end;
    if (token_is(k, i, "{")) return k->at[i].partner < end ? k->at[i].partner + 1 : end;
    if (token_among(k, i, " for while switch ")) return statement_end(k, behind_group(k, i + 1, end), end);
    if (token_is(k, i, "if")) {
        at = statement_end(k, behind_group(k, token_is(k, i + 1, "constexpr") ? i + 2 : i + 1, end), end);
        return at < end && token_is(k, at, "else") ? statement_end(k, at + 1, end) : at;
    }
    if (token_is(k, i, "do")) {
        at = statement_end(k, i + 1, end);
        if (!token_is(k, at, "while")) return end;
        at = behind_group(k, at + 1, end);
        return at < end ? at + 1 : end;
    }
    at = find_outside(k, i, end, " ; ");
    return at == NO_TOKEN ? end : at + 1;
}

bool is_assignment(const struct tokens *k, uint32_t i)
{
    if (token_among(k, i, " = += -= *= /= %= &= |= ^= ")) return true;
    return token_touches(k, i) &&
           ((token_is(k, i, ">") && token_is(k, i + 1, ">=")) || (token_is(k, i, "<") && token_is(k, i + 1, "<=")));
}

/* Does an operand end before `i`, so that a sign there is one between two operands? */
static bool behind_operand(const struct tokens *k, uint32_t i)
{
    return i && (k->at[i - 1].kind != TOKEN_SIGN ? !token_among(k, i - 1, " return case else ")
                                                 : token_among(k, i - 1, " ) ] "));
}

uint32_t member_end(const struct tokens *k, uint32_t i)
{
    uint32_t end = i + 1;

    while (token_is(k, end, ".") && token_is_name(k, end + 1)) end += 2;
    return end;
}

bool is_changed(const struct tokens *k, uint32_t i)
{
    uint32_t end = member_end(k, i);
    bool member = end > i + 1;

    while (member && token_is(k, end, "[") && k->at[end].partner != NO_TOKEN) /* perhaps it is an array */
        end = member_end(k, k->at[end].partner);
    if (is_assignment(k, end) || token_among(k, end, " ++ -- ") || (member && token_is(k, end, "("))) return true;
    if (i && token_among(k, i - 1, " ++ -- ")) return true;
    if (token_among(k, end, " [ -> ")) return false; /* of an element: it is not the pointer that changes */
    return i && token_is(k, i - 1, "&") && (!behind_operand(k, i - 1) || token_is(k, i - 2, ")"));
}

/* ---- the functions of the source ---- */

static void add_function(struct functions *f, const struct tokens *k, uint32_t name, struct function new)
{
    char *word = must_copy(k->text + k->at[name].start, k->at[name].end - k->at[name].start);
    bool fresh;
    size_t number = names_add(&f->names, word, &fresh);

    free(word);
    f->first = must_grow(f->first, f->names.count * sizeof *f->first);
    new.same = fresh ? NO_NAME : f->first[number];
    f->at = must_grow(f->at, (f->count + 1) * sizeof *f->at);
    f->first[number] = f->count;
    f->at[f->count++] = new;
}

static uint32_t name_before(const struct tokens *k, uint32_t open)
{
    uint32_t name = open - 1;

    if (token_is(k, name, ">")) {
        name = angle_begin(k, name);
        if (name == NO_TOKEN || !name) return NO_TOKEN;
        name--;
    }
    return name;
}

static void note_function(struct functions *f, const struct tokens *k, struct function new)
{
    const uint32_t from = new.from, body = new.body, class = new.class, open = parameters_of(k, from, body);
    uint32_t name;

    if (open == NO_TOKEN || open == from || k->at[body].partner == NO_TOKEN || k->at[open].partner == NO_TOKEN) return;
    name = name_before(k, open);
    if (name == NO_TOKEN) return;
    for (uint32_t i = from; i < open; i++)
        if (token_among(k, i, " operator ~ ")) new.implicit = true;
    if (token_is_name(k, name)) {
        if (class != NO_TOKEN && token_same(k, name, class)) new.implicit = true;
        if (name >= 2 && token_is(k, name - 1, "::") && token_is_name(k, name - 2) && token_same(k, name, name - 2))
            new.implicit = true;
    }
    for (uint32_t i = open; i < k->at[open].partner; i++)
        if (token_among(k, i, " & && ")) new.refers = true;
    new.open = open;
    new.name = name;
    new.kernel = find_outside(k, from, open, " __global__ ") != NO_TOKEN;
    add_function(f, k, name, new);
}

/* `const int N = 4;` of a namespace: words of types, among them const, and a name. */
static void note_constants(struct functions *f, const struct tokens *k, uint32_t from, uint32_t end)
{
    bool constant = false, fresh;
    uint32_t i = from;

    for (; i < end && (is_type_word(k, i) || token_among(k, i, " const constexpr static inline ")); i++)
        constant |= token_among(k, i, " const constexpr ");
    if (!constant || i == from || !token_is_name(k, i) || !token_is(k, i + 1, "=")) return;
    char *word = must_copy(k->text + k->at[i].start, k->at[i].end - k->at[i].start);
    (void)names_add(&f->constants, word, &fresh);
    free(word);
}

/* `enum { N = 4, M };` of a namespace. */
static void note_enumerators(struct functions *f, const struct tokens *k, uint32_t from, uint32_t brace)
{
    uint32_t at = brace + 1;
    struct piece p;
    bool fresh;

    if (token_is(k, from, "typedef")) from++;
    if (!token_is(k, from, "enum") || token_among(k, from + 1, " class struct ") || k->at[brace].partner == NO_TOKEN)
        return;
    while (next_piece(k, &at, k->at[brace].partner, &p)) {
        if (!token_is_name(k, p.from)) continue;
        char *word = must_copy(k->text + k->at[p.from].start, k->at[p.from].end - k->at[p.from].start);
        (void)names_add(&f->constants, word, &fresh);
        free(word);
    }
}

static uint32_t class_name(const struct tokens *k, uint32_t from, uint32_t brace)
{
    uint32_t i = find_outside(k, from, brace, " class struct union ");

    while (i != NO_TOKEN && i < brace &&
           (!token_is_name(k, i) || token_among(k, i, " class struct union ") || token_is(k, i + 1, "(")))
        i = token_is(k, i, "(") && k->at[i].partner != NO_TOKEN ? k->at[i].partner + 1 : i + 1;
    return i != NO_TOKEN && i < brace ? i : NO_TOKEN;
}

/* The innermost namespace and class around a declaration. */
struct level {
    uint32_t space, class, open, header;
};

static void note_class(struct functions *f, const struct tokens *k, uint32_t name)
{
    char *word = must_copy(k->text + k->at[name].start, k->at[name].end - k->at[name].start);
    bool fresh;

    (void)names_add(&f->classes, word, &fresh);
    free(word);
}

static struct level class_at(const struct tokens *k, uint32_t statement, uint32_t brace, uint32_t space)
{
    uint32_t header, from = skip_template_headers(k, statement, brace, &header);

    return (struct level){space, class_name(k, from, brace), brace, header};
}

static void check_implicit(struct functions *f, const struct tokens *k);

struct functions *functions_find(const struct translation *t)
{
    struct functions *f = must_have(sizeof *f);
    struct translation walk = {.source = t->source};
    const struct tokens *k = &walk.source.tokens;
    struct level *level = must_have(((size_t)k->count + 1) * sizeof *level);
    uint32_t depth = 0;

    level[0] = (struct level){NO_TOKEN, NO_TOKEN, NO_TOKEN, NO_TOKEN};
    for (uint32_t i = 0; i < k->count; i++) {
        if (token_is(k, i, ";")) {
            if (level[depth].class == NO_TOKEN) note_constants(f, k, walk.statement, i);
            walk.statement = i + 1;
        } else if (token_is(k, i, ":") && i && token_among(k, i - 1, " public private protected ")) {
            walk.statement = i + 1;
        } else if (token_is(k, i, "threadIdx") && level[depth].class != NO_TOKEN) {
            f->unclear = true; /* of an initial value, or of a constructor's */
        } else if (token_is(k, i, "}")) {
            if (depth) depth--;
            walk.statement = i + 1;
        } else if (token_is(k, i, "{")) {
            struct scope s = scope_opened_by(&walk, i);

            if (s.kind == SCOPE_NAMESPACE || s.kind == SCOPE_CLASS) {
                level[depth + 1] = s.kind == SCOPE_CLASS ? class_at(k, walk.statement, i, level[depth].space)
                                                         : (struct level){i, NO_TOKEN, NO_TOKEN, NO_TOKEN};
                depth++;
                if (level[depth].class != NO_TOKEN) note_class(f, k, level[depth].class);
                walk.statement = i + 1;
                continue;
            }
            if (s.kind == SCOPE_CODE && s.device) {
                uint32_t header, from = skip_template_headers(k, walk.statement, i, &header);

                note_function(f, k,
                              (struct function){.statement = walk.statement,
                                                .header = header,
                                                .from = from,
                                                .body = i,
                                                .space = level[depth].space,
                                                .class = level[depth].class,
                                                .class_open = level[depth].open,
                                                .class_header = level[depth].header});
            }
            if (k->at[i].partner == NO_TOKEN) break;
            if (level[depth].class == NO_TOKEN) note_enumerators(f, k, walk.statement, i);
            i = k->at[i].partner;
            if (s.kind == SCOPE_CODE) walk.statement = i + 1;
        }
    }
    free(level);
    check_implicit(f, k);
    return f;
}

void functions_drop(struct functions *f)
{
    if (!f) return;
    names_drop(&f->names);
    names_drop(&f->constants);
    names_drop(&f->classes);
    free(f->first);
    free(f->at);
    free(f);
}

static size_t find_function(const struct functions *f, const struct tokens *k, uint32_t i)
{
    size_t number = names_find(&f->names, k->text + k->at[i].start, k->at[i].end - k->at[i].start);

    return number == NO_NAME ? NO_NAME : f->first[number];
}

size_t functions_first(const struct functions *f, const struct tokens *k, uint32_t i)
{
    return find_function(f, k, i);
}

bool call_refers(const struct functions *f, const struct tokens *k, uint32_t i)
{
    for (size_t at = find_function(f, k, i); at != NO_NAME; at = f->at[at].same)
        if (f->at[at].refers) return true;
    return false;
}

/* ---- loops that may wait for writes of others ---- */

bool call_polls(const struct functions *f, const struct tokens *k, uint32_t i)
{
    if (!token_is_name(k, i)) return false;
    if (token_among(k, i, polling)) return true;
    for (size_t at = find_function(f, k, i); at != NO_NAME; at = f->at[at].same)
        if (f->at[at].polls) return true;
    return false;
}

/* Only names and numbers: neither memory nor a call decides. */
static bool is_plain_condition(const struct tokens *k, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (token_among(k, i, " [ -> { = ! ") || is_assignment(k, i)) return false;
        if (token_is(k, i, "*") && !behind_operand(k, i)) return false;
        if (token_is(k, i, "(") && i > from && token_is_name(k, i - 1) && !is_type_word(k, i - 1)) return false;
    }
    return from < to;
}

static unsigned count_changes(const struct tokens *k, uint32_t name, uint32_t from, uint32_t to)
{
    unsigned changes = 0;

    for (uint32_t i = from; i < to; i++)
        if (token_is_name(k, i) && token_same(k, i, name)) changes += is_changed(k, i);
    return changes;
}

static bool is_named(const struct tokens *k, uint32_t name, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (token_is_name(k, i) && token_same(k, i, name)) return true;
    return false;
}

/* The name that `i += 4`, `i++` or `++i` changes, with nothing else at [from, to). */
static uint32_t counted(const struct tokens *k, uint32_t from, uint32_t to)
{
    if (token_among(k, from, " ++ -- ")) return token_is_name(k, from + 1) && from + 2 == to ? from + 1 : NO_TOKEN;
    if (!token_is_name(k, from)) return NO_TOKEN;
    if (token_among(k, from + 1, " += -= *= /= ") || (is_assignment(k, from + 1) && !token_is(k, from + 1, "=")))
        return from;
    return token_among(k, from + 1, " ++ -- ") && from + 2 == to ? from : NO_TOKEN;
}

/* `for (...; i < n; i += s)`, where nothing else changes i; `while (i < n) { ...; i += s; }`, where nothing skips the count. */
static bool is_counted(const struct tokens *k, uint32_t i, uint32_t end)
{
    uint32_t open = i + 1, close, first, second, name;

    if (!token_is(k, open, "(") || k->at[open].partner == NO_TOKEN) return false;
    close = k->at[open].partner;
    if (token_is(k, i, "for")) {
        first = find_outside(k, open + 1, close, " ; ");
        second = first == NO_TOKEN ? NO_TOKEN : find_outside(k, first + 1, close, " ; ");
        if (second == NO_TOKEN || !is_plain_condition(k, first + 1, second)) return false;
        name = counted(k, second + 1, close);
        return name != NO_TOKEN && is_named(k, name, first + 1, second) && !count_changes(k, name, close + 1, end);
    }
    if (!token_is(k, i, "while") || !is_plain_condition(k, open + 1, close) || !token_is(k, close + 1, "{"))
        return false;
    for (uint32_t s = close + 2; s < end - 1; s++)
        if (token_is(k, s, "continue")) return false;
    for (uint32_t s = close + 2; s < end - 1; s = statement_end(k, s, end - 1)) {
        name = counted(k, s, statement_end(k, s, end - 1) - 1);
        if (name != NO_TOKEN && is_named(k, name, open + 1, close) && count_changes(k, name, close + 1, end) == 1)
            return true;
    }
    return false;
}

static uint32_t find_polling_loop(const struct functions *f, const struct tokens *k, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t end;
        bool found = false;

        if (!token_among(k, i, " for while do ")) continue;
        if (token_is(k, i, "while") && i && token_is(k, i - 1, "}") && token_is(k, behind_group(k, i + 1, to), ";"))
            continue; /* of do */
        end = statement_end(k, i, to);
        for (uint32_t n = i; n < end && !found; n++) found = call_polls(f, k, n);
        if (found && !is_counted(k, i, end)) return i;
    }
    return NO_TOKEN;
}

/* ---- calls ---- */

static bool is_plain_name(struct functions *f, const struct tokens *k, uint32_t i);
static bool waits_at(struct functions *f, const struct tokens *k, uint32_t i);

static bool is_word_of(const struct tokens *k, uint32_t i, const char *words)
{
    return words && token_among(k, i, words);
}

static bool is_cast_group(const struct tokens *k, uint32_t open, const char *types)
{
    uint32_t close = k->at[open].partner;

    if (close == open + 1) return false;
    if (token_is(k, close - 1, "*")) return true;
    for (uint32_t i = open + 1; i < close; i++)
        if (!is_type_word(k, i) && !token_among(k, i, " const ") && !is_word_of(k, i, types)) return false;
    return true;
}

/* ---- functions that variables stand for ---- */

/* The function that the token is in. */
static const struct function *function_around(const struct functions *f, const struct tokens *k, uint32_t i)
{
    for (size_t n = 0; n < f->count; n++)
        if (f->at[n].open < i && i < k->at[f->at[n].body].partner) return &f->at[n];
    return NULL;
}

/* Is the name at `i` a variable of its function, of a class or of a type that a template takes? */
static bool is_functor(const struct functions *f, const struct tokens *k, uint32_t i)
{
    const struct function *at = find_function(f, k, i) == NO_NAME ? function_around(f, k, i) : NULL;

    for (uint32_t n = at ? at->open + 1 : i; n < i; n++) {
        uint32_t type = n - 1;

        if (!token_is_name(k, n) || !token_same(k, n, i) || !token_among(k, n + 1, " , ) ; = ( { ")) continue;
        while (token_among(k, type, " & && const ")) type--;
        if ((token_is_name(k, type) && !is_type_word(k, type) && !token_among(k, type, " return else ")) ||
            token_is(k, type, ">"))
            return true;
    }
    return false;
}

/* `Op()(a, b)`: the name in front of `()` is of a type. */
static bool is_made_functor(const struct tokens *k, uint32_t open, const char *types)
{
    return token_is(k, open - 1, ">") || is_word_of(k, open - 1, types);
}

static bool names_what_waits(struct functions *f, const struct tokens *k, uint32_t i);

/* `operator()(...)` */
static bool is_call_operator(const struct tokens *k, const struct function *f)
{
    return f->implicit && token_is(k, f->open - 1, ")") && token_is(k, f->open - 3, "operator");
}

/* Might a lambda wait, or a function whose address is taken, or an operator change its object? Whether operators wait is checked for all
 * kernels. */
static bool functors_wait(struct functions *f, const struct tokens *k)
{
    if (f->functors != UNKNOWN) return f->functors == WAITS;
    f->functors = PLAIN;
    for (size_t n = 0; n < f->count; n++)
        if (is_call_operator(k, &f->at[n]) && !token_is(k, k->at[f->at[n].open].partner + 1, "const"))
            f->functors = WAITS;
    for (uint32_t i = 1; i < k->count && f->functors == PLAIN; i++) {
        uint32_t body;

        if (names_what_waits(f, k, i)) f->functors = WAITS;
        if (!token_is(k, i, "__device__") || !token_is(k, i - 1, "]")) continue;
        body = find_outside(k, i, k->count, " { ");
        for (uint32_t n = i; body != NO_TOKEN && n < k->at[body].partner && n < k->count; n++)
            if (waits_at(f, k, n)) f->functors = WAITS;
    }
    return f->functors == WAITS;
}

/* Methods of the stand-in that wait, or ask for their thread: a class of the source may have one of the same name. */
static const char own_methods[] =
    " sync wait arrive arrive_and_wait arrive_and_drop arrive_tx wait_prior thread_rank num_threads meta_group_rank "
    "meta_group_size shfl shfl_up shfl_down shfl_xor any all ballot match_any match_all group_index thread_index "
    "block_rank cluster_rank grid_rank is_valid barrier_arrive barrier_wait ";

static bool is_plain_method(struct functions *f, const struct tokens *k, uint32_t i)
{
    return !token_among(k, i, own_methods) && find_function(f, k, i) != NO_NAME && is_plain_name(f, k, i);
}

/* Is the parenthesis no call, or one of a plain function? */
static bool is_plain_call(struct functions *f, const struct tokens *k, uint32_t open, const char *types)
{
    uint32_t before = open - 1, angle;

    if (token_is_name(k, before)) {
        if (token_among(k, before, not_calls) || is_type_word(k, before) || is_word_of(k, before, types)) return true;
        if (before && token_among(k, before - 1, " . -> ")) return is_plain_method(f, k, before);
        return is_plain_name(f, k, before) || (is_functor(f, k, before) && !functors_wait(f, k));
    }
    if (token_is(k, before, ")") && k->at[before].partner != NO_TOKEN) {
        uint32_t group = k->at[before].partner;

        if (group && token_among(k, group - 1, " if for while switch constexpr ")) return true;
        if (before == group + 1) return group && is_made_functor(k, group, types) && !functors_wait(f, k);
        return is_cast_group(k, group, types);
    }
    if (token_is(k, before, ">")) {
        angle = angle_begin(k, before);
        if (angle == NO_TOKEN || !angle) return true;
        if (arguments_end(k, angle, k->count) != before) return true; /* a < b && c > (d) */
        return token_among(k, angle - 1, casts) || is_plain_name(f, k, angle - 1);
    }
    return !token_is(k, before, "]");
}

static bool is_lambda(const struct tokens *k, uint32_t i)
{
    return token_is(k, i, "[") && i && !token_is_name(k, i - 1) && !token_among(k, i - 1, " ) ] > [ ") &&
           !token_is(k, i + 1, "[") && k->at[i - 1].kind == TOKEN_SIGN;
}

uint32_t find_not_plain(struct functions *f, const struct tokens *k, uint32_t from, uint32_t to, const char *types,
                        const char **why)
{
    uint32_t loop;

    for (uint32_t i = from; i < to; i++) {
        *why = "which may wait, or ask for its thread, or is not known";
        if (token_is(k, i, "(") && i > from && !is_plain_call(f, k, i, types)) return i - 1;
        *why = "which a loop over threads cannot contain";
        if (token_among(k, i, banned) || is_lambda(k, i)) return i;
        if (token_is(k, i, "<") && token_is(k, i + 1, "<") && token_is(k, i + 2, "<")) return i;
    }
    *why = "a loop that may wait for other threads";
    loop = find_polling_loop(f, k, from, to);
    return loop;
}

static bool is_plain_function(struct functions *f, const struct tokens *k, struct function *at)
{
    const uint32_t end = k->at[at->body].partner;
    const char *why;
    bool plain = true;

    if (at->state != UNKNOWN) return at->state == PLAIN; /* one that calls itself is not plain */
    at->state = CHECKING;
    for (uint32_t i = at->open; i < end && plain; i++) plain = !token_among(k, i, " threadIdx static __shared__ ");
    for (uint32_t i = at->open; i < at->body && plain; i++) plain = !waits_at(f, k, i); /* values of members */
    if (plain) plain = find_not_plain(f, k, at->body + 1, end, NULL, &why) == NO_TOKEN;
    for (uint32_t i = at->body + 1; i < end && !at->polls; i++) at->polls = call_polls(f, k, i);
    at->state = plain ? PLAIN : WAITS;
    return plain;
}

static bool is_plain_name(struct functions *f, const struct tokens *k, uint32_t i)
{
    size_t at = find_function(f, k, i);

    if (at == NO_NAME)
        return token_among(k, i, pure) || token_among(k, i, known) || token_among(k, i, of_headers) ||
               token_among(k, i, polling) ||
               names_find(&f->classes, k->text + k->at[i].start, k->at[i].end - k->at[i].start) != NO_NAME;
    for (; at != NO_NAME; at = f->at[at].same)
        if (!is_plain_function(f, k, &f->at[at])) return false;
    return true;
}

/* Functions that are called without their names must not wait, whatever they call. */
static const char waiting[] = " threadIdx __syncthreads __syncwarp __syncthreads_count __syncthreads_and "
                              "__syncthreads_or __match_all_sync __nanosleep asm "
                              "__asm__ sync wait arrive_and_wait "
                              "this_thread_block tiled_partition thread_block_tile ";
static const char of_warps[] = " __shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot_sync __any_sync "
                               "__all_sync __uni_sync __activemask __match_any_sync __reduce_add_sync "
                               "__reduce_min_sync __reduce_max_sync __reduce_and_sync __reduce_or_sync "
                               "__reduce_xor_sync __syncwarp ";

bool is_warp_operation(const struct tokens *k, uint32_t i)
{
    return token_among(k, i, of_warps) && token_is(k, i + 1, "(") && k->at[i + 1].partner != NO_TOKEN;
}

static bool may_wait(const struct functions *f, const struct tokens *k, const struct function *of, unsigned depth)
{
    for (uint32_t i = of->open; i < k->at[of->body].partner; i++) {
        if (!token_is_name(k, i)) continue;
        if (token_among(k, i, waiting) || token_among(k, i, of_warps)) return true;
        if (!token_is(k, i + 1, "(") && !token_is(k, i + 1, "<")) continue;
        for (size_t at = find_function(f, k, i); at != NO_NAME; at = f->at[at].same) {
            if (f->at[at].body == of->body) continue;
            if (depth == 0 || may_wait(f, k, &f->at[at], depth - 1)) return true;
        }
    }
    return false;
}

static bool function_waits(struct functions *f, const struct tokens *k, struct function *at)
{
    if (at->waits != UNKNOWN) return at->waits == WAITS;
    at->waits = CHECKING;
    for (uint32_t i = at->open; i < k->at[at->body].partner && at->waits == CHECKING; i++)
        if (waits_at(f, k, i)) at->waits = WAITS;
    if (at->waits == CHECKING) at->waits = PLAIN;
    return at->waits == WAITS;
}

/* A word that waits, or a call of a function or a method that does. */
static bool waits_at(struct functions *f, const struct tokens *k, uint32_t i)
{
    return token_among(k, i, waiting) || token_among(k, i, of_warps) || call_waits(f, k, i) != NO_NAME ||
           (i && token_among(k, i - 1, " . -> ") && method_waits(f, k, i) != NO_NAME);
}

/* Is a function that waits named at `i` otherwise than in a call of it? */
static bool names_what_waits(struct functions *f, const struct tokens *k, uint32_t i)
{
    if (!token_is_name(k, i) || token_is(k, i + 1, "(") || token_among(k, i - 1, " . -> ")) return false;
    if (token_is(k, i + 1, "<")) {
        uint32_t close = angle_end(k, i + 1);

        if (close != NO_TOKEN && token_is(k, close + 1, "(")) return false;
    }
    for (size_t at = find_function(f, k, i); at != NO_NAME; at = f->at[at].same)
        if (!f->at[at].kernel && f->at[at].class == NO_TOKEN && function_waits(f, k, &f->at[at])) return true;
    return false;
}

size_t call_waits(struct functions *f, const struct tokens *k, uint32_t i)
{
    if (!token_is_name(k, i) || !token_among(k, i + 1, " ( < ") || (i && token_among(k, i - 1, " . -> ")))
        return NO_NAME;
    for (size_t at = find_function(f, k, i); at != NO_NAME; at = f->at[at].same)
        if (!f->at[at].kernel && function_waits(f, k, &f->at[at])) return at;
    return NO_NAME;
}

size_t method_waits(struct functions *f, const struct tokens *k, uint32_t i)
{
    if (!token_is_name(k, i) || !token_among(k, i + 1, " ( < ")) return NO_NAME;
    for (size_t at = find_function(f, k, i); at != NO_NAME; at = f->at[at].same)
        if (f->at[at].class != NO_TOKEN && function_waits(f, k, &f->at[at])) return at;
    return NO_NAME;
}

bool methods_are_constant(const struct functions *f, const struct tokens *k, uint32_t i)
{
    size_t at = find_function(f, k, i);

    if (at == NO_NAME) return false;
    for (; at != NO_NAME; at = f->at[at].same)
        if (!token_is(k, k->at[f->at[at].open].partner + 1, "const")) return false;
    return true;
}

static void check_implicit(struct functions *f, const struct tokens *k)
{
    for (size_t i = 0; i < f->count && !f->unclear; i++) f->unclear = f->at[i].implicit && may_wait(f, k, &f->at[i], 8);
}
