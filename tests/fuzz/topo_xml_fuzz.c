/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of topology files: any bytes are read or refused, and the result survives writing and reading again. */
#include "topo/xml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char *written(const struct kl_xml *xml, size_t *bytes)
{
    char *text;

    return kl_xml_text(xml, &text, bytes) ? NULL : text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct kl_xml *xml, *again;
    size_t n, m;

    if (kl_xml_parse("fuzz", (const char *)data, bytes, kl_xml_topo_schema, &xml)) return 0;
    char *first = written(xml, &n);
    if (kl_xml_parse("again", first, n, kl_xml_topo_schema, &again)) abort();
    char *second = written(again, &m);
    if (n != m || memcmp(first, second, n)) abort();
    kl_xml_trim(again, false);
    if (kl_xml_fuse(again, xml, NULL)) abort();
    free(first);
    free(second);
    kl_xml_free(xml);
    kl_xml_free(again);
    return 0;
}
