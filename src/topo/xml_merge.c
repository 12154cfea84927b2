/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "topo/xml.h"
#include "topo/xml_tree.h"

#include <stdlib.h>
#include <string.h>

/* Only RCCL writes version 2, and tells the kind of each of its GPUs. */
static bool has_amd_gpu(const struct kl_xml *xml)
{
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        if (!strcmp(xml->elem[e].tag, "gpu") && kl_xml_attr(xml, e, "gcn")) return true;
    return false;
}

ncclResult_t kl_xml_check_system(const struct kl_xml *xml)
{
    const char *version;

    if (!xml->rooted || strcmp(xml->elem[KL_XML_ROOT].tag, "system") != 0)
        return KL_FAIL(ncclInternalError, "%s: no <system> element; a topology starts with <system version=\"1\">",
                       xml->name);
    KL_TRY(kl_xml_need(xml, KL_XML_ROOT, "version", &version));
    long number = strtol(version, NULL, 0);
    if (number == 1 || (number == 2 && has_amd_gpu(xml))) return ncclSuccess;
    return kl_xml_fail(
        xml, KL_XML_ROOT, ncclInvalidUsage,
        "topology version %s; Kolo reads version 1, as NCCL writes it, and 2 where its GPUs are AMD's (gcn), as "
        "RCCL does",
        version);
}

/* Elements compared over the life of a document: files from outside must not keep us busy for hours. The 576 GPUs and
   576 NETs of one file with 144 hosts take 2^25. */
enum { MAX_COMPARED = 1 << 28 };

/* ---- trim ---- */

static bool is_marked(const struct kl_xml *xml, int elem, const char *mark)
{
    const char *keep = kl_xml_attr(xml, elem, "keep");

    return keep && !strcmp(keep, mark);
}

/* Does an element go when nothing below it is kept? */
static bool is_trimmed(const char *tag, bool nics)
{
    if (!strcmp(tag, "pci") || !strcmp(tag, "cpu")) return true;
    return nics && (!strcmp(tag, "nic") || !strcmp(tag, "net"));
}

static bool trim_below(struct kl_xml *xml, int elem, bool nics)
{
    const char *tag = xml->elem[elem].tag;
    bool kept = false;

    if (is_marked(xml, elem, "1")) {
        kl_xml_unset(xml, elem, "keep");
        return true;
    }
    for (int c = xml->elem[elem].first, next; c != KL_XML_NONE; c = next) {
        next = xml->elem[c].next;
        kept |= trim_below(xml, c, nics);
    }
    if ((!kept && is_trimmed(tag, nics)) || (!strcmp(tag, "net") && is_marked(xml, elem, "0")))
        kl_xml_remove(xml, elem);
    return kept;
}

void kl_xml_trim(struct kl_xml *xml, bool nics)
{
    if (xml->rooted) trim_below(xml, KL_XML_ROOT, nics);
}

/* ---- fuse ---- */

static bool same_element(const struct kl_xml *a, int i, const struct kl_xml *b, int j)
{
    const struct kl_xml_elem *x = &a->elem[i], *y = &b->elem[j];

    if (strcmp(x->tag, y->tag) != 0 || x->nattrs != y->nattrs) return false;
    for (int k = 0; k < y->nattrs; k++) {
        const char *value = kl_xml_attr(a, i, y->attr[k].key);
        if (!value || strcmp(value, y->attr[k].value) != 0) return false;
    }
    return true;
}

struct fusion {
    struct kl_xml *to;
    const struct kl_xml *from;
    const bool *drop;
};

static ncclResult_t equal_child(struct fusion *f, int parent, int src, int *found)
{
    int c = f->to->elem[parent].first;

    for (; c != KL_XML_NONE && !same_element(f->to, c, f->from, src); c = f->to->elem[c].next) f->to->compared++;
    if (f->to->compared > MAX_COMPARED)
        return KL_FAIL(ncclInternalError, "%s: too many elements side by side; describe fewer devices", f->from->name);
    *found = c;
    return ncclSuccess;
}

static ncclResult_t copy_kept(struct fusion *f, int parent, int src)
{
    int elem;

    KL_TRY(kl_xml_copy_flat(f->to, parent, f->from, src, &elem));
    for (int c = f->from->elem[src].first; c != KL_XML_NONE; c = f->from->elem[c].next)
        if (!f->drop || !f->drop[c]) KL_TRY(copy_kept(f, elem, c));
    return ncclSuccess;
}

static ncclResult_t fuse_children(struct fusion *f, int elem, int src)
{
    for (int s = f->from->elem[src].first; s != KL_XML_NONE; s = f->from->elem[s].next) {
        int same = KL_XML_NONE;

        if (f->drop && f->drop[s]) continue;
        KL_TRY(equal_child(f, elem, s, &same));
        if (same == KL_XML_NONE)
            KL_TRY(copy_kept(f, elem, s));
        else
            KL_TRY(fuse_children(f, same, s));
    }
    return ncclSuccess;
}

ncclResult_t kl_xml_fuse(struct kl_xml *xml, const struct kl_xml *from, const bool *drop)
{
    struct fusion f = {.to = xml, .from = from, .drop = drop};

    if (!from->rooted) return ncclSuccess;
    if (!xml->rooted) return copy_kept(&f, KL_XML_NONE, KL_XML_ROOT);
    return fuse_children(&f, KL_XML_ROOT, KL_XML_ROOT);
}
