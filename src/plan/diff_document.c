/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct docs {
    const struct kl_diff_side *side_a, *side_b;
    const struct kl_xml *a, *b;
    struct kl_facts *facts;
    bool *used; /* elements of B that have a counterpart */
    int order;  /* the fact that the same GPUs have other ranks; -1 */
};

/* ---- names of elements ---- */

static bool is(const struct kl_xml *xml, int elem, const char *tag)
{
    return !strcmp(kl_xml_tag(xml, elem), tag);
}

/* Hosts are numbered as they appear: their hashes may differ where the machines are alike. */
static int host_index(const struct kl_xml *xml, int elem)
{
    uint64_t own = kl_xml_host_hash(xml, elem), before = own;
    int index = -1;

    for (int c = kl_xml_child(xml, KL_XML_ROOT, "cpu"); c != KL_XML_NONE; c = kl_xml_next_same(xml, c)) {
        uint64_t hash = kl_xml_host_hash(xml, c);

        if (index < 0 || hash != before) index++;
        if (hash == own) return index;
        before = hash;
    }
    return 0;
}

static void name_gpu(const struct docs *d, bool in_a, int rank, struct kl_part *part)
{
    bool known = in_a || (rank >= 0 && d->side_b->to_a[rank] >= 0);

    part->kind = KL_PART_GPU;
    part->number = known && !in_a ? d->side_b->to_a[rank] : rank;
    part->of_b = !known;
}

static struct kl_part name_element(const struct docs *d, bool in_a, int elem)
{
    const struct kl_xml *xml = in_a ? d->a : d->b;
    int gpu = is(xml, elem, "pci") ? kl_xml_child(xml, elem, "gpu") : elem, net = KL_XML_NONE;
    const char *busid = kl_xml_attr(xml, elem, "busid");
    struct kl_part part = {.kind = KL_PART_OTHER, .tag = kl_xml_tag(xml, elem), .host = host_index(xml, elem)};

    for (int e = elem; e != KL_XML_NONE && net == KL_XML_NONE; e = kl_xml_walk(xml, elem, e))
        if (is(xml, e, "net")) net = e;
    if (gpu != KL_XML_NONE && is(xml, gpu, "gpu")) {
        name_gpu(d, in_a, kl_xml_int(xml, gpu, "rank", -1), &part);
    } else if (is(xml, elem, "c2c")) {
        name_gpu(d, in_a, kl_xml_int(xml, kl_xml_parent(xml, elem), "rank", -1), &part);
    } else if (net != KL_XML_NONE && (elem == net || kl_xml_child(xml, elem, "nic") != KL_XML_NONE)) {
        part.kind = KL_PART_NET;
        part.number = kl_xml_int(xml, net, "dev", -1);
    } else if (busid) {
        part.kind = KL_PART_PCI;
        part.busid = kl_busid_parse(busid);
    } else if (is(xml, elem, "cpu")) {
        part.kind = KL_PART_CPU;
        part.number = kl_xml_int(xml, elem, "numaid", 0);
    }
    return part;
}

/* ---- attributes ---- */

static bool is_ignored(const char *key)
{
    static const char *const keys[] = {"rank", "affinity", "host_hash", "keep"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!strcmp(keys[i], key)) return true;
    return false;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static ncclResult_t add_attribute(struct docs *d, int ea, int eb, const char *key)
{
    struct kl_fact *f = kl_facts_add(d->facts, KL_FACT_ATTRIBUTE, KL_CHANGE_ATTRIBUTE);

    if (!f) return KL_NOMEM("differences");
    f->part = name_element(d, true, ea);
    f->c2c = is(d->a, ea, "c2c");
    f->key = key;
    f->a = kl_xml_attr(d->a, ea, key);
    f->b = kl_xml_attr(d->b, eb, key);
    return kl_facts_add_op(d->facts, d->facts->nfacts - 1, ea, eb, key);
}

static ncclResult_t compare_attributes(struct docs *d, int ea, int eb)
{
    const char *key, *value;

    for (int i = 0; i < kl_xml_nattrs(d->a, ea); i++) {
        kl_xml_attr_at(d->a, ea, i, &key, &value);
        if (!is_ignored(key) && !same_text(value, kl_xml_attr(d->b, eb, key))) KL_TRY(add_attribute(d, ea, eb, key));
    }
    for (int i = 0; i < kl_xml_nattrs(d->b, eb); i++) {
        kl_xml_attr_at(d->b, eb, i, &key, &value);
        if (!is_ignored(key) && !kl_xml_attr(d->a, ea, key)) KL_TRY(add_attribute(d, ea, eb, key));
    }
    return ncclSuccess;
}

/* ---- whole elements ---- */

/* The GPUs and NETs of a subtree: how many, and the first; itself without any. */
static void name_contents(const struct docs *d, bool in_a, int elem, struct kl_fact *f)
{
    const struct kl_xml *xml = in_a ? d->a : d->b;

    for (int e = elem; e != KL_XML_NONE; e = kl_xml_walk(xml, elem, e)) {
        if (!is(xml, e, "gpu") && !is(xml, e, "net")) continue;
        if (f->kind != KL_FACT_GPU) f->kind = is(xml, e, "gpu") ? KL_FACT_GPU : KL_FACT_NET;
        if (f->nparts++ == 0) f->part = name_element(d, in_a, e);
    }
    if (!f->nparts) f->part = name_element(d, in_a, elem);
}

static bool has_net(const struct kl_xml *xml, int dev)
{
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        if (is(xml, e, "net") && kl_xml_int(xml, e, "dev", -1) == dev) return true;
    return false;
}

/* A NET that the other side also has, below another device. */
static bool has_moved(const struct docs *d, bool in_a, int elem)
{
    const struct kl_xml *xml = in_a ? d->a : d->b;

    while (elem != KL_XML_NONE && !is(xml, elem, "net")) elem = kl_xml_first(xml, elem);
    return elem != KL_XML_NONE && has_net(in_a ? d->b : d->a, kl_xml_int(xml, elem, "dev", -1));
}

static ncclResult_t add_element(struct docs *d, int ea, int eb, int parent)
{
    bool in_a = ea != KL_XML_NONE;
    struct kl_fact *f = kl_facts_add(d->facts, KL_FACT_ATTRIBUTE, in_a ? KL_CHANGE_GONE : KL_CHANGE_NEW);

    if (!f) return KL_NOMEM("differences");
    name_contents(d, in_a, in_a ? ea : eb, f);
    f->c2c = is(in_a ? d->a : d->b, in_a ? ea : eb, "c2c");
    if (f->nparts == 1 && f->kind == KL_FACT_NET && has_moved(d, in_a, in_a ? ea : eb))
        f->change = in_a ? KL_CHANGE_MOVED : KL_CHANGE_ARRIVED;
    return kl_facts_add_op(d->facts, d->facts->nfacts - 1, in_a ? ea : parent, in_a ? -1 : eb, "");
}

/* ---- ranks ---- */

/* Where GPUs are missing, later ones move up; only an order without such a cause is a fact. */
static ncclResult_t compare_rank(struct docs *d, int ga, int gb)
{
    if (same_text(kl_xml_attr(d->a, ga, "rank"), kl_xml_attr(d->b, gb, "rank")) ||
        d->side_a->cluster.gpus != d->side_b->cluster.gpus)
        return ncclSuccess;
    if (d->order < 0) {
        if (!kl_facts_add(d->facts, KL_FACT_GPU, KL_CHANGE_ORDER)) return KL_NOMEM("differences");
        d->order = d->facts->nfacts - 1;
    }
    return kl_facts_add_op(d->facts, d->order, ga, gb, "rank");
}

/* ---- the walk ---- */

static bool same_element(const struct docs *d, int ea, int eb)
{
    static const char *const keys[][2] = {{"cpu", "numaid"}, {"net", "dev"}, {"gpu", "mlopart"}, {"pcilink", "target"}};
    const char *tag = kl_xml_tag(d->a, ea);

    if (!is(d->b, eb, tag)) return false;
    if (!strcmp(tag, "cpu") && host_index(d->a, ea) != host_index(d->b, eb)) return false;
    if (!strcmp(tag, "pci")) {
        const char *a = kl_xml_attr(d->a, ea, "busid"), *b = kl_xml_attr(d->b, eb, "busid");
        return a && b ? kl_busid_parse(a) == kl_busid_parse(b) : a == b;
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!strcmp(tag, keys[i][0]))
            return same_text(kl_xml_attr(d->a, ea, keys[i][1]), kl_xml_attr(d->b, eb, keys[i][1]));
    return true;
}

static int counterpart(const struct docs *d, int ea, int parent_b)
{
    for (int e = kl_xml_first(d->b, parent_b); e != KL_XML_NONE; e = kl_xml_next(d->b, e))
        if (!d->used[e] && same_element(d, ea, e)) return e;
    return KL_XML_NONE;
}

static ncclResult_t compare(struct docs *d, int ea, int eb)
{
    KL_TRY(compare_attributes(d, ea, eb));
    if (is(d->a, ea, "gpu")) {
        KL_TRY(kl_diff_compare_links(d->a, d->b, ea, eb, d->side_a->cluster.options.nccl, d->facts));
        KL_TRY(compare_rank(d, ea, eb));
    }
    for (int e = kl_xml_first(d->a, ea); e != KL_XML_NONE; e = kl_xml_next(d->a, e)) {
        int same = is(d->a, e, "nvlink") ? KL_XML_NONE : counterpart(d, e, eb);

        if (is(d->a, e, "nvlink")) continue;
        if (same == KL_XML_NONE) {
            KL_TRY(add_element(d, e, KL_XML_NONE, ea));
            continue;
        }
        d->used[same] = true;
        KL_TRY(compare(d, e, same));
    }
    for (int e = kl_xml_first(d->b, eb); e != KL_XML_NONE; e = kl_xml_next(d->b, e))
        if (!is(d->b, e, "nvlink") && !d->used[e]) KL_TRY(add_element(d, KL_XML_NONE, e, ea));
    return ncclSuccess;
}

ncclResult_t kl_diff_compare_documents(const struct kl_diff_side *a, const struct kl_diff_side *b,
                                       struct kl_facts *facts)
{
    struct docs d = {.side_a = a, .side_b = b, .a = a->document, .b = b->document, .facts = facts, .order = -1};
    ncclResult_t rc;

    d.used = calloc((size_t)kl_xml_count(d.b) + 1, sizeof *d.used);
    if (!d.used) return KL_NOMEM("differences");
    rc = compare(&d, KL_XML_ROOT, KL_XML_ROOT);
    free(d.used);
    return rc;
}
