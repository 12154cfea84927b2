/* SPDX-License-Identifier: Apache-2.0 */
/**
 * coll_print.h - the answer about a collective (answer/coll.h), for people.
 *
 *     coll_words.c         sizes, and the headline
 *     coll_ranges_text.c   where the choice changes
 *     coll_tuner.c         the choices of a tuner
 *     coll_text.c          algorithms to choose from
 *     coll_rounds_text.c   rounds of sends and receives
 */
#ifndef KOLO_TOOL_EXPLAIN_COLL_PRINT_H
#define KOLO_TOOL_EXPLAIN_COLL_PRINT_H

#include "answer/coll.h"
#include "graph/tuner.h"

struct kl_explain_request;

/** The sizes behind a collective: "64M", "1K-1G", "1K" "1G", or none. */
ncclResult_t kl_coll_read_sizes(const struct kl_explain_request *request, struct kl_coll_question *question);

enum { KL_SIZE_TEXT = 32, KL_COLL_TUNED = 64 };

/** Sizes with the same choice. */
struct kl_coll_tuned_range {
    int64_t first, last;
    bool by_tuner;
    struct kl_tuning_choice choice, model; /* `choice`: with the tuner */
};

/** The choices with a tuner for a function. */
struct kl_coll_tuned {
    int n;
    struct kl_coll_tuned_range range[KL_COLL_TUNED];
};

/** "64 MiB", "1,000,000 B"; returns `text`. */
char *kl_size_text(int64_t bytes, char text[KL_SIZE_TEXT]);

/** "67,108,864"; returns `text`. */
char *kl_grouped(int64_t number, char text[KL_SIZE_TEXT]);

/** "AllReduce of 64 MiB over 16 ranks on 2 hosts". */
void kl_coll_headline(const struct kl_coll_asked *asked, FILE *to);

/** Are the tuning model's constants those of host devices? */
bool kl_coll_for_host(const struct kl_coll_asked *asked);

/** Is it of one size, of ranks of one host that are CPUs? Then the library selects how data are copied (coll/select/select.h). */
bool kl_coll_is_selected(const struct kl_coll_asked *asked);

/** The library's rows for as many processes of this machine, measured now, as text and as JSON (NULL: no memory). */
void kl_coll_selected_text(const struct kl_coll_asked *asked, FILE *to);
json_t *kl_coll_selected_json(const struct kl_coll_asked *asked);

/** The choices of a tuner (graph/tuner.h) for the sizes from `first` to `last` of a function, beside the model's choices. */
ncclResult_t kl_coll_tuner_find(const struct kl_coll_asked *asked, const struct kl_tuning *tuning,
                                struct kl_tuner *tuner, struct kl_coll_tuned *tuned);
void kl_coll_tuned_text(const struct kl_coll_tuned *tuned, const struct kl_tuner *tuner, FILE *to);
json_t *kl_coll_tuned_json(const struct kl_coll_tuned *tuned);

/** For one collective: open the tuner of `file` for its ranks, and ask. The caller closes the tuner, also after a failure. */
ncclResult_t kl_coll_tuner_ask(const struct kl_coll_asked *asked, const struct kl_tuning *tuning, const char *file,
                               struct kl_tuner **tuner, struct kl_coll_tuned *tuned);

void kl_coll_text(const struct kl_coll_asked *asked, const struct kl_op_choice *choice, FILE *to);
void kl_coll_ranges_text(const struct kl_coll_asked *asked, const struct kl_op_choice *choice, FILE *to);
void kl_coll_rounds_text(const struct kl_coll_asked *asked, const struct kl_op_rounds *rounds, FILE *to);

#endif
