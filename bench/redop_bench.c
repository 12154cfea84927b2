/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redop_bench - speed of the reduction kernels on one core: GB/s of dst = partial op own into a third array, counting
 * two arrays read and one written; one line per type, operation and table of kernels, one column per bytes of array.
 *
 *     redop_bench [TYPE|all] [OP|all] [TABLE|all|best]          defaults: all all best
 */
#include "base/clock.h"
#include "device/host/redop_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 64 << 20, ROUNDS = 5, ROUND_NS = 2000000 };

static const size_t sizes[] = {64, 1 << 10, 16 << 10, 256 << 10, 4 << 20, LARGEST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

struct arrays {
    char *dst, *partial, *own;
};

static uint64_t time_calls(const struct kl_redop *redop, const struct arrays *a, size_t count, size_t calls)
{
    const uint64_t start = kl_now_ns();

    for (size_t i = 0; i < calls; i++) redop->combine(redop, a->dst, a->partial, a->own, count);
    return kl_now_ns() - start;
}

/* The best of several rounds, each long enough for the clock. */
static double gigabytes_per_second(const struct kl_redop *redop, const struct arrays *a, size_t bytes)
{
    const size_t count = bytes / redop->elem_bytes;
    size_t calls = 1;
    uint64_t best = UINT64_MAX;

    while (time_calls(redop, a, count, calls) < ROUND_NS) calls *= 2;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t ns = time_calls(redop, a, count, calls);

        if (ns < best) best = ns;
    }
    return 3.0 * (double)bytes * (double)calls / (double)best;
}

static void print_row(const struct kl_redop_table *table, ncclDataType_t type, ncclRedOp_t op, const struct arrays *a)
{
    const struct kl_redop_kernels *kernels = &table->kernels[type][op];
    struct kl_redop redop;

    if (kl_redop_init(&redop, type, op, 2)) return;
    redop.combine = kernels->combine;
    printf("%-9s %-5s %-11s", kl_type_name(type), kl_redop_name(op), table->name);
    for (size_t i = 0; i < SIZES; i++) printf(" %9.1f", gigabytes_per_second(&redop, a, sizes[i]));
    printf("\n");
    fflush(stdout);
}

static bool wanted(const char *choice, const char *name)
{
    return !strcmp(choice, "all") || !strcmp(choice, name);
}

static void print_tables(const char *choice, ncclDataType_t type, ncclRedOp_t op, const struct arrays *a)
{
    for (const struct kl_redop_table *table = kl_redop_tables; table->name; table++) {
        if (!table->kernels[type][op].combine || !table->usable()) continue;
        if (!wanted(choice, table->name) && strcmp(choice, "best")) continue;
        print_row(table, type, op, a);
        if (!strcmp(choice, "best")) return;
    }
}

/* Small positive numbers of any type: no arithmetic on NaN, nothing denormal. */
static char *make_array(int byte)
{
    char *array = malloc(LARGEST);

    if (array) memset(array, byte, LARGEST);
    return array;
}

int main(int argc, char **argv)
{
    const char *type_choice = argc > 1 ? argv[1] : "all", *op_choice = argc > 2 ? argv[2] : "all";
    const char *table_choice = argc > 3 ? argv[3] : "best";
    const struct arrays a = {make_array(0x38), make_array(0x38), make_array(0x34)};

    if (!a.dst || !a.partial || !a.own) return EXIT_FAILURE;
    printf("%-9s %-5s %-11s", "type", "op", "table");
    for (size_t i = 0; i < SIZES; i++) printf(" %8zuB", sizes[i]);
    printf("    GB/s\n");
    for (int type = 0; type < ncclNumTypes; type++) {
        for (int op = 0; op < ncclNumOps; op++) {
            if (!wanted(type_choice, kl_type_name((ncclDataType_t)type))) continue;
            if (!wanted(op_choice, kl_redop_name((ncclRedOp_t)op))) continue;
            print_tables(table_choice, (ncclDataType_t)type, (ncclRedOp_t)op, &a);
        }
    }
    free(a.dst);
    free(a.partial);
    free(a.own);
    return EXIT_SUCCESS;
}
