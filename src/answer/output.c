/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/output.h"

#include "base/error.h"

#include <errno.h>

ncclResult_t kl_output_end(FILE *to)
{
    errno = 0;
    if (!fflush(to) && !ferror(to)) return ncclSuccess;
    if (errno) return KL_FAIL_ERRNO("writing the output");
    return KL_FAIL(ncclSystemError,
                   "writing the output: a part could not be written"); /* an earlier failure; its reason is lost */
}

static ncclResult_t print(json_t *document, size_t format, FILE *to)
{
    int failed = !document || json_dumpf(document, to, format);

    json_decref(document);
    fputc('\n', to);
    if (!failed) return ncclSuccess;
    return ferror(to) ? kl_output_end(to) : KL_NOMEM("JSON");
}

json_t *kl_output_text(const char *s)
{
    enum { LONGEST = 4096 };
    json_t *t = s ? json_string(s) : json_null();
    char clean[LONGEST];
    size_t n = 0;

    if (t) return t;
    for (; s[n] && n + 1 < sizeof clean; n++) clean[n] = (char)((unsigned char)s[n] < 0x80 ? s[n] : '?');
    clean[n] = 0;
    return json_string(clean);
}

ncclResult_t kl_output_json(json_t *document, FILE *to)
{
    return print(document, KL_OUTPUT_FORMAT, to);
}

ncclResult_t kl_output_answer(const char *schema, json_t *answer, size_t format, FILE *to)
{
    json_t *whole = json_pack("{s:s}", "schema", schema);

    if (whole && (!answer || json_object_update(whole, answer))) {
        json_decref(whole);
        whole = NULL;
    }
    json_decref(answer);
    return print(whole, format, to);
}

ncclResult_t kl_output_xml(const struct kl_xml *document, FILE *to)
{
    return kl_xml_write(document, to) ? kl_output_end(to) : ncclSuccess;
}
