/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner_rules.h - the rules of a tuner's file (tuner.h), read from CSV or JSON, and written as both.
 *
 * JSON:    an array of objects, or an object with the array "rules". Keys are the names of the fields of CSV: function (or collType),
 *          minBytes, maxBytes, algorithm, protocol, channels, nNodes, nRanks, numPipeOps, regBuff; one that is missing is any.
 * Errors:  each mistake in a file is reported with its place; a rule that is not understood is left out.
 */
#ifndef KL_GRAPH_TUNER_RULES_H
#define KL_GRAPH_TUNER_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { KL_TUNER_ANY = -1 };

struct kl_tuner_rule {
    int func, algo, proto, nchannels, nnodes, nranks, npipe, registered; /* KL_TUNER_ANY, of channels: keep */
    int64_t least, most;                                                 /* bytes; INT64_MAX: any */
    int line;                                                            /* of JSON: the number of the rule, from 1 */
};

struct kl_tuner_rules {
    struct kl_tuner_rule *rule;
    int n;
};

/** Told of a mistake, or (not `mistake`) of rules that overlap, which is legal: the first counts. The text is a sentence with its place. */
typedef void kl_tuner_say(void *ctx, bool mistake, const char *text);

/** Read all rules of `from`, which is called `name`. False: no memory. Free with kl_tuner_rules_free. */
bool kl_tuner_rules_read(FILE *from, const char *name, kl_tuner_say *report, void *ctx, struct kl_tuner_rules *rules);
void kl_tuner_rules_free(struct kl_tuner_rules *rules);

/** The first that fits; NULL: none. */
const struct kl_tuner_rule *kl_tuner_rules_find(const struct kl_tuner_rules *rules, const struct kl_tuner_rule *call,
                                                int64_t bytes);

/** Write them, in their order. The caller looks whether `to` has failed. */
void kl_tuner_rules_csv(const struct kl_tuner_rules *rules, FILE *to);
void kl_tuner_rules_json(const struct kl_tuner_rules *rules, FILE *to);

#endif
