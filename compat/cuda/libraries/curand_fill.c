/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/libraries/curand_fill.h"

#include "compat/cuda/libraries/library_kernel.h"

#include <math.h>

enum { BLOCKS = 16 };

/* ---- seeds ---- */

struct seeding {
    struct kl_curand_state *state;
    unsigned long long seed, offset;
};

/* Lane i begins `offset` / 4096 numbers behind the beginning of subsequence i, and one more if it had its turn after that. */
static unsigned long long skipped(unsigned long long offset, size_t lane)
{
    return offset / KL_CURAND_LANES + (lane < offset % KL_CURAND_LANES);
}

static void seed_lane(union kl_curand_lane *lane, const struct seeding *s, size_t i)
{
    if (s->state->type == CURAND_RNG_PSEUDO_MRG32K3A)
        kolo_mrg_init(&lane->mrg, s->seed, i, skipped(s->offset, i));
    else
        kolo_xorwow_init(&lane->xorwow, s->seed, i, skipped(s->offset, i));
}

static void seed_part(const struct seeding *s, unsigned block, unsigned blocks)
{
    size_t first, end = kl_library_part(KL_CURAND_LANES, block, blocks, &first);

    if (block == 0) {
        s->state->seed = s->seed;
        s->state->offset = s->state->position = s->offset;
    }
    if (s->state->type == CURAND_RNG_PSEUDO_PHILOX4_32_10) return;
    for (size_t i = first; i < end; i++) seed_lane(&s->state->lane[i], s, i);
}

KL_LIBRARY_KERNEL(curand_seed, struct seeding, seed_part)

cudaError_t kl_curand_seed(struct kl_curand_state *state, unsigned long long seed, unsigned long long offset,
                           cudaStream_t stream)
{
    struct seeding s = {state, seed, offset};

    return kl_library_launch(&kl_kernel_curand_seed, BLOCKS, &s, stream);
}

/* ---- numbers ---- */

struct filling {
    struct kl_curand_state *state;
    enum kl_curand_kind kind;
    void *output;
    size_t units; /* numbers, or pairs of them */
    double a, b;
};

/* How many numbers of Philox's sequence a unit takes. */
static unsigned draws(enum kl_curand_kind kind)
{
    switch (kind) {
    case KL_CURAND_BITS:
    case KL_CURAND_UNIFORM:
    case KL_CURAND_POISSON:
        return 1;
    case KL_CURAND_NORMAL_DOUBLE:
    case KL_CURAND_LOG_NORMAL_DOUBLE:
        return 4;
    default:
        return 2;
    }
}

int kl_curand_pairs(enum kl_curand_kind kind)
{
    return kind >= KL_CURAND_NORMAL && kind <= KL_CURAND_LOG_NORMAL_DOUBLE;
}

static uint32_t bits(curandRngType_t type, union kl_curand_lane *lane)
{
    if (type == CURAND_RNG_PSEUDO_PHILOX4_32_10) return kolo_philox_next(&lane->philox);
    if (type == CURAND_RNG_PSEUDO_MRG32K3A) return kolo_mrg_bits(kolo_mrg_next(&lane->mrg));
    return kolo_xorwow_next(&lane->xorwow);
}

static float uniform(curandRngType_t type, union kl_curand_lane *lane)
{
    return type == CURAND_RNG_PSEUDO_MRG32K3A ? (float)kolo_mrg_uniform(&lane->mrg) : kolo_uniform(bits(type, lane));
}

static double uniform_double(curandRngType_t type, union kl_curand_lane *lane)
{
    uint32_t low;

    if (type == CURAND_RNG_PSEUDO_MRG32K3A) return kolo_mrg_uniform(&lane->mrg);
    low = bits(type, lane);
    return kolo_uniform_double(low, bits(type, lane));
}

static void normal(curandRngType_t type, union kl_curand_lane *lane, float pair[2])
{
    uint32_t x;

    if (type == CURAND_RNG_PSEUDO_MRG32K3A) {
        float u = uniform(type, lane);

        kolo_box_muller_of(u, uniform(type, lane) * 6.2831855f, &pair[0], &pair[1]);
        return;
    }
    x = bits(type, lane);
    kolo_box_muller(x, bits(type, lane), &pair[0], &pair[1]);
}

static void normal_double(curandRngType_t type, union kl_curand_lane *lane, double pair[2])
{
    double u = uniform_double(type, lane);

    kolo_box_muller_double_of(u, 2.0 * uniform_double(type, lane), &pair[0], &pair[1]);
}

static unsigned poisson(curandRngType_t type, union kl_curand_lane *lane, double lambda)
{
    double left = lambda, product = 1;

    for (unsigned events = 0;; events++) {
        product *= uniform_double(type, lane);
        while (product < 1 && left > 0) { /* in steps that stay in the range of a double */
            double step = left < 500 ? left : 500;

            product *= exp(step);
            left -= step;
        }
        if (product <= 1) return events;
    }
}

static void put_unit(const struct filling *f, union kl_curand_lane *lane, size_t unit)
{
    curandRngType_t type = f->state->type;
    float pair[2];
    double wide[2];

    switch (f->kind) {
    case KL_CURAND_BITS:
        ((unsigned *)f->output)[unit] = bits(type, lane);
        break;
    case KL_CURAND_UNIFORM:
        ((float *)f->output)[unit] = uniform(type, lane);
        break;
    case KL_CURAND_UNIFORM_DOUBLE:
        ((double *)f->output)[unit] = uniform_double(type, lane);
        break;
    case KL_CURAND_POISSON:
        ((unsigned *)f->output)[unit] = poisson(type, lane, f->a);
        break;
    case KL_CURAND_NORMAL:
    case KL_CURAND_LOG_NORMAL:
        normal(type, lane, pair);
        for (int i = 0; i < 2; i++) {
            float value = (float)f->a + (float)f->b * pair[i];
            ((float *)f->output)[2 * unit + (size_t)i] = f->kind == KL_CURAND_NORMAL ? value : expf(value);
        }
        break;
    default:
        normal_double(type, lane, wide);
        for (int i = 0; i < 2; i++) {
            double value = f->a + f->b * wide[i];
            ((double *)f->output)[2 * unit + (size_t)i] = f->kind == KL_CURAND_NORMAL_DOUBLE ? value : exp(value);
        }
    }
}

/* A block computes its part of the sequence; a Poisson number takes as many of it as it likes, of a subsequence of its own. */
static void fill_philox(const struct filling *f, unsigned block, unsigned blocks)
{
    size_t first, end = kl_library_part(f->units, block, blocks, &first);
    union kl_curand_lane lane;

    kolo_philox_init(&lane.philox, f->state->seed, 0, f->state->position + first * draws(f->kind));
    for (size_t i = first; i < end; i++) {
        if (f->kind == KL_CURAND_POISSON) kolo_philox_init(&lane.philox, f->state->seed, 1 + f->state->position + i, 0);
        put_unit(f, &lane, i);
    }
}

static void fill_part(const struct filling *f, unsigned block, unsigned blocks)
{
    size_t start = f->state->position % KL_CURAND_LANES, first, end;

    if (f->state->type == CURAND_RNG_PSEUDO_PHILOX4_32_10) {
        fill_philox(f, block, blocks);
        return;
    }
    end = kl_library_part(KL_CURAND_LANES, block, blocks, &first);
    for (size_t row = 0; row < start + f->units; row += KL_CURAND_LANES)
        for (size_t i = row + first; i < row + end; i++)
            if (i >= start && i - start < f->units) put_unit(f, &f->state->lane[i - row], i - start);
}

KL_LIBRARY_KERNEL(curand_fill, struct filling, fill_part)

/* The blocks before have read the position. */
static void advance(const struct filling *f, unsigned block, unsigned blocks)
{
    bool of_sequence = f->state->type == CURAND_RNG_PSEUDO_PHILOX4_32_10;

    (void)block;
    (void)blocks;
    f->state->position += f->units * (of_sequence ? draws(f->kind) : 1);
}

KL_LIBRARY_KERNEL(curand_advance, struct filling, advance)

cudaError_t kl_curand_fill(struct kl_curand_state *state, enum kl_curand_kind kind, void *output, size_t count,
                           double a, double b, cudaStream_t stream)
{
    struct filling f = {state, kind, output, kl_curand_pairs(kind) ? count / 2 : count, a, b};
    cudaError_t rc = kl_library_launch(&kl_kernel_curand_fill, BLOCKS, &f, stream);

    return rc ? rc : kl_library_launch(&kl_kernel_curand_advance, 1, &f, stream);
}
