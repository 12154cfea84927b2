/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/output.h"

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

ncclResult_t kl_output_json(json_t *document, FILE *to)
{
    int failed = !document || json_dumpf(document, to, JSON_INDENT(1) | JSON_REAL_PRECISION(9));

    json_decref(document);
    fputc('\n', to);
    if (!failed) return ncclSuccess;
    return ferror(to) ? kl_output_end(to) : KL_NOMEM("JSON");
}

ncclResult_t kl_output_xml(const struct kl_xml *document, FILE *to)
{
    return kl_xml_write(document, to) ? kl_output_end(to) : ncclSuccess;
}
