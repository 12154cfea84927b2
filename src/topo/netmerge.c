/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/netmerge.h"

#include "base/error.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CHAIN = 80, MAX_TRIES = 100 };

/* ---- distance ---- */

/* Elements from the root down to `elem`. */
static int chain_to(const struct kl_xml *xml, int elem, int *chain)
{
    int n = 0;

    for (int e = elem; e != KL_XML_NONE && n < MAX_CHAIN; e = kl_xml_parent(xml, e)) chain[n++] = e;
    for (int i = 0; i < n / 2; i++) {
        int other = chain[n - 1 - i];
        chain[n - 1 - i] = chain[i];
        chain[i] = other;
    }
    return n;
}

/* Functions of one device: bus ids that differ in the last character only. */
static bool same_device(const struct kl_xml *xml, int a, int b)
{
    const char *x = kl_xml_attr(xml, a, "busid"), *y = kl_xml_attr(xml, b, "busid");
    size_t n = x ? strlen(x) : 0;

    return x && y && n && n == strlen(y) && !strncmp(x, y, n - 1);
}

static int distance_over(const struct kl_xml *xml, int common, const int *a, int na, const int *b, int nb, int depth)
{
    const char *tag = kl_xml_tag(xml, common);

    if (!strcmp(tag, "nic") || !strcmp(tag, "net")) return KL_PATH_PORT;
    if (depth < na && depth < nb && same_device(xml, a[depth], b[depth])) return KL_PATH_PORT;
    if (!strcmp(tag, "pci")) return depth == na - 3 && depth == nb - 3 ? KL_PATH_PIX : KL_PATH_PXB;
    return !strcmp(tag, "cpu") ? KL_PATH_PHB : KL_PATH_SYS;
}

int kl_net_merge_distance(const struct kl_xml *xml, int net_a, int net_b, int *common)
{
    int a[MAX_CHAIN], b[MAX_CHAIN], na = chain_to(xml, net_a, a), nb = chain_to(xml, net_b, b), depth = 0;

    while (depth < na && depth < nb && a[depth] == b[depth]) depth++;
    *common = depth ? a[depth - 1] : KL_XML_NONE;
    return depth ? distance_over(xml, *common, a, na, b, nb, depth) : KL_PATH_DIS;
}

/* ---- groups ---- */

struct merge {
    const struct kl_detect *d;
    const struct kl_machine *m;
    int *elem;    /* per NET: its element */
    bool *placed; /* per NET */
    bool *apart;  /* per pair of NETs: the plugin refused a group with both */
    struct kl_net_facts *made;
    int nmade;
};

static ncclResult_t request(struct merge *g, const int *member, int n)
{
    struct kl_net_facts *net = &g->made[g->nmade];

    *net = (struct kl_net_facts){.nmembers = n};
    memcpy(net->member, member, (size_t)n * sizeof *member);
    KL_TRY(g->m->merge_nets(g->m->merge_ctx, member, n, net));
    for (int i = 0; i < n; i++) g->placed[member[i]] = true;
    g->nmade++;
    return ncclSuccess;
}

/* First NET that is not placed yet and is meant by `name` or `name:port` (n characters). */
static int find_net(const struct merge *g, const char *entry, size_t n)
{
    const char *colon = memchr(entry, ':', n);
    size_t length = colon ? (size_t)(colon - entry) : n;
    int port = colon ? (int)strtol(colon + 1, NULL, 10) : -1;

    for (int i = 0; i < g->m->nnets; i++) {
        const struct kl_net_facts *net = &g->m->net[i];
        if (!g->placed[i] && strlen(net->name) == length && !strncmp(net->name, entry, length) &&
            (port == -1 || port == net->port))
            return i;
    }
    return -1;
}

static ncclResult_t force_group(struct merge *g, const char *text, size_t n)
{
    int member[KL_NET_MAX_MEMBERS], count = 0;

    for (size_t at = 0; at < n;) {
        size_t length = strcspn(text + at, ",;");
        int net = length ? find_net(g, text + at, length) : -1;

        if (length && (net < 0 || count == KL_NET_MAX_MEMBERS))
            return KL_FAIL(ncclInvalidUsage, "NCCL_NET_FORCE_MERGE: \"%.*s\" in \"%.*s\" %s", (int)length, text + at,
                           (int)n, text, net < 0 ? "is no NET, or one used before" : "is one too many; 4 at most");
        if (length) {
            member[count++] = net;
            g->placed[net] = true;
        }
        at += length + 1;
    }
    if (!count) return ncclSuccess;
    if (request(g, member, count))
        return KL_FAIL(ncclInvalidUsage, "NCCL_NET_FORCE_MERGE: the network cannot join \"%.*s\"", (int)n, text);
    return ncclSuccess;
}

static ncclResult_t force_groups(struct merge *g, const char *text)
{
    while (text && *text) {
        size_t n = strcspn(text, ";");

        KL_TRY(force_group(g, text, n));
        text += n + (text[n] == ';');
    }
    return ncclSuccess;
}

static bool *apart(const struct merge *g, int a, int b)
{
    return &g->apart[(size_t)a * (size_t)g->m->nnets + (size_t)b];
}

/* `first` and what is not placed and near enough. */
static int gather(const struct merge *g, int first, int level, int *member)
{
    int n = 0, common;

    member[n++] = first;
    for (int i = 0; i < g->m->nnets && n < KL_NET_MAX_MEMBERS; i++)
        if (i != first && !g->placed[i] && !*apart(g, first, i) &&
            kl_net_merge_distance(g->d->xml, g->elem[first], g->elem[i], &common) <= level)
            member[n++] = i;
    return n;
}

/* After a refusal all is tried again without that group; a NET that is refused even alone stays as it is. */
static void auto_groups(struct merge *g, int level)
{
    int member[KL_NET_MAX_MEMBERS];

    for (int i = 0; i < g->m->nnets; i++) {
        if (g->placed[i]) continue;
        int n = gather(g, i, level, member), quiet = kl_error_quiet(1);
        ncclResult_t rc = request(g, member, n);

        kl_error_quiet(quiet);
        if (!rc) continue;
        for (int k = 1; k < n; k++) *apart(g, i, member[k]) = *apart(g, member[k], i) = true;
        if (n == 1)
            g->placed[i] = true;
        else
            i = -1;
    }
}

/* ---- places of virtual NETs ---- */

/* What is above all members; for functions of one device, what is above the device; at least a cpu. */
static int above_members(const struct merge *g, const struct kl_net_facts *net)
{
    int common = g->elem[net->member[0]];

    for (int i = 1; i < net->nmembers; i++) {
        int both;
        kl_net_merge_distance(g->d->xml, common, g->elem[net->member[i]], &both);
        common = both;
    }
    if (common != KL_XML_ROOT) return common;
    common = g->elem[net->member[0]]; /* members of several cpus stand below the first one's */
    while (strcmp(kl_xml_tag(g->d->xml, common), "cpu") != 0) common = kl_xml_parent(g->d->xml, common);
    return common;
}

/* A PCI device for a virtual card: like the first member's, with the next bus id that is free. */
static ncclResult_t make_card(const struct merge *g, int above, int member, int *card)
{
    struct kl_xml *xml = g->d->xml;
    int like = kl_xml_parent(xml, kl_xml_parent(xml, g->elem[member])), elem;
    const char *old, *key, *value;
    char busid[KL_BUSID_TEXT];
    int tries = 1;

    KL_TRY(kl_xml_need(xml, like, "busid", &old));
    do kl_busid_text(kl_busid_parse(old) + (uint64_t)tries, busid);
    while (kl_xml_find(xml, "pci", "busid", busid) != KL_XML_NONE && tries++ < MAX_TRIES);
    if (tries > MAX_TRIES) return KL_FAIL(ncclInternalError, "no free bus id after %s for a virtual NIC", old);
    KL_TRY(kl_xml_new(xml, "pci", &elem));
    KL_TRY(kl_xml_set(xml, elem, "busid", busid));
    for (int i = 0; i < kl_xml_nattrs(xml, like); i++) {
        kl_xml_attr_at(xml, like, i, &key, &value);
        if (strcmp(key, "busid") != 0) KL_TRY(kl_xml_set(xml, elem, key, value));
    }
    kl_xml_place(xml, elem, above, busid);
    *card = elem;
    return ncclSuccess;
}

static ncclResult_t place_virtual(const struct merge *g, const struct kl_net_facts *net)
{
    struct kl_xml *xml = g->d->xml;
    int parent = KL_XML_NONE;

    if (net->nmembers > 1 && kl_xml_find(xml, "net", "name", net->name) == KL_XML_NONE) {
        parent = above_members(g, net);
        if (!strcmp(kl_xml_tag(xml, parent), "pci")) KL_TRY(make_card(g, parent, net->member[0], &parent));
    }
    return kl_detect_net(g->d, net, true, parent);
}

static ncclResult_t place_all_virtual(const struct merge *g, const struct kl_net_facts *net, int n)
{
    for (int i = 0; i < n; i++)
        if (net[i].nmembers) KL_TRY(place_virtual(g, &net[i]));
    return ncclSuccess;
}

/* ---- the whole ---- */

enum kl_merge_why kl_net_merge_why(const struct kl_machine *m)
{
    if (kl_machine_plays_file(m)) return KL_MERGE_FROM_FILE;
    for (int i = 0; i < m->nnets; i++)
        if (m->net[i].nmembers) return KL_MERGE_GIVEN;
    return m->merge_nets ? KL_MERGE_POSSIBLE : KL_MERGE_NO_PLUGIN;
}

const char *kl_merge_why_name(enum kl_merge_why why)
{
    static const char *const names[] = {[KL_MERGE_POSSIBLE] = "possible",
                                        [KL_MERGE_FROM_FILE] = "from_file",
                                        [KL_MERGE_GIVEN] = "given",
                                        [KL_MERGE_NO_PLUGIN] = "no_plugin"};

    return names[why];
}

const char *kl_merge_why_text(enum kl_merge_why why)
{
    static const char *const texts[] = {
        [KL_MERGE_POSSIBLE] = "the network merges them as NCCL_NET_FORCE_MERGE and NCCL_NET_MERGE_LEVEL say",
        [KL_MERGE_FROM_FILE] = ("NICs of a topology file stand as they are written there: NCCL_NET_FORCE_MERGE and "
                                "NCCL_NET_MERGE_LEVEL count when NCCL finds NICs itself"),
        [KL_MERGE_GIVEN] = "the network lists its merged NICs itself",
        [KL_MERGE_NO_PLUGIN] = "the network here cannot merge NICs",
    };

    return texts[why];
}

static ncclResult_t place_physical(struct merge *g, bool keep)
{
    for (int i = 0; i < g->m->nnets; i++) {
        const struct kl_net_facts *net = &g->m->net[i];

        if (net->nmembers) continue;
        KL_TRY(kl_detect_net(g->d, net, keep, KL_XML_NONE));
        g->elem[i] = kl_xml_find(g->d->xml, "net", "name", net->name);
    }
    return ncclSuccess;
}

static ncclResult_t check_members(const struct kl_machine *m)
{
    for (int i = 0; i < m->nnets; i++) {
        const struct kl_net_facts *net = &m->net[i];

        if (net->nmembers < 0 || net->nmembers > KL_NET_MAX_MEMBERS)
            return KL_FAIL(ncclInternalError, "NET %s of %d members", net->name, net->nmembers);
        for (int k = 0; k < net->nmembers; k++)
            if (net->member[k] < 0 || net->member[k] >= m->nnets || m->net[net->member[k]].nmembers)
                return KL_FAIL(ncclInternalError, "NET %s of NET %d, which is not a physical one", net->name,
                               net->member[k]);
    }
    return ncclSuccess;
}

static bool in_made(const struct merge *g, int net)
{
    for (int i = 0; i < g->nmade; i++)
        for (int k = 0; k < g->made[i].nmembers; k++)
            if (g->made[i].member[k] == net) return true;
    return false;
}

static ncclResult_t merge_and_place(struct merge *g, const struct kl_topo_options *options)
{
    enum kl_merge_why why = kl_net_merge_why(g->m);
    bool any_virtual = why == KL_MERGE_GIVEN, merging = why == KL_MERGE_POSSIBLE;

    KL_TRY(place_physical(g, true));
    if (merging) {
        KL_TRY(force_groups(g, options->force_merge));
        auto_groups(g, options->merge_level);
    }
    if (!any_virtual && !g->nmade) return ncclSuccess;
    KL_TRY(place_physical(g, false));
    for (int i = 0; i < g->m->nnets; i++)
        if (merging && !in_made(g, i)) KL_TRY(kl_detect_net(g->d, &g->m->net[i], true, KL_XML_NONE));
    return any_virtual ? place_all_virtual(g, g->m->net, g->m->nnets) : place_all_virtual(g, g->made, g->nmade);
}

ncclResult_t kl_net_merge_place(const struct kl_detect *d, const struct kl_machine *m,
                                const struct kl_topo_options *options)
{
    size_t n = (size_t)m->nnets + 1;
    struct merge g = {.d = d, .m = m};
    ncclResult_t rc;

    KL_TRY(check_members(m));
    g.elem = calloc(n, sizeof *g.elem);
    g.placed = calloc(n, sizeof *g.placed);
    g.apart = calloc(n * n, sizeof *g.apart);
    g.made = calloc(n, sizeof *g.made);
    if (g.elem && g.placed && g.apart && g.made)
        rc = merge_and_place(&g, options);
    else
        rc = KL_NOMEM("NETs");
    free(g.elem);
    free(g.placed);
    free(g.apart);
    free(g.made);
    return rc;
}
