/* SPDX-License-Identifier: Apache-2.0 */
/** tuner_rules.h - the rules of a tuner's file (tuner.h). Lines that are not understood are warnings, and left out. */
#ifndef KL_GRAPH_TUNER_RULES_H
#define KL_GRAPH_TUNER_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { KL_TUNER_ANY = -1 };

struct kl_tuner_rule {
    int func, algo, proto, nchannels, nnodes, nranks, npipe, registered; /* KL_TUNER_ANY, of channels: keep */
    int64_t least, most;                                                 /* bytes */
    int line;
};

struct kl_tuner_rules {
    struct kl_tuner_rule *rule;
    int n;
};

/** Read all lines of `from`, which is called `name`. False: no memory. Free with kl_tuner_rules_free. */
bool kl_tuner_rules_read(FILE *from, const char *name, struct kl_tuner_rules *rules);
void kl_tuner_rules_free(struct kl_tuner_rules *rules);

/** The first that fits; NULL: none. */
const struct kl_tuner_rule *kl_tuner_rules_find(const struct kl_tuner_rules *rules, const struct kl_tuner_rule *call,
                                                int64_t bytes);

#endif
