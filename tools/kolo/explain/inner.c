/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/inner.h"

#include "base/error.h"
#include "base/parse.h"
#include "tools/kolo/explain/coll_print.h"

#include <limits.h>
#include <string.h>

ncclResult_t kl_inner_operation(const struct kl_explain_request *q, struct kl_coll_question *op)
{
    struct kl_explain_request inner = *q;

    inner.question = q->word[0];
    inner.word = q->word + 1;
    inner.nwords = q->nwords - 1;
    *op = (struct kl_coll_question){.coll = inner.question, .type = q->type, .op = q->op};
    return kl_coll_read_sizes(&inner, op);
}

ncclResult_t kl_inner_list(const char *option, const char *text, int64_t *list, int most, int *n)
{
    char copy[1024], *rest = copy, *word;

    *n = 0;
    if (!text) return ncclSuccess;
    if (strlen(text) >= sizeof copy) return KL_FAIL(ncclInvalidArgument, "%s: the list is too long", option);
    strcpy(copy, text);
    while ((word = strsep(&rest, ","))) {
        uint64_t value;

        if (*n == most) return KL_FAIL(ncclInvalidArgument, "%s: at most %d numbers", option, most);
        if (!kl_parse_size(word, &value) || value > (uint64_t)INT64_MAX)
            return KL_FAIL(ncclInvalidArgument, "%s: \"%s\" is no number; expected some separated by commas", option,
                           word);
        list[(*n)++] = (int64_t)value;
    }
    return ncclSuccess;
}

ncclResult_t kl_inner_number(const char *option, const char *text, int *value)
{
    int64_t number = 0;
    int n;

    KL_TRY(kl_inner_list(option, text, &number, 1, &n));
    if (number > INT_MAX) return KL_FAIL(ncclInvalidArgument, "%s %s: the number is too large", option, text);
    *value = (int)number;
    return ncclSuccess;
}
