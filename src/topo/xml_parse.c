/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/log.h"
#include "topo/xml.h"
#include "topo/xml_tree.h"

#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

const struct kl_xml_rule kl_xml_topo_schema[] = {
    {NULL, "system"}, {"system", "cpu"}, {"cpu", "pci"},     {"cpu", "nic"},    {"pci", "pci"},
    {"pci", "gpu"},   {"pci", "nic"},    {"pci", "pcilink"}, {"gpu", "nvlink"}, {"gpu", "xgmi"},
    {"gpu", "c2c"},   {"nic", "net"},    {NULL, NULL},
};

const struct kl_xml_rule kl_xml_graph_schema[] = {
    {NULL, "graphs"}, {"graphs", "graph"}, {"graph", "channel"}, {"channel", "net"}, {"channel", "gpu"}, {NULL, NULL},
};

struct reader {
    XML_Parser parser;
    const struct kl_xml_rule *schema;
    struct kl_xml *xml;
    int open;    /* innermost element that is kept, KL_XML_NONE outside of the root */
    int depth;   /* of all elements, kept or not */
    int skipped; /* elements open below and including one that the schema does not know */
    ncclResult_t rc;
};

static bool permitted(const struct kl_xml_rule *schema, const char *parent, const char *child)
{
    for (; schema->child; schema++) {
        bool same = parent && schema->parent ? !strcmp(parent, schema->parent) : parent == schema->parent;
        if (same && !strcmp(child, schema->child)) return true;
    }
    return false;
}

/* Note the first error and make expat stop; callbacks may still come once. */
static void stop(struct reader *r, ncclResult_t rc)
{
    if (!r->rc) r->rc = rc;
    XML_StopParser(r->parser, XML_FALSE);
}

static int line_of(const struct reader *r)
{
    return (int)XML_GetCurrentLineNumber(r->parser);
}

static ncclResult_t too_much(const struct reader *r, const char *what, int limit)
{
    return KL_FAIL(ncclInternalError, "%s:%d: %s; the limit is %d", r->xml->name, line_of(r), what, limit);
}

static ncclResult_t add_attributes(struct reader *r, int elem, const char **attrs)
{
    for (; attrs[0]; attrs += 2) {
        if (strlen(attrs[0]) > KL_XML_MAX_TEXT || strlen(attrs[1]) > KL_XML_MAX_TEXT)
            return too_much(r, "an attribute is too long", KL_XML_MAX_TEXT);
        KL_TRY(kl_xml_set(r->xml, elem, attrs[0], attrs[1]));
    }
    return ncclSuccess;
}

static ncclResult_t open_element(struct reader *r, const char *tag, const char **attrs)
{
    int elem;

    KL_TRY(kl_xml_add(r->xml, r->open, tag, &elem));
    r->xml->elem[elem].line = line_of(r);
    r->open = elem;
    return add_attributes(r, elem, attrs);
}

/* The parent below which an element is known; NULL: it is not. */
static const char *parent_of(const struct reader *r, const char *tag)
{
    for (const struct kl_xml_rule *rule = r->schema; rule->child; rule++)
        if (rule->parent && !strcmp(rule->child, tag)) return rule->parent;
    return NULL;
}

static void skip(struct reader *r, const char *parent, const char *tag)
{
    KL_INFO(KL_GRAPH, "%s:%d: <%s> in <%s> is not known and skipped", r->xml->name, line_of(r), tag,
            parent ? parent : "the document");
    const char *right = parent_of(r, tag);

    if (r->xml->misplaced[0] || !parent || !right) return;
    snprintf(r->xml->misplaced, sizeof r->xml->misplaced,
             "%d: <%.20s> stands directly in <%.20s>; it belongs in a <%.20s> element", line_of(r), tag, parent, right);
}

static void XMLCALL on_start(void *ctx, const char *tag, const char **attrs)
{
    struct reader *r = ctx;
    const char *parent = r->open == KL_XML_NONE ? NULL : r->xml->elem[r->open].tag;
    ncclResult_t rc = ncclSuccess;

    if (r->rc) return;
    if (++r->depth > KL_XML_MAX_DEPTH)
        rc = too_much(r, "elements are nested too deep", KL_XML_MAX_DEPTH);
    else if (strlen(tag) > KL_XML_MAX_TEXT)
        rc = too_much(r, "the name of an element is too long", KL_XML_MAX_TEXT);
    else if (r->skipped || !permitted(r->schema, parent, tag)) {
        if (!r->skipped++) skip(r, parent, tag);
    } else
        rc = open_element(r, tag, attrs);
    if (rc) stop(r, rc);
}

static void XMLCALL on_end(void *ctx, const char *tag)
{
    struct reader *r = ctx;

    (void)tag;
    if (r->rc) return;
    r->depth--;
    if (r->skipped)
        r->skipped--;
    else
        r->open = r->xml->elem[r->open].parent;
}

static void XMLCALL on_text(void *ctx, const char *text, int bytes)
{
    struct reader *r = ctx;

    for (int i = 0; i < bytes && !r->rc && !r->skipped; i++) {
        if (strchr(" \t\r\n", text[i])) continue;
        stop(r, KL_FAIL(ncclInternalError, "%s:%d: text between the elements; only elements and comments belong there",
                        r->xml->name, line_of(r)));
    }
}

/* Entities make XML dangerous, and topologies have no use for them. */
static void XMLCALL on_doctype(void *ctx, const char *name, const char *sysid, const char *pubid, int internal)
{
    struct reader *r = ctx;

    (void)name, (void)sysid, (void)pubid, (void)internal;
    stop(r, KL_FAIL(ncclInternalError, "%s:%d: a document type declaration; remove it", r->xml->name, line_of(r)));
}

static ncclResult_t report(struct reader *r)
{
    enum XML_Error error = XML_GetErrorCode(r->parser);
    const struct kl_xml_elem *open = r->open == KL_XML_NONE ? NULL : &r->xml->elem[r->open];

    if (r->rc) return r->rc;
    if (error == XML_ERROR_NO_MEMORY) return KL_NOMEM("an XML document");
    if (open)
        return KL_FAIL(ncclInternalError, "%s:%d: %s, inside <%s> of line %d; correct the XML there", r->xml->name,
                       line_of(r), XML_ErrorString(error), open->tag, open->line);
    return KL_FAIL(ncclInternalError, "%s:%d: %s; correct the XML there", r->xml->name, line_of(r),
                   XML_ErrorString(error));
}

static bool blank(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!strchr(" \t\r\n", text[i]) || !text[i]) return false;
    return true;
}

static ncclResult_t run(struct reader *r, const char *text, size_t bytes)
{
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, on_start, on_end);
    XML_SetCharacterDataHandler(r->parser, on_text);
    XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
    if (XML_Parse(r->parser, text, (int)bytes, XML_TRUE) != XML_STATUS_OK || r->rc) return report(r);
    return ncclSuccess;
}

ncclResult_t kl_xml_parse(const char *name, const char *text, size_t bytes, const struct kl_xml_rule *schema,
                          struct kl_xml **out)
{
    struct reader r = {.schema = schema, .open = KL_XML_NONE};
    ncclResult_t rc = ncclSuccess;

    if (bytes > KL_XML_MAX_BYTES)
        return KL_FAIL(ncclInternalError, "%s: %zu bytes; a topology or graph has at most %d", name, bytes,
                       KL_XML_MAX_BYTES);
    KL_TRY(kl_xml_create(name, &r.xml));
    if (!blank(text, bytes)) {
        r.parser = XML_ParserCreate(NULL);
        KL_TRY_OR(rc, out, r.parser ? ncclSuccess : KL_NOMEM("an XML parser"));
        KL_TRY_OR(rc, out, run(&r, text, bytes));
    }
    *out = r.xml;
    r.xml = NULL;
out:
    if (r.parser) XML_ParserFree(r.parser);
    kl_xml_free(r.xml);
    return rc;
}

/* ---- files ---- */

static ncclResult_t read_all(FILE *from, const char *path, char **text, size_t *bytes)
{
    size_t used = 0, size = 16 << 10;
    char *buffer = NULL;

    for (;;) {
        char *grown = realloc(buffer, size);
        if (!grown) break;
        buffer = grown;
        used += fread(buffer + used, 1, size - used, from);
        if (used < size) {
            if (ferror(from)) {
                free(buffer);
                if (errno == EISDIR) return KL_FAIL(ncclSystemError, "%s is a folder; name the XML file in it", path);
                return KL_FAIL_ERRNO("reading %s", path);
            }
            *text = buffer;
            *bytes = used;
            return ncclSuccess;
        }
        if (size > KL_XML_MAX_BYTES) {
            free(buffer);
            return KL_FAIL(ncclInternalError, "%s: more than %d bytes; a topology or graph is smaller", path,
                           KL_XML_MAX_BYTES);
        }
        size *= 2;
    }
    free(buffer);
    return KL_NOMEM("an XML file");
}

ncclResult_t kl_xml_read(const char *path, char **text, size_t *bytes)
{
    bool standard_input = !strcmp(path, "-");
    FILE *from = standard_input ? stdin : fopen(path, "rbe");

    *text = NULL;
    *bytes = 0;
    if (!from) return KL_FAIL_ERRNO("opening %s", path);
    ncclResult_t rc = read_all(from, path, text, bytes);

    if (!standard_input) fclose(from);
    return rc;
}

ncclResult_t kl_xml_load(const char *path, const struct kl_xml_rule *schema, struct kl_xml **xml)
{
    char *text;
    size_t bytes;

    KL_TRY(kl_xml_read(path, &text, &bytes));
    ncclResult_t rc = kl_xml_parse(path, text, bytes, schema, xml);

    free(text);
    return rc;
}
