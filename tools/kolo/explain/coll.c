/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/parse.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/coll_print.h"
#include "tools/kolo/explain/explain.h"

#include <string.h>

/* ---- sizes ---- */

static ncclResult_t read_size(const char *text, size_t length, int64_t *bytes)
{
    char copy[32];
    uint64_t value = 0;

    snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    if (length >= sizeof copy || !kl_parse_size(copy, &value) || !value)
        return KL_FAIL(ncclInvalidArgument,
                       "\"%.*s\" is no size: expected bytes, as in 1024, 1.5K, 64M, 1GB, or a range, as in 1K-1G",
                       (int)length, text);
    *bytes = (int64_t)value;
    return ncclSuccess;
}

/* "64M", "1K-1G", "1K" "1G", or nothing: everything. */
ncclResult_t kl_coll_read_sizes(const struct kl_explain_request *q, struct kl_coll_question *a)
{
    if (!q->nwords) return ncclSuccess;
    const char *word = q->word[0], *dash = q->nwords > 1 ? NULL : strchr(word, '-');
    const char *end = q->nwords > 1 ? q->word[1] : dash ? dash + 1 : word;

    KL_TRY(read_size(word, dash ? (size_t)(dash - word) : strlen(word), &a->first));
    KL_TRY(read_size(end, strlen(end), &a->last));
    if (a->first > a->last)
        return KL_FAIL(ncclInvalidArgument, "the range %s%s%s is empty: the smaller size comes first", word,
                       dash ? "" : " ", dash ? "" : end);
    return ncclSuccess;
}

/* ---- the answer ---- */

struct with_tuner {
    const char *file;
    struct kl_tuner *tuner; /* NULL: none is asked */
    struct kl_coll_tuned tuned;
};

static void print_tuner(const struct with_tuner *w, FILE *to)
{
    fprintf(to, "\nwith the tuner %s (%s), asked for powers of two\n", kl_tuner_name(w->tuner), w->file);
    kl_coll_tuned_text(&w->tuned, w->tuner, to);
}

static json_t *tuner_json(const struct with_tuner *w)
{
    return json_pack("{s:s,s:s,s:o}", "name", kl_tuner_name(w->tuner), "file", w->file, "ranges",
                     kl_coll_tuned_json(&w->tuned));
}

static void print_text(const struct kl_coll_answer *answer, const struct with_tuner *tuner, FILE *to)
{
    const struct kl_coll_asked *a = &answer->asked;

    kl_print_preamble(a->cluster, to);
    if (a->func < 0)
        kl_coll_rounds_text(a, &answer->rounds, to);
    else
        kl_coll_text(a, &answer->choice, to);
    if (tuner->tuner) print_tuner(tuner, to);
    kl_assumed_print(a->cluster, "", to);
    kl_uncertain_print(a->cluster, "", to);
}

ncclResult_t kl_explain_coll(const struct kl_explain_request *q, FILE *to)
{
    struct kl_coll_question question = {.coll = q->question, .type = q->type, .op = q->op};
    struct kl_coll_asked asked;
    struct kl_coll_answer answer;
    struct with_tuner tuner = {.file = q->tuner};
    struct kl_opened opened;
    ncclResult_t rc;

    KL_TRY(kl_coll_read_sizes(q, &question));
    KL_TRY(kl_coll_ask(&question, &asked));
    KL_TRY(kl_cluster_options_open(&q->cluster, &opened));
    rc = kl_coll_answer_make(&asked, &opened, &answer);
    if (!rc && q->tuner)
        rc = kl_coll_tuner_ask(&answer.asked, answer.choice.tuning, q->tuner, &tuner.tuner, &tuner.tuned);
    if (!rc && q->json) {
        if (kl_coll_is_selected(&answer.asked)) answer.selected = kl_coll_selected_json(&answer.asked);
        if (q->tuner) answer.tuner = tuner_json(&tuner);
        rc = kl_coll_json(&answer, to);
        json_decref(answer.selected);
        json_decref(answer.tuner);
    }
    if (!rc && !q->json) print_text(&answer, &tuner, to);
    kl_tuner_close(tuner.tuner);
    kl_coll_answer_fini(&answer);
    kl_opened_fini(&opened);
    return rc;
}
