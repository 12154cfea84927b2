/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain_diff.h"

#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>
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

static uint64_t host_of(const struct kl_xml *xml, int elem)
{
    while (elem != KL_XML_NONE && !is(xml, elem, "cpu")) elem = kl_xml_parent(xml, elem);
    const char *hash = elem == KL_XML_NONE ? NULL : kl_xml_attr(xml, elem, "host_hash");
    return hash ? strtoull(hash, NULL, 16) : 0;
}

/* Hosts are numbered as they appear: their hashes may differ where the machines are alike. */
static int host_index(const struct kl_xml *xml, int elem)
{
    uint64_t own = host_of(xml, elem), before = own;
    int index = -1;

    for (int c = kl_xml_child(xml, KL_XML_ROOT, "cpu"); c != KL_XML_NONE; c = kl_xml_next_same(xml, c)) {
        uint64_t hash = host_of(xml, c);

        if (index < 0 || hash != before) index++;
        if (hash == own) return index;
        before = hash;
    }
    return 0;
}

static void name_gpu(const struct docs *d, bool in_a, int rank, struct kl_text *t)
{
    if (in_a)
        kl_text_add(t, "GPU/%d", rank);
    else if (rank >= 0 && d->side_b->to_a[rank] >= 0)
        kl_text_add(t, "GPU/%d", d->side_b->to_a[rank]);
    else
        kl_text_add(t, "GPU/%d of B", rank);
}

static void name_element(const struct docs *d, bool in_a, int elem, struct kl_text *t)
{
    const struct kl_xml *xml = in_a ? d->a : d->b;
    int gpu = is(xml, elem, "pci") ? kl_xml_child(xml, elem, "gpu") : elem, net = KL_XML_NONE;
    const char *busid = kl_xml_attr(xml, elem, "busid");

    for (int e = elem; e != KL_XML_NONE && net == KL_XML_NONE; e = kl_xml_walk(xml, elem, e))
        if (is(xml, e, "net")) net = e;
    if (gpu != KL_XML_NONE && is(xml, gpu, "gpu"))
        name_gpu(d, in_a, kl_xml_int(xml, gpu, "rank", -1), t);
    else if (is(xml, elem, "c2c"))
        name_gpu(d, in_a, kl_xml_int(xml, kl_xml_parent(xml, elem), "rank", -1), t);
    else if (net != KL_XML_NONE && (elem == net || kl_xml_child(xml, elem, "nic") != KL_XML_NONE))
        kl_text_add(t, "NET/%d", kl_xml_int(xml, net, "dev", -1));
    else if (busid)
        kl_text_add(t, "PCI/%d-%" PRIx64, host_index(xml, elem), kl_busid_parse(busid));
    else if (is(xml, elem, "cpu"))
        kl_text_add(t, "CPU/%d-%d", host_index(xml, elem), kl_xml_int(xml, elem, "numaid", 0));
    else
        kl_text_add(t, "<%s>", kl_xml_tag(xml, elem));
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
    const char *a = kl_xml_attr(d->a, ea, key), *b = kl_xml_attr(d->b, eb, key);
    struct kl_fact *f = kl_facts_add(d->facts, KL_FACT_ATTRIBUTE);

    if (!f) return KL_NOMEM("differences");
    struct kl_text subject = kl_text_over(f->subject, sizeof f->subject);

    name_element(d, true, ea, &subject);
    snprintf(f->what, sizeof f->what, "%.60s%s", is(d->a, ea, "c2c") ? "C2C " : "", key);
    snprintf(f->a, sizeof f->a, "%.60s", a ? a : "unset");
    snprintf(f->b, sizeof f->b, "%.60s", b ? b : "unset");
    snprintf(f->predicate, sizeof f->predicate, "has %s %s instead of %s", f->what, f->b, f->a);
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

/* "GPU/3" or "GPU/3 and 2 more": the GPUs and NETs of a subtree; itself without any. Returns how many. */
static int name_contents(const struct docs *d, bool in_a, int elem, struct kl_text *t, int *kind)
{
    const struct kl_xml *xml = in_a ? d->a : d->b;
    int n = 0;

    *kind = KL_FACT_ATTRIBUTE;
    for (int e = elem; e != KL_XML_NONE; e = kl_xml_walk(xml, elem, e)) {
        if (!is(xml, e, "gpu") && !is(xml, e, "net")) continue;
        if (*kind != KL_FACT_GPU) *kind = is(xml, e, "gpu") ? KL_FACT_GPU : KL_FACT_NET;
        if (n++ == 0) name_element(d, in_a, e, t);
    }
    if (n > 1) kl_text_add(t, " and %d more", n - 1);
    if (!n) name_element(d, in_a, elem, t);
    return n;
}

static ncclResult_t add_element(struct docs *d, int ea, int eb, int parent)
{
    bool in_a = ea != KL_XML_NONE;
    struct kl_fact *f = kl_facts_add(d->facts, KL_FACT_ATTRIBUTE);

    if (!f) return KL_NOMEM("differences");
    struct kl_text subject = kl_text_over(f->subject, sizeof f->subject);
    int n = name_contents(d, in_a, in_a ? ea : eb, &subject, &f->kind);
    const char *c2c = is(in_a ? d->a : d->b, in_a ? ea : eb, "c2c") ? "its C2C link " : "";

    snprintf(f->what, sizeof f->what, *c2c ? "C2C link" : "presence");
    snprintf(f->a, sizeof f->a, in_a ? "there" : "absent");
    snprintf(f->b, sizeof f->b, in_a ? "absent" : "there");
    if (*c2c)
        snprintf(f->predicate, sizeof f->predicate, "%s its C2C link to the CPU", in_a ? "lost" : "got");
    else
        snprintf(f->predicate, sizeof f->predicate, "%s %s", n > 1 ? "are" : "is", in_a ? "gone" : "new");
    return kl_facts_add_op(d->facts, d->facts->nfacts - 1, in_a ? ea : parent, in_a ? -1 : eb, "");
}

/* ---- NVLinks ---- */

enum { MAX_ENDS = 64 }; /* of one GPU; what has more is compared as far as that */

struct link_end {
    enum kl_node_type type;
    uint64_t busid; /* of a GPU */
    int links[2];
};

static ncclResult_t collect_ends(const struct kl_xml *xml, int gpu, int side, struct link_end *end, int *n)
{
    for (int e = kl_xml_child(xml, gpu, "nvlink"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e)) {
        const char *target = kl_xml_attr(xml, e, "target");
        struct link_end found = {.busid = 0};
        int i = 0, count = kl_xml_int(xml, e, "count", 0);

        KL_TRY(kl_nvlink_end(xml, e, &found.type));
        if (found.type == KL_NODE_GPU && target) found.busid = kl_busid_parse(target);
        while (i < *n && (end[i].type != found.type || end[i].busid != found.busid)) i++;
        if (i == MAX_ENDS) break;
        if (i == *n) end[(*n)++] = found;
        if (count > 0) end[i].links[side] += count;
    }
    return ncclSuccess;
}

/* The rank of the GPU with a bus id in a document; -1 if there is none. */
static int rank_at(const struct kl_xml *xml, uint64_t busid, int like)
{
    uint64_t host = host_of(xml, like);

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e)) {
        const char *text = is(xml, e, "gpu") ? kl_xml_attr(xml, kl_xml_parent(xml, e), "busid") : NULL;
        if (text && kl_busid_parse(text) == busid && host_of(xml, e) == host) return kl_xml_int(xml, e, "rank", -1);
    }
    return -1;
}

static bool same_ends(const struct kl_fact *f, int x, int y)
{
    return f->kind == KL_FACT_LINK && ((f->ends[0] == x && f->ends[1] == y) || (f->ends[0] == y && f->ends[1] == x));
}

/* The fact about the links between two ends, in whichever direction it was seen first. */
static ncclResult_t link_fact(struct docs *d, int rank, int far, const struct link_end *end, int *index)
{
    for (*index = 0; *index < d->facts->nfacts; ++*index) {
        struct kl_fact *f = &d->facts->fact[*index];

        if (!same_ends(f, rank, far)) continue;
        if (f->links[0] == end->links[0] && f->links[1] == end->links[1]) f->ways = 2;
        return ncclSuccess;
    }
    struct kl_fact *f = kl_facts_add(d->facts, KL_FACT_LINK);
    if (!f) return KL_NOMEM("differences");
    f->ends[0] = rank;
    f->ends[1] = far;
    f->ways = end->type == KL_NODE_GPU ? 1 : 2;
    for (int i = 0; i < 2; i++) f->links[i] = end->links[i];
    return ncclSuccess;
}

static ncclResult_t add_link_ops(struct docs *d, int fact, int ga, int gb, const struct link_end *end)
{
    struct link_end one;

    for (int side = 0; side < 2; side++) {
        const struct kl_xml *xml = side ? d->b : d->a;

        for (int e = kl_xml_child(xml, side ? gb : ga, "nvlink"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e)) {
            const char *target = kl_xml_attr(xml, e, "target");

            KL_TRY(kl_nvlink_end(xml, e, &one.type));
            one.busid = one.type == KL_NODE_GPU && target ? kl_busid_parse(target) : 0;
            if (one.type != end->type || one.busid != end->busid) continue;
            KL_TRY(kl_facts_add_op(d->facts, fact, side ? ga : e, side ? e : -1, ""));
        }
    }
    return ncclSuccess;
}

static ncclResult_t compare_nvlinks(struct docs *d, int ga, int gb)
{
    struct link_end end[MAX_ENDS];
    int n = 0, rank = kl_xml_int(d->a, ga, "rank", -1), fact = 0;

    KL_TRY(collect_ends(d->a, ga, 0, end, &n));
    KL_TRY(collect_ends(d->b, gb, 1, end, &n));
    for (int i = 0; i < n; i++) {
        int far = end[i].type == KL_NODE_NVS ? KL_END_NVS : KL_END_CPU;

        if (end[i].links[0] == end[i].links[1]) continue;
        if (end[i].type == KL_NODE_GPU) far = rank_at(d->a, end[i].busid, ga);
        if (far == -1) continue; /* to a GPU that is not used: its absence is a fact of its own */
        KL_TRY(link_fact(d, rank, far, &end[i], &fact));
        d->facts->fact[fact].gbps = kl_nvlink_bw(kl_xml_int(d->a, ga, "sm", 80));
        KL_TRY(add_link_ops(d, fact, ga, gb, &end[i]));
    }
    return ncclSuccess;
}

/* ---- ranks ---- */

/* Where GPUs are missing the others close ranks; only an order that nothing explains is a fact. */
static ncclResult_t compare_rank(struct docs *d, int ga, int gb)
{
    if (same_text(kl_xml_attr(d->a, ga, "rank"), kl_xml_attr(d->b, gb, "rank")) ||
        d->side_a->cluster.gpus != d->side_b->cluster.gpus)
        return ncclSuccess;
    if (d->order < 0) {
        struct kl_fact *f = kl_facts_add(d->facts, KL_FACT_GPU);

        if (!f) return KL_NOMEM("differences");
        d->order = d->facts->nfacts - 1;
        snprintf(f->subject, sizeof f->subject, "the GPUs");
        snprintf(f->what, sizeof f->what, "order");
        snprintf(f->a, sizeof f->a, "as in A");
        snprintf(f->b, sizeof f->b, "another");
        snprintf(f->predicate, sizeof f->predicate, "have their ranks in another order");
    }
    return kl_facts_add_op(d->facts, d->order, ga, gb, "rank");
}

/* ---- the walk ---- */

static bool same_element(const struct docs *d, int ea, int eb)
{
    static const char *const keys[][2] = {{"cpu", "numaid"}, {"net", "dev"}, {"pcilink", "target"}};
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
        KL_TRY(compare_nvlinks(d, ea, eb));
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

ncclResult_t kl_diff_documents(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_facts *facts)
{
    struct docs d = {.side_a = a, .side_b = b, .a = a->document, .b = b->document, .facts = facts, .order = -1};
    ncclResult_t rc;

    d.used = calloc((size_t)kl_xml_count(d.b) + 1, sizeof *d.used);
    if (!d.used) return KL_NOMEM("differences");
    rc = compare(&d, KL_XML_ROOT, KL_XML_ROOT);
    free(d.used);
    return rc;
}
