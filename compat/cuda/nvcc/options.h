/* SPDX-License-Identifier: Apache-2.0 */
/**
 * options.h - the command line, as nvcc reads it: the task, its files, and the options of the C++ compiler and the linker.
 */
#ifndef KL_NVCC_OPTIONS_H
#define KL_NVCC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** Words, in order; ends with NULL. */
struct words {
    char **at;
    size_t count;
};

void words_add(struct words *w, const char *word);
void words_add_all(struct words *w, const struct words *more);
void words_drop(struct words *w);

enum phase {
    PHASE_LINK,
    PHASE_COMPILE,
    PHASE_PREPROCESS,
    PHASE_DEPENDENCIES,
    PHASE_DEVICE_LINK,
    PHASE_ARCHIVE,
    PHASE_TRANSLATE
};

enum language { LANGUAGE_BY_NAME, LANGUAGE_CUDA, LANGUAGE_CXX, LANGUAGE_C };

struct input {
    char *path;
    enum language language;
};

struct options {
    enum phase phase;
    char *output;
    char *compiler;     /* -ccbin */
    char *standard;     /* c++17, NULL: none asked for */
    char *keep_folder;  /* --keep-dir */
    char *architecture; /* the number behind sm_ of the last one asked for, NULL: none */
    struct input *inputs;
    size_t input_count;
    struct words compile;      /* for every compilation */
    struct words dependencies; /* -MD and related options: for compilations, but not of preprocessed files */
    struct words link;         /* libraries, their folders, arguments of -Xlinker */
    struct words order;        /* inputs that are libraries or objects, and -l, as they came */
    bool shared, verbose, dry_run, keep, version, help, list, fast_math, per_thread, debug_device;
    bool run;            /* -run: start the linked program */
    bool static_runtime; /* -cudart static */
    bool fibres;         /* --barriers fibres */
    bool report;         /* --resource-usage: which kernels are loops */
};

/** Read the command line. False: something was wrong with it, and has been told. */
bool options_read(struct options *o, int argc, const char *const *argv);
void options_drop(struct options *o);

/** Print a line for each option, with tabs between: its names, "value" or "none", and "used", "ignored" or "refused". */
void options_list(FILE *to);

#endif
