/* SPDX-License-Identifier: Apache-2.0 */
/** translate.h - CUDA C++, preprocessed, to C++ that other compilers take. */
#ifndef KL_NVCC_TRANSLATE_H
#define KL_NVCC_TRANSLATE_H

#include "compat/cuda/nvcc/translation.h"

/** How kernels with barriers run, and the answer. */
struct translate_options {
    bool fibres;    /* all of them with a fibre for each thread */
    FILE *report;   /* a line for each of them goes there; NULL: none does */
    unsigned loops; /* is increased by the number of kernels that became loops */
    bool methods;   /* becomes true if private members are used outside of their classes */
};

/** Translate `text`, with errors told to `errors`. False: there were some, and `out` is not to be used. */
bool translate(const char *text, size_t bytes, struct translate_options *options, struct text *out, FILE *errors);

#endif
