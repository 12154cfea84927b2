/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/edit.h"

#include "base/error.h"
#include "base/param_names.h"
#include "base/parse.h"
#include "base/text.h"
#include "plan/cluster.h"
#include "plan/topo_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

static const struct kl_param_set *set_with(const struct kl_param_registry *params, const struct kl_param *param)
{
    const struct kl_param_set *const *set = params->sets;
    size_t row = 0;

    while (&(*set)->params[row] != param)
        if (++row == (*set)->nparams) set++, row = 0;
    return *set;
}

/* Would the library take the value? */
static ncclResult_t check_value(const struct kl_param_registry *params, const struct kl_param *param,
                                const struct kl_setting *over)
{
    const struct kl_settings none = {
        .environment = (char *const[]){NULL}, .user = KL_CONF_NONE, .system = KL_CONF_NONE};
    const struct kl_settings only = kl_settings_over(&none, over, 1);
    void *config = calloc(1, set_with(params, param)->config_bytes);
    struct kl_setting found;
    char expected[512];

    if (!config) return KL_NOMEM("settings");
    enum kl_param_state state = kl_param_load_row(param, config, &only, &found);
    free(config);
    if (state != KL_PARAM_IS_REFUSED) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "--with %s=%s: the value is refused; expected: %s", over->name, over->text,
                   kl_param_expected(param, expected, sizeof expected));
}

static ncclResult_t check_setting(const struct kl_param_registry *params, const struct kl_setting *over)
{
    const struct kl_param *param = kl_param_find(params, over->name);

    if (param) return check_value(params, param, over);
    if (!strcmp(over->name, "NCCL_CONF_FILE"))
        return KL_FAIL(ncclInvalidArgument,
                       "--with NCCL_CONF_FILE: settings come in one by one; give those of the file");
    if (kl_param_find_other(params, over->name)) return ncclSuccess;
    const char *nearest = kl_param_nearest(params, over->name);
    if (nearest)
        return KL_FAIL(ncclInvalidArgument, "--with %s: no such setting; did you mean %s?", over->name, nearest);
    return KL_FAIL(ncclInvalidArgument, "--with %s: no such setting; `kolo env` lists all", over->name);
}

static size_t bytes_of_names(const struct kl_edit_list *with)
{
    size_t bytes = 0;

    for (int i = 0; i < with->n; i++) bytes += strcspn(with->text[i], "=") + 1;
    return bytes;
}

ncclResult_t kl_edit_settings(const struct kl_edits *edits, struct kl_setting **over)
{
    const struct kl_edit_list *with = &edits->with;
    size_t head = ((size_t)with->n + 1) * sizeof(struct kl_setting);
    struct kl_setting *s = calloc(1, head + bytes_of_names(with));
    char *name = (char *)s + head;
    ncclResult_t rc = ncclSuccess;

    if (!s) return KL_NOMEM("settings");
    for (int i = 0; i < with->n && !rc; i++) {
        size_t length = strcspn(with->text[i], "=");

        if (!length || !with->text[i][length]) {
            rc =
                KL_FAIL(ncclInvalidArgument, "--with %s: expected NAME=VALUE, as in NCCL_P2P_LEVEL=SYS", with->text[i]);
            break;
        }
        memcpy(name, with->text[i], length);
        s[i] = (struct kl_setting){.name = name, .text = with->text[i] + length + 1, .file = "--with"};
        name += length + 1;
        rc = check_setting(edits->params, &s[i]);
    }
    if (rc)
        free(s);
    else
        *over = s;
    return rc;
}

/* ---- the machine ---- */

struct machine {
    struct kl_cluster *cluster;
    struct kl_topo *topo; /* before any change; no paths */
    int *elem;            /* of the file, by ordinal of the GPU */
    bool *out;            /* by rank: left out */
};

static const struct kl_node *node_at(const struct machine *m, int node)
{
    return &m->topo->node[node];
}

/* The gpu element of a GPU node. */
static int elem_of(const struct machine *m, int node)
{
    return m->elem[m->cluster->device[node_at(m, node)->gpu.rank].ordinal];
}

static void add_names(const struct machine *m, enum kl_node_type type, struct kl_text *text)
{
    enum { SHOWN = 16 };
    char name[KL_NODE_TEXT];
    int n = m->topo->count[type];

    for (int i = 0; i < n && i < SHOWN; i++)
        kl_text_add(text, "%s%s", text->length ? ", " : "", kl_topo_name(m->topo, kl_topo_at(m->topo, type, i), name));
    if (n > SHOWN) kl_text_add(text, ", ... (%d)", n);
}

/* `asked` is the option, for the message. */
static ncclResult_t find_node(const struct machine *m, const char *asked, const char *name, int *node)
{
    char there[640];
    struct kl_text text = kl_text_over(there, sizeof there);

    *node = kl_topo_named(m->topo, name);
    if (*node < 0 && !strcmp(name, "NVS") && m->topo->count[KL_NODE_NVS]) *node = kl_topo_at(m->topo, KL_NODE_NVS, 0);
    if (*node >= 0) return ncclSuccess;
    add_names(m, KL_NODE_GPU, &text);
    add_names(m, KL_NODE_NVS, &text);
    add_names(m, KL_NODE_NET, &text);
    return KL_FAIL(ncclInvalidUsage, "%s: %s has no %s; it has %s", asked, m->cluster->name, name, there);
}

/* ---- nodes ---- */

static void remove_net(struct kl_xml *xml, int dev)
{
    for (int e = KL_XML_ROOT, next; e != KL_XML_NONE; e = next) {
        next = kl_xml_walk(xml, KL_XML_ROOT, e);
        if (!strcmp(kl_xml_tag(xml, e), "net") && kl_xml_int(xml, e, "dev", -1) == dev) kl_xml_remove(xml, e);
    }
}

static ncclResult_t leave_out(struct machine *m, const char *name)
{
    char asked[96];
    int node;

    snprintf(asked, sizeof asked, "--without %.80s", name);
    KL_TRY(find_node(m, asked, name, &node));
    switch (node_at(m, node)->type) {
    case KL_NODE_GPU:
        m->out[node_at(m, node)->gpu.rank] = true;
        return ncclSuccess;
    case KL_NODE_NET:
        remove_net(m->cluster->file, node_at(m, node)->net.dev);
        return ncclSuccess;
    case KL_NODE_NVS:
        return KL_FAIL(ncclInvalidUsage, "--without %s: name the links that are lost, as in --without-link GPU/0-NVS",
                       name);
    default:
        return KL_FAIL(ncclInvalidUsage, "--without %s: only GPUs and NETs can be left out, as in GPU/2 or NET/3",
                       name);
    }
}

/* The GPUs that are left close ranks. */
static ncclResult_t close_ranks(const struct machine *m)
{
    struct kl_cluster *c = m->cluster;
    int n = 0;

    for (int r = 0; r < c->gpus; r++)
        if (!m->out[r]) c->device[n++].ordinal = c->device[r].ordinal;
    if (!n) return KL_FAIL(ncclInvalidUsage, "--without: no GPU of %s is left", c->name);
    c->gpus = n;
    return ncclSuccess;
}

/* ---- links ---- */

static int link_between(const struct kl_topo *t, int from, int to)
{
    for (int k = t->node[from].first_link; k < t->node[from].first_link + t->node[from].nlinks; k++)
        if (t->link[k].to == to && (t->link[k].type == KL_PATH_NVL || t->link[k].type == KL_PATH_C2C)) return k;
    return -1;
}

static ncclResult_t no_such_link(const struct machine *m, const char *spec, int from, int to)
{
    const struct kl_topo *t = m->topo;
    char name[KL_NODE_TEXT], there[640];
    struct kl_text text = kl_text_over(there, sizeof there);

    for (int k = t->node[from].first_link; k < t->node[from].first_link + t->node[from].nlinks; k++) {
        if (t->link[k].to == to)
            return KL_FAIL(ncclInvalidUsage,
                           "--without-link %s: this is a %s link; only NVLinks and C2C can be removed, as "
                           "nothing would lead to what is behind it; --without leaves that out",
                           spec, kl_link_type_name[t->link[k].type]);
        if (t->link[k].type == KL_PATH_NVL || t->link[k].type == KL_PATH_C2C)
            kl_text_add(&text, "%s%s", text.length ? ", " : "", kl_topo_name(t, t->link[k].to, name));
    }
    return KL_FAIL(ncclInvalidUsage, "--without-link %s: there is no such link; %s has %s%s", spec,
                   kl_topo_name(t, from, name), text.length ? "NVLinks to " : "no NVLink", there);
}

/* Does an nvlink or c2c element of a GPU lead to `to`? */
static bool leads_to(const struct machine *m, int elem, int to)
{
    const struct kl_xml *xml = m->cluster->file;
    const struct kl_node *n = node_at(m, to);
    const char *target = kl_xml_attr(xml, elem, "target");
    enum kl_node_type end;

    if (!strcmp(kl_xml_tag(xml, elem), "c2c")) return n->type == KL_NODE_CPU;
    if (strcmp(kl_xml_tag(xml, elem), "nvlink") != 0 || kl_nvlink_end(xml, elem, &end) || end != n->type) return false;
    return end != KL_NODE_GPU || (target && kl_busid_parse(target) == kl_id_local(n->id));
}

/* Remove `count` links (0: all) from a GPU to a node; `had`: their number before. */
static ncclResult_t take_links(struct machine *m, int gpu, int to, int count, int64_t *had)
{
    struct kl_xml *xml = m->cluster->file;
    int64_t left = count ? count : INT64_MAX;

    *had = 0;
    for (int e = kl_xml_first(xml, elem_of(m, gpu)), next; e != KL_XML_NONE; e = next) {
        int links = kl_xml_int(xml, e, "count", 0), taken = links < left ? links : (int)left;

        next = kl_xml_next(xml, e);
        if (links <= 0 || !leads_to(m, e, to)) continue;
        *had += links;
        left -= taken;
        if (taken == links)
            kl_xml_remove(xml, e);
        else
            KL_TRY(kl_xml_set_int(xml, e, "count", links - taken));
    }
    return ncclSuccess;
}

static ncclResult_t cut(struct machine *m, const char *spec, int a, int b, int count)
{
    int gpu = node_at(m, a)->type == KL_NODE_GPU ? a : b, other = gpu == a ? b : a;
    int64_t had, back;

    if (node_at(m, gpu)->type != KL_NODE_GPU || link_between(m->topo, gpu, other) < 0)
        return no_such_link(m, spec, a, b);
    KL_TRY(take_links(m, gpu, other, count, &had));
    if (node_at(m, other)->type == KL_NODE_GPU) {
        KL_TRY(take_links(m, other, gpu, count, &back));
        if (back < had) had = back;
    }
    if (had < count)
        return KL_FAIL(ncclInvalidUsage, "--without-link %s: there %s only %" PRId64 " link%s", spec,
                       had == 1 ? "is" : "are", had, had == 1 ? "" : "s");
    return ncclSuccess;
}

/* Split `A-B` in two: names may hold dashes themselves, as GPU/0-17000 does; the right dash gives two nodes. */
static ncclResult_t split_pair(const struct machine *m, const char *spec, char *pair, int *a, int *b)
{
    for (char *dash = strchr(pair, '-'); dash; dash = strchr(dash + 1, '-')) {
        int quiet = kl_error_quiet(1);

        *dash = 0;
        bool both = !find_node(m, "", pair, a) && !find_node(m, "", dash + 1, b);
        kl_error_quiet(quiet);
        *dash = '-';
        if (both) return ncclSuccess;
    }
    char *dash = strchr(pair, '-'), asked[128];
    if (!dash || dash == pair || !dash[1])
        return KL_FAIL(ncclInvalidArgument, "--without-link %s: expected two nodes, as in GPU/0-GPU/1 or GPU/0-NVS",
                       spec);
    *dash = 0;
    snprintf(asked, sizeof asked, "--without-link %.110s", spec);
    KL_TRY(find_node(m, asked, pair, a));
    return find_node(m, asked, dash + 1, b);
}

static ncclResult_t cut_named(struct machine *m, const char *spec)
{
    char pair[2 * KL_NODE_TEXT + 2];
    const char *colon = strrchr(spec, ':');
    size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
    int64_t count = 0;
    int a, b;

    if (colon && (!kl_parse_int(colon + 1, &count) || count < 1 || count > 1024))
        return KL_FAIL(ncclInvalidArgument,
                       "--without-link %s: expected a number of links after the colon, as in GPU/0-GPU/1:1", spec);
    if (length >= sizeof pair)
        return KL_FAIL(ncclInvalidArgument, "--without-link %s: expected two nodes, as in GPU/0-GPU/1", spec);
    snprintf(pair, sizeof pair, "%.*s", (int)length, spec);
    KL_TRY(split_pair(m, spec, pair, &a, &b));
    return cut(m, spec, a, b, (int)count);
}

/* ---- all ---- */

static ncclResult_t look(struct machine *m)
{
    struct kl_cluster *c = m->cluster;
    struct kl_xml *document = NULL;
    ncclResult_t rc;

    m->elem = calloc((size_t)kl_machine_file_gpus(c->file) + 1, sizeof *m->elem);
    m->out = calloc((size_t)c->gpus + 1, sizeof *m->out);
    if (!m->elem || !m->out) return KL_NOMEM("a machine");
    KL_TRY(kl_machine_complete(c->file, m->elem));
    KL_TRY_OR(rc, out, kl_machine_document(&c->machine, &c->options, &document));
    rc = kl_topo_build(document, &c->options, &m->topo);
out:
    kl_xml_free(document);
    return rc;
}

ncclResult_t kl_edit_machine(const struct kl_edits *edits, struct kl_cluster *cluster)
{
    struct machine m = {.cluster = cluster};
    ncclResult_t rc;

    KL_TRY_OR(rc, out, look(&m));
    for (int i = 0; i < edits->without_link.n; i++) KL_TRY_OR(rc, out, cut_named(&m, edits->without_link.text[i]));
    for (int i = 0; i < edits->without.n; i++) KL_TRY_OR(rc, out, leave_out(&m, edits->without.text[i]));
    rc = close_ranks(&m);
out:
    kl_topo_free(m.topo);
    free(m.elem);
    free(m.out);
    return rc;
}
