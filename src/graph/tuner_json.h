/* SPDX-License-Identifier: Apache-2.0 */
/** tuner_json.h - rules as JSON (tuner_rules.h), taken apart into the texts of their fields. */
#ifndef KL_GRAPH_TUNER_JSON_H
#define KL_GRAPH_TUNER_JSON_H

#include <stdbool.h>
#include <stdio.h>

enum { KL_TUNER_FIELDS = 10, KL_TUNER_FIELD = 64 /* bytes of a text */ };

/** The names of the fields, in the order of CSV. */
extern const char *const kl_tuner_field_name[KL_TUNER_FIELDS];

struct kl_tuner_json_reader {
    void *ctx;
    /** A rule: `field`: its texts, "" where it has none. False ends the reading. */
    bool (*rule)(void *ctx, int number, char *const field[KL_TUNER_FIELDS]);
    /** Rule `number` (0: the whole document) has a mistake. */
    void (*mistake)(void *ctx, int number, const char *text);
};

void kl_tuner_json_read(FILE *from, const struct kl_tuner_json_reader *reader);

#endif
