/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "topo/xml.h"
#include "topo/xml_tree.h"

#include <stdlib.h>
#include <string.h>

/* NCCL writes values as they are; only characters that would not read back are escaped. Newlines would become blanks. */
static void write_value(const char *value, FILE *to)
{
    static const struct {
        char c;
        const char *text;
    } escapes[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'"', "&quot;"}, {'\n', "&#10;"}, {'\r', "&#13;"}, {'\t', "&#9;"}};

    for (const char *c = value; *c; c++) {
        size_t i = 0, n = sizeof escapes / sizeof escapes[0];

        while (i < n && escapes[i].c != *c) i++;
        if (i < n)
            fputs(escapes[i].text, to);
        else
            putc(*c, to);
    }
}

static void write_element(const struct kl_xml *xml, int elem, int depth, FILE *to)
{
    const struct kl_xml_elem *e = &xml->elem[elem];

    fprintf(to, "%*s<%s", 2 * depth, "", e->tag);
    for (int i = 0; i < e->nattrs; i++) {
        fprintf(to, " %s=\"", e->attr[i].key);
        write_value(e->attr[i].value, to);
        putc('"', to);
    }
    if (e->first == KL_XML_NONE) {
        fputs("/>\n", to);
        return;
    }
    fputs(">\n", to);
    for (int c = e->first; c != KL_XML_NONE; c = xml->elem[c].next) write_element(xml, c, depth + 1, to);
    fprintf(to, "%*s</%s>\n", 2 * depth, "", e->tag);
}

ncclResult_t kl_xml_write(const struct kl_xml *xml, FILE *to)
{
    if (xml->rooted) write_element(xml, KL_XML_ROOT, 0, to);
    if (fflush(to) || ferror(to)) return KL_FAIL_ERRNO("writing %s", xml->name);
    return ncclSuccess;
}

ncclResult_t kl_xml_text(const struct kl_xml *xml, char **text, size_t *bytes)
{
    char *buffer = NULL;
    size_t used = 0;
    FILE *to = open_memstream(&buffer, &used);
    ncclResult_t rc;

    if (!to) return KL_NOMEM("an XML document");
    rc = kl_xml_write(xml, to);
    if (fclose(to) && !rc) rc = KL_NOMEM("an XML document");
    if (rc) {
        free(buffer);
        return rc;
    }
    *text = buffer;
    *bytes = used;
    return ncclSuccess;
}
