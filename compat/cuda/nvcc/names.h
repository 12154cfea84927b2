/* SPDX-License-Identifier: Apache-2.0 */
/** names.h - a set of names, numbered in the order of their coming; {0} is empty. As text.h has it, there always is memory. */
#ifndef KL_NVCC_NAMES_H
#define KL_NVCC_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_NAME SIZE_MAX

struct names {
    char **at;
    size_t count;
    uint32_t *place; /* by their hashes: number + 1; 0: none */
    size_t room;     /* of places, a power of two, at most half full */
};

/** The number of a name, which need not end with a zero; NO_NAME: it is not there. */
size_t names_find(const struct names *n, const char *name, size_t bytes);

/** Its number, and whether it was not there before. */
size_t names_add(struct names *n, const char *name, bool *fresh);
void names_drop(struct names *n);

#endif
