/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner.h - a tuner beside the model: a plugin by NCCL's ABI (ncclTunerPlugin_v2 to v6), or a file of rules (NCCL_TUNER_CONFIG_FILE).
 *
 * A tuner gets the times of the model for an operation, and may change them and the number of channels. One that fails, or
 * forbids everything, has no say in this operation; the first failure is a warning. All ranks need tuners that answer alike.
 *
 * Files:   lines "function,minBytes,maxBytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]", as in NVIDIA's example:
 *          -1 or nothing is any (of channels: as the model says), "#" begins a comment, and the first line that fits counts. Or JSON
 *          with the same fields (tuner_rules.h).
 * Threads: one at a time per tuner.
 * Source:  the specification of plugins, A9.
 */
#ifndef KL_GRAPH_TUNER_H
#define KL_GRAPH_TUNER_H

#include "base/param.h"
#include "graph/tuning.h"

struct kl_tuner;

/** Of the communicator that a tuner is for. */
struct kl_tuner_place {
    uint64_t comm; /* its number */
    int nranks, nnodes;
    void *(*net_library)(
        char *file); /* of the net plugin in use, to be looked at too, or NULL; NULL itself: there is none */
};

/** The tuner that the settings name; `*tuner` NULL: none. Close it with kl_tuner_close; NULL is fine there. */
ncclResult_t kl_tuner_open(const struct kl_tuner_place *place, const struct kl_tuning_constants *constants,
                           struct kl_tuner **tuner);

/**
 * The tuner of `file`: a plugin, if that is a library or the name of one, otherwise rules. ncclInvalidArgument: it has none,
 * or no rule that can be read.
 */
ncclResult_t kl_tuner_open_file(const struct kl_tuner_place *place, const struct kl_tuning_constants *constants,
                                const char *file, struct kl_tuner **tuner);
void kl_tuner_close(struct kl_tuner *tuner);

/** The constants for the model: as given to kl_tuner_open, or as changed by a plugin of v5 or later. */
const struct kl_tuning_constants *kl_tuner_constants(const struct kl_tuner *tuner);

/** The plugin's name, or the file's. */
const char *kl_tuner_name(const struct kl_tuner *tuner);

/**
 * Let the tuner change `cost`, the time of each candidate (-1: none), and replace `choice` by the cheapest. *decided: the
 * tuner's algorithms are cheapest. Otherwise, and when the tuner fails or leaves no candidate, `choice` stays as it was.
 */
ncclResult_t kl_tuner_choose(struct kl_tuner *tuner, const struct kl_tuning *tuning, const struct kl_tuning_op *op,
                             float cost[KL_ALGOS][KL_PROTOS], struct kl_tuning_choice *choice, bool *decided);

extern const struct kl_param_set kl_tuner_param_set;

#endif
