/* SPDX-License-Identifier: Apache-2.0 */
#include "koloplan/stream.h"

#include "base/error.h"

#include <stdlib.h>

ncclResult_t kl_answer_stream_open(struct kl_answer_stream *s)
{
    *s = (struct kl_answer_stream){.text = NULL};
    s->to = open_memstream(&s->text, &s->bytes);
    return s->to ? ncclSuccess : KL_NOMEM("an answer");
}

ncclResult_t kl_answer_stream_close(struct kl_answer_stream *s, ncclResult_t rc, char **text)
{
    const int lost = ferror(s->to), unwritten = fclose(s->to);

    if (!rc && (lost || unwritten)) rc = KL_NOMEM("an answer");
    if (rc)
        free(s->text);
    else
        *text = s->text;
    return rc;
}
