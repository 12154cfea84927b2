/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/xml.h"

#include "base/error.h"
#include "base/parse.h"
#include "topo/xml_tree.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 << 10 };

/* ---- memory ---- */

/* Memory, aligned for pointers; NULL when it is short. */
static void *take(struct kl_xml *xml, size_t bytes)
{
    struct kl_xml_block *b = xml->strings;
    size_t need = (bytes + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);

    if (!b || b->size - b->used < need) {
        size_t size = need > BLOCK_BYTES ? need : BLOCK_BYTES;

        b = malloc(sizeof *b + size);
        if (!b) return NULL;
        *b = (struct kl_xml_block){.next = xml->strings, .size = size};
        xml->strings = b;
    }
    void *at = b->data + b->used;
    b->used += need;
    return at;
}

static const char *keep_text(struct kl_xml *xml, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = take(xml, bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

ncclResult_t kl_xml_create(const char *name, struct kl_xml **out)
{
    struct kl_xml *xml = calloc(1, sizeof *xml);

    if (!xml) return KL_NOMEM("an XML document");
    xml->name = keep_text(xml, name);
    if (!xml->name) {
        kl_xml_free(xml);
        return KL_NOMEM("an XML document");
    }
    *out = xml;
    return ncclSuccess;
}

void kl_xml_free(struct kl_xml *xml)
{
    if (!xml) return;
    for (struct kl_xml_block *b = xml->strings, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(xml->elem);
    free(xml);
}

/* ---- walking ---- */

const char *kl_xml_misplaced(const struct kl_xml *xml)
{
    return xml->misplaced;
}

const char *kl_xml_name(const struct kl_xml *xml)
{
    return xml->name;
}

bool kl_xml_empty(const struct kl_xml *xml)
{
    return !xml->rooted;
}

int kl_xml_count(const struct kl_xml *xml)
{
    return xml->nelems;
}

const char *kl_xml_tag(const struct kl_xml *xml, int elem)
{
    return xml->elem[elem].tag;
}

int kl_xml_parent(const struct kl_xml *xml, int elem)
{
    return xml->elem[elem].parent;
}

int kl_xml_first(const struct kl_xml *xml, int elem)
{
    return xml->elem[elem].first;
}

int kl_xml_next(const struct kl_xml *xml, int elem)
{
    return xml->elem[elem].next;
}

int kl_xml_line(const struct kl_xml *xml, int elem)
{
    return xml->elem[elem].line;
}

static int this_or_next(const struct kl_xml *xml, int elem, const char *tag)
{
    while (elem != KL_XML_NONE && strcmp(xml->elem[elem].tag, tag) != 0) elem = xml->elem[elem].next;
    return elem;
}

int kl_xml_child(const struct kl_xml *xml, int elem, const char *tag)
{
    return this_or_next(xml, xml->elem[elem].first, tag);
}

int kl_xml_next_same(const struct kl_xml *xml, int elem)
{
    return this_or_next(xml, xml->elem[elem].next, xml->elem[elem].tag);
}

int kl_xml_walk(const struct kl_xml *xml, int top, int elem)
{
    if (xml->elem[elem].first != KL_XML_NONE) return xml->elem[elem].first;
    while (elem != top && xml->elem[elem].next == KL_XML_NONE) elem = xml->elem[elem].parent;
    return elem == top ? KL_XML_NONE : xml->elem[elem].next;
}

int kl_xml_find(const struct kl_xml *xml, const char *tag, const char *key, const char *value)
{
    if (!xml->rooted) return KL_XML_NONE;
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e)) {
        if (strcmp(xml->elem[e].tag, tag) != 0) continue;
        const char *have = key ? kl_xml_attr(xml, e, key) : NULL;
        if (!key || (have && !strcmp(have, value))) return e;
    }
    return KL_XML_NONE;
}

/* ---- attributes ---- */

static struct kl_xml_attr *attr_of(const struct kl_xml *xml, int elem, const char *key)
{
    const struct kl_xml_elem *e = &xml->elem[elem];

    for (int i = 0; i < e->nattrs; i++)
        if (!strcmp(e->attr[i].key, key)) return &e->attr[i];
    return NULL;
}

int kl_xml_nattrs(const struct kl_xml *xml, int elem)
{
    return xml->elem[elem].nattrs;
}

void kl_xml_attr_at(const struct kl_xml *xml, int elem, int i, const char **key, const char **value)
{
    *key = xml->elem[elem].attr[i].key;
    *value = xml->elem[elem].attr[i].value;
}

const char *kl_xml_attr(const struct kl_xml *xml, int elem, const char *key)
{
    const struct kl_xml_attr *a = attr_of(xml, elem, key);

    return a ? a->value : NULL;
}

ncclResult_t kl_xml_need(const struct kl_xml *xml, int elem, const char *key, const char **value)
{
    const char *found = kl_xml_attr(xml, elem, key);

    if (!found)
        return kl_xml_fail(xml, elem, ncclInternalError, "<%s> has no attribute %s, which is required",
                           xml->elem[elem].tag, key);
    *value = found;
    return ncclSuccess;
}

/* strtol saturates at long. Sane numbers fit an int, as after NCCL's cast; hostile ones are clamped. */
static int to_int(const char *text)
{
    long number = strtol(text, NULL, 0);

    return number > INT32_MAX ? INT32_MAX : number < INT32_MIN ? INT32_MIN : (int)number;
}

ncclResult_t kl_xml_need_int(const struct kl_xml *xml, int elem, const char *key, int *value)
{
    const char *text = "";

    KL_TRY(kl_xml_need(xml, elem, key, &text));
    *value = to_int(text);
    return ncclSuccess;
}

static int lookup(const struct kl_xml_word *words, const char *text)
{
    const struct kl_xml_word *w = words;

    while (w->key && strncmp(text, w->key, strlen(w->key)) != 0) w++;
    return w->value;
}

ncclResult_t kl_xml_need_word(const struct kl_xml *xml, int elem, const char *key, const struct kl_xml_word *words,
                              int *value)
{
    const char *text = "";

    KL_TRY(kl_xml_need(xml, elem, key, &text));
    *value = lookup(words, text);
    return ncclSuccess;
}

int kl_xml_int(const struct kl_xml *xml, int elem, const char *key, int absent)
{
    const char *text = kl_xml_attr(xml, elem, key);

    return text ? to_int(text) : absent;
}

float kl_xml_float(const struct kl_xml *xml, int elem, const char *key, float absent)
{
    const char *text = kl_xml_attr(xml, elem, key);

    return text ? strtof(text, NULL) : absent;
}

uint64_t kl_xml_hex(const struct kl_xml *xml, int elem, const char *key)
{
    return kl_parse_hex(kl_xml_attr(xml, elem, key));
}

uint64_t kl_xml_host_hash(const struct kl_xml *xml, int elem)
{
    while (elem != KL_XML_NONE && strcmp(kl_xml_tag(xml, elem), "cpu") != 0) elem = kl_xml_parent(xml, elem);
    return elem == KL_XML_NONE ? 0 : kl_xml_hex(xml, elem, "host_hash");
}

/* ---- changing ---- */

ncclResult_t kl_xml_new(struct kl_xml *xml, const char *tag, int *elem)
{
    if (xml->nelems == KL_XML_MAX_ELEMS)
        return KL_FAIL(ncclInternalError, "%s: more than %d elements; describe fewer hosts per file", xml->name,
                       KL_XML_MAX_ELEMS);
    if (xml->nelems == xml->max_elems) {
        int max = xml->max_elems ? 2 * xml->max_elems : 64;
        struct kl_xml_elem *grown = realloc(xml->elem, (size_t)max * sizeof *grown);

        if (!grown) return KL_NOMEM("an XML document");
        xml->elem = grown;
        xml->max_elems = max;
    }
    const char *kept = keep_text(xml, tag);
    if (!kept) return KL_NOMEM("an XML document");
    xml->elem[xml->nelems] = (struct kl_xml_elem){.tag = kept,
                                                  .parent = KL_XML_NONE,
                                                  .first = KL_XML_NONE,
                                                  .last = KL_XML_NONE,
                                                  .prev = KL_XML_NONE,
                                                  .next = KL_XML_NONE};
    *elem = xml->nelems++;
    return ncclSuccess;
}

/* Put an unlinked element among the children of `parent`, before the child `before` or at the end. */
static void link_elem(struct kl_xml *xml, int elem, int parent, int before)
{
    struct kl_xml_elem *e = &xml->elem[elem], *p = &xml->elem[parent];

    e->parent = parent;
    e->next = before;
    e->prev = before == KL_XML_NONE ? p->last : xml->elem[before].prev;
    if (e->prev == KL_XML_NONE)
        p->first = elem;
    else
        xml->elem[e->prev].next = elem;
    if (before == KL_XML_NONE)
        p->last = elem;
    else
        xml->elem[before].prev = elem;
}

ncclResult_t kl_xml_add(struct kl_xml *xml, int parent, const char *tag, int *elem)
{
    int e = KL_XML_NONE;

    if (parent == KL_XML_NONE && xml->nelems)
        return KL_FAIL(ncclInternalError, "%s: a second root element <%s>", xml->name, tag);
    KL_TRY(kl_xml_new(xml, tag, &e));
    if (parent == KL_XML_NONE)
        xml->rooted = true;
    else
        link_elem(xml, e, parent, KL_XML_NONE);
    *elem = e;
    return ncclSuccess;
}

void kl_xml_place(struct kl_xml *xml, int elem, int parent, const char *busid)
{
    int before = xml->elem[parent].first;

    while (before != KL_XML_NONE) {
        const char *there = kl_xml_attr(xml, before, "busid");
        if (there && strcmp(there, busid) > 0) break;
        before = xml->elem[before].next;
    }
    link_elem(xml, elem, parent, before);
}

static ncclResult_t new_attr(struct kl_xml *xml, int elem, const char *key, struct kl_xml_attr **attr)
{
    struct kl_xml_elem *e = &xml->elem[elem];

    if (e->nattrs == KL_XML_MAX_ATTRS)
        return kl_xml_fail(xml, elem, ncclInternalError, "<%s> has more than %d attributes", e->tag, KL_XML_MAX_ATTRS);
    if (e->nattrs == e->max_attrs) {
        int max = e->max_attrs ? 2 * e->max_attrs : 8;
        struct kl_xml_attr *grown = take(xml, (size_t)max * sizeof *grown);

        if (!grown) return KL_NOMEM("an XML document");
        if (e->nattrs) memcpy(grown, e->attr, (size_t)e->nattrs * sizeof *grown);
        e->attr = grown;
        e->max_attrs = max;
    }
    const char *kept = keep_text(xml, key);
    if (!kept) return KL_NOMEM("an XML document");
    *attr = &e->attr[e->nattrs++];
    **attr = (struct kl_xml_attr){.key = kept, .value = ""};
    return ncclSuccess;
}

ncclResult_t kl_xml_set(struct kl_xml *xml, int elem, const char *key, const char *value)
{
    struct kl_xml_attr *a = attr_of(xml, elem, key);
    const char *kept = keep_text(xml, value);

    if (!kept) return KL_NOMEM("an XML document");
    if (!a) KL_TRY(new_attr(xml, elem, key, &a));
    a->value = kept;
    return ncclSuccess;
}

ncclResult_t kl_xml_set_int(struct kl_xml *xml, int elem, const char *key, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    return kl_xml_set(xml, elem, key, text);
}

ncclResult_t kl_xml_set_hex(struct kl_xml *xml, int elem, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, value ? "0x%" PRIx64 : "%" PRIx64, value);
    return kl_xml_set(xml, elem, key, text);
}

void kl_xml_unset(struct kl_xml *xml, int elem, const char *key)
{
    struct kl_xml_elem *e = &xml->elem[elem];
    struct kl_xml_attr *a = attr_of(xml, elem, key);

    if (!a) return;
    memmove(a, a + 1, (size_t)(e->attr + e->nattrs - (a + 1)) * sizeof *a);
    e->nattrs--;
}

void kl_xml_remove(struct kl_xml *xml, int elem)
{
    struct kl_xml_elem *e = &xml->elem[elem];

    if (e->parent == KL_XML_NONE) {
        if (elem == KL_XML_ROOT) xml->rooted = false;
        return;
    }
    if (e->prev == KL_XML_NONE)
        xml->elem[e->parent].first = e->next;
    else
        xml->elem[e->prev].next = e->next;
    if (e->next == KL_XML_NONE)
        xml->elem[e->parent].last = e->prev;
    else
        xml->elem[e->next].prev = e->prev;
    e->parent = e->prev = e->next = KL_XML_NONE;
}

ncclResult_t kl_xml_copy_flat(struct kl_xml *xml, int parent, const struct kl_xml *from, int src, int *elem)
{
    int e = KL_XML_NONE;

    KL_TRY(kl_xml_add(xml, parent, from->elem[src].tag, &e));
    xml->elem[e].line = from->elem[src].line;
    for (int i = 0; i < from->elem[src].nattrs; i++) {
        struct kl_xml_attr *a = NULL;
        const struct kl_xml_attr *f = &from->elem[src].attr[i];
        const char *value = keep_text(xml, f->value);

        if (!value) return KL_NOMEM("an XML document");
        KL_TRY(new_attr(xml, e, f->key, &a));
        a->value = value;
    }
    *elem = e;
    return ncclSuccess;
}

/* Depth is bounded by the parser and by the writers of documents, so recursion is too. */
ncclResult_t kl_xml_copy(struct kl_xml *xml, int parent, const struct kl_xml *from, int src, int *elem)
{
    int e, below;

    KL_TRY(kl_xml_copy_flat(xml, parent, from, src, &e));
    for (int c = from->elem[src].first; c != KL_XML_NONE; c = from->elem[c].next)
        KL_TRY(kl_xml_copy(xml, e, from, c, &below));
    *elem = e;
    return ncclSuccess;
}

ncclResult_t kl_xml_clone(const struct kl_xml *from, struct kl_xml **out)
{
    ncclResult_t rc = ncclSuccess;
    struct kl_xml *xml;
    int root;

    KL_TRY(kl_xml_create(from->name, &xml));
    if (from->rooted) KL_TRY_OR(rc, out, kl_xml_copy(xml, KL_XML_NONE, from, KL_XML_ROOT, &root));
    *out = xml;
    xml = NULL;
out:
    kl_xml_free(xml);
    return rc;
}

ncclResult_t kl_xml_fail(const struct kl_xml *xml, int elem, ncclResult_t code, const char *fmt, ...)
{
    char text[KL_ERROR_TEXT];
    va_list ap;
    int line = xml->elem[elem].line;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!line) return KL_FAIL(code, "%s: %s", xml->name, text);
    return KL_FAIL(code, "%s:%d: %s", xml->name, line, text);
}
