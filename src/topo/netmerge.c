/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/netmerge.h"

#include "base/error.h"
#include "topo/netdistance.h"
#include "topo/netplace.h"

#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

struct merge {
    const struct kl_detect *d;
    const struct kl_machine *m;
    const struct kl_topo_options *options;
    int *elem;    /* per NET: its element */
    bool *placed; /* per NET */
    bool *apart;  /* per pair of NETs: the plugin refused a group with both */
    struct kl_net_facts *made;
    int nmade;
};

static bool has(const struct merge *g, enum kl_change change)
{
    return kl_nccl_has(g->options->nccl, change);
}

/* The most members of a virtual NET. */
static int most_members(const struct merge *g)
{
    return has(g, KL_CHANGE_MERGED_8) ? KL_NET_MAX_MEMBERS : 4;
}

static ncclResult_t ask_plugin(struct merge *g, const int *member, int n)
{
    struct kl_net_facts net = {.name = ""};

    KL_TRY(g->m->merge_nets(g->m->merge_ctx, member, n, &net));
    net.dev = g->m->nnets + g->nmade;
    net.nmembers = n;
    memcpy(net.member, member, (size_t)n * sizeof *member);
    g->made[g->nmade++] = net;
    return ncclSuccess;
}

/* Make one NET of a group. Older releases do that with a single NET, too. */
static ncclResult_t request(struct merge *g, const int *member, int n)
{
    if (n > 1 || !has(g, KL_CHANGE_MERGED_ONLY)) KL_TRY(ask_plugin(g, member, n));
    for (int i = 0; i < n; i++) g->placed[member[i]] = true;
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

        if (length && net < 0)
            return KL_FAIL(ncclInvalidUsage, "NCCL_NET_FORCE_MERGE: \"%.*s\" in \"%.*s\" is no NET, or one used before",
                           (int)length, text + at, (int)n, text);
        if (length && count == most_members(g))
            return KL_FAIL(ncclInvalidUsage, "NCCL_NET_FORCE_MERGE: \"%.*s\" in \"%.*s\" is one too many; %d at most",
                           (int)length, text + at, (int)n, text, count);
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

/* Does the policy allow joining two NETs? */
static bool may_join(const struct merge *g, int a, int b)
{
    int rail = kl_xml_int(g->d->xml, g->elem[a], "rail", -1);

    if (g->options->merge_policy == KL_MERGE_ALL || !has(g, KL_CHANGE_MERGE_POLICY)) return true;
    return rail >= 0 && rail == kl_xml_int(g->d->xml, g->elem[b], "rail", -1);
}

/* `first` and the NETs near it that are not placed yet. */
static int gather(const struct merge *g, int first, int *member)
{
    int n = 0, most = most_members(g), common;

    member[n++] = first;
    for (int i = 0; i < g->m->nnets && n < most; i++)
        if (i != first && !g->placed[i] && !*apart(g, first, i) && may_join(g, first, i) &&
            kl_net_distance(g->d->xml, g->elem[first], g->elem[i], &common) <= g->options->merge_level)
            member[n++] = i;
    return n;
}

/* After a refusal, try again without that group; a NET that is refused even alone stays. */
static void auto_groups(struct merge *g)
{
    int member[KL_NET_MAX_MEMBERS];

    for (int i = 0; i < g->m->nnets; i++) {
        if (g->placed[i]) continue;
        int n = gather(g, i, member), quiet = kl_error_quiet(1);
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

static ncclResult_t place_physical(struct merge *g)
{
    for (int i = 0; i < g->m->nnets; i++) {
        const struct kl_net_facts *net = &g->m->net[i];

        if (net->nmembers) continue;
        KL_TRY(kl_detect_net(g->d, net, true, KL_XML_NONE));
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

/* ---- the members of a merged NET ---- */

/* Is a NET part of one of these? */
static bool is_member(const struct kl_net_facts *net, int n, int of)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < net[i].nmembers; k++)
            if (net[i].member[k] == of) return true;
    return false;
}

/* Do NETs that were merged for an earlier communicator stay beside their virtual NET? */
static bool members_stay(const struct merge *g)
{
    return !g->nmade && has(g, KL_CHANGE_MERGED_STAY) && !has(g, KL_CHANGE_MERGED_GO);
}

/* A NET that is part of another one is kept only for its further roles, if it has any. */
static ncclResult_t unmark(const struct merge *g, int net)
{
    struct kl_xml *xml = g->d->xml;
    int elem = g->elem[net];
    bool other = kl_xml_int(xml, elem, "gin", 0) == 1 || kl_xml_int(xml, elem, "rma", 0) == 1;

    if (!other || !has(g, KL_CHANGE_MERGED_GO)) return kl_xml_set(xml, elem, "keep", "0");
    return kl_xml_set(xml, elem, "net", "0");
}

/* The older releases use nothing but virtual NETs once there is one. */
static ncclResult_t unmark_members(const struct merge *g, const struct kl_net_facts *net, int n)
{
    bool all = !g->nmade && !has(g, KL_CHANGE_MERGED_ONLY);

    for (int i = 0; i < g->m->nnets && !members_stay(g); i++)
        if (!g->m->net[i].nmembers && (all || is_member(net, n, i))) KL_TRY(unmark(g, i));
    return ncclSuccess;
}

static ncclResult_t place_virtual(const struct merge *g, const struct kl_net_facts *net, int n)
{
    KL_TRY(unmark_members(g, net, n));
    for (int i = 0; i < n; i++)
        if (net[i].nmembers) KL_TRY(kl_net_place_virtual(g->d, &net[i], g->elem));
    return ncclSuccess;
}

static ncclResult_t merge_and_place(struct merge *g)
{
    enum kl_merge_why why = kl_net_merge_why(g->m);

    KL_TRY(place_physical(g));
    if (why == KL_MERGE_GIVEN) return place_virtual(g, g->m->net, g->m->nnets);
    if (why != KL_MERGE_POSSIBLE) return ncclSuccess;
    KL_TRY(force_groups(g, g->options->force_merge));
    auto_groups(g);
    return place_virtual(g, g->made, g->nmade);
}

ncclResult_t kl_net_merge_place(const struct kl_detect *d, const struct kl_machine *m,
                                const struct kl_topo_options *options)
{
    size_t n = (size_t)m->nnets + 1;
    struct merge g = {.d = d, .m = m, .options = options};
    ncclResult_t rc;

    KL_TRY(check_members(m));
    g.elem = calloc(n, sizeof *g.elem);
    g.placed = calloc(n, sizeof *g.placed);
    g.apart = calloc(n * n, sizeof *g.apart);
    g.made = calloc(n, sizeof *g.made);
    if (g.elem && g.placed && g.apart && g.made)
        rc = merge_and_place(&g);
    else
        rc = KL_NOMEM("NETs");
    free(g.elem);
    free(g.placed);
    free(g.apart);
    free(g.made);
    return rc;
}
