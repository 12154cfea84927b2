/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/search_print.h"

#include "plan/topo_name.h"
#include "tools/kolo/explain/explain.h"

#include <string.h>

/* ---- faults ---- */

static void print_fault(const struct kl_search_report *report, const struct kl_fault_cost *c, FILE *to)
{
    char line[256];
    struct kl_text t = kl_text_in(line, sizeof line);

    fprintf(to, "  %s.\n", c->fault.text);
    if (!c->mended) {
        fprintf(to, "    Its cost is unknown: which links are missing is not known. %s\n",
                kl_anomaly_remedy(c->fault.code));
        return;
    }
    if (!c->costs) {
        fprintf(to, "    It costs these graphs nothing: %s they are no faster.\n", kl_search_mended(c));
        return;
    }
    kl_search_add_result(&c->without, &t);
    kl_text_add(&t, " instead of ");
    kl_search_add_result(&c->now, &t);
    fprintf(to, "    Searched again %s", kl_search_mended(c));
    if (c->hosts != report->planned.plan->hosts) fprintf(to, ", for %d hosts", c->hosts);
    fprintf(to, ": the %s graph has %s.\n    %s\n", kl_graph_name(c->now.id), line, kl_anomaly_remedy(c->fault.code));
}

static void print_faults(const struct kl_search_report *report, FILE *to)
{
    if (!report->nfaults) return;
    fprintf(to, "\nWhat looks wrong with the machine:\n");
    for (int i = 0; i < report->nfaults; i++) print_fault(report, &report->fault[i], to);
}

/* ---- what was wished, and what it gave ---- */

struct columns {
    const struct kl_topo *topo;
    bool nets, crossing, patterns; /* columns that this search needs */
    bool all;                      /* attempt by attempt */
    FILE *to;
};

/* Characters, not bytes. */
static int characters(const char *text, size_t bytes)
{
    int n = 0;

    for (size_t i = 0; i < bytes; i++) n += (text[i] & 0xc0) != 0x80;
    return n;
}

static void print_cell(const struct columns *c, int width, const char *text)
{
    int shown = characters(text, strlen(text));

    fprintf(c->to, "%s%*s", text, width > shown ? width - shown : 1, "");
}

static void type_cell(const struct columns *c, struct kl_range r)
{
    char text[32];

    if (r.from == r.to)
        print_cell(c, 10, kl_path_type_name[r.from]);
    else {
        snprintf(text, sizeof text, "%s..%s", kl_path_type_name[r.from], kl_path_type_name[r.to]);
        print_cell(c, 10, text);
    }
}

static const char *both(struct kl_range r, const char *no, const char *yes)
{
    return r.from == r.to ? (r.from ? yes : no) : "both";
}

/* Where the last column begins. */
static int result_column(const struct columns *c)
{
    return 40 + (c->nets ? 10 : 0) + (c->crossing ? 9 : 0) + (c->patterns ? 15 : 0);
}

static void print_head(const struct columns *c)
{
    fprintf(c->to, "  ");
    print_cell(c, 10, "attempt");
    print_cell(c, 10, "GB/s");
    print_cell(c, 10, "GPU-GPU");
    if (c->nets) print_cell(c, 10, "GPU-NIC");
    print_cell(c, 8, "orders");
    if (c->crossing) print_cell(c, 9, "NICs");
    if (c->patterns) print_cell(c, 15, "pattern");
    fprintf(c->to, "result\n");
}

/* Bandwidth inside, and to the network where that is another. */
static void print_bw(const struct columns *c, const struct kl_search_log_entry *k)
{
    char text[64];
    struct kl_text t = kl_text_in(text, sizeof text);

    kl_text_add(&t, "%g", (double)k->bw_from);
    if (k->bw_to != k->bw_from) kl_text_add(&t, "..%g", (double)k->bw_to);
    if (c->nets && (k->inter_from != k->bw_from || k->inter_to != k->bw_to)) {
        kl_text_add(&t, "/%g", (double)k->inter_from);
        if (k->inter_to != k->inter_from) kl_text_add(&t, "..%g", (double)k->inter_to);
    }
    print_cell(c, 10, text);
}

static void print_limits(const struct columns *c, const struct kl_search_log_entry *k)
{
    char text[48];

    if (k->first == k->last)
        snprintf(text, sizeof text, "%d", k->first + 1);
    else
        snprintf(text, sizeof text, "%d-%d", k->first + 1, k->last + 1);
    fprintf(c->to, "  ");
    print_cell(c, 10, text);
    print_bw(c, k);
    type_cell(c, k->type_intra);
    if (c->nets) type_cell(c, k->type_inter);
    print_cell(c, 8, both(k->same_channels, "any", "one"));
    if (c->crossing) print_cell(c, 9, both(k->cross_nic, "same", "crossing"));
    if (c->patterns)
        print_cell(c, 15, k->pattern.from == k->pattern.to ? kl_graph_pattern_name(k->pattern.to) : "several");
}

/* What an attempt gave: parts of a sentence. */
struct clauses {
    char text[6][160];
    int n;
};

/* A new one, to be written. */
static struct kl_text next_clause(struct clauses *c)
{
    char *text = c->text[c->n++];

    return kl_text_in(text, sizeof c->text[0]);
}

/* In a row with "; " between them, from column `at` on: what would make the line too long goes to the next. */
static void print_clauses(const struct clauses *c, int at, FILE *to)
{
    enum { PAGE = 140 };
    int used = at;

    for (int i = 0; i < c->n; i++) {
        bool last = i == c->n - 1;
        int n = characters(c->text[i], strlen(c->text[i])) + !last;

        if (used > at && used + 1 + n > PAGE) {
            fprintf(to, "\n%*s", at, "");
            used = at;
        }
        used += fprintf(to, "%s", used > at ? " " : "") + n;
        fprintf(to, "%s%s", c->text[i], last ? "" : ";");
    }
    fprintf(to, "\n");
}

static void add_full(const struct columns *c, int link, struct clauses *to)
{
    char from[KL_NODE_TEXT], end[KL_NODE_TEXT];
    struct kl_text t;

    if (link < 0) return;
    t = next_clause(to);
    kl_text_add(&t, "%s → %s most often full", kl_topo_name(c->topo, c->topo->link[link].from, from),
                kl_topo_name(c->topo, c->topo->link[link].to, end));
}

static void add_count(int n, const char *what, struct clauses *to)
{
    struct kl_text t;

    if (!n) return;
    t = next_clause(to);
    kl_text_add(&t, "%d %s", n, what);
}

static void add_failure(const struct columns *c, const struct kl_search_log_entry *k, bool before, struct clauses *to)
{
    struct kl_text t = next_clause(to);

    kl_text_add(&t, "nothing%s", before ? " better" : "");
    add_count(k->timeouts, "reached the step limit", to);
    add_count(k->repeated, "duplicates ignored", to);
    add_count(k->hopeless, "pruned", to);
    if (k->limiting_link < 0 && k->made) {
        t = next_clause(to);
        kl_text_add(&t, "no link was full");
    }
    add_full(c, k->limiting_link, to);
}

static void add_success(const struct columns *c, const struct kl_search_log_entry *k, struct clauses *to)
{
    struct kl_text t = next_clause(to);

    kl_text_add(&t, "%d channel%s", k->stored, kl_plural(k->stored));
    add_full(c, k->limiting_link, to);
    if (!k->next || k->next == KL_RELAX_FASTER) return;
    t = next_clause(to);
    kl_text_add(&t, "next: %s", kl_relaxation_name(k->next));
}

static void print_chapter(const struct columns *c, const struct kl_search_log_entry *k, bool before)
{
    struct clauses result = {.n = 0};

    if (k->stored)
        add_success(c, k, &result);
    else
        add_failure(c, k, before, &result);
    print_limits(c, k);
    print_clauses(&result, result_column(c), c->to);
}

static void print_pass(const struct columns *c, const struct kl_graph_report *g, int pass)
{
    int n = c->all ? g->why->nattempts : g->log->log_entries;
    bool before = pass > 1, head = false;

    for (int i = 0; i < n; i++) {
        struct kl_search_log_entry k = c->all ? kl_search_log_attempt(g->why, i) : g->log->entry[i];

        if (k.pass != pass) continue;
        if (!head) print_head(c);
        head = true;
        print_chapter(c, &k, before);
        before |= k.stored > 0;
    }
}

static bool second_pass(const struct kl_graph_report *g)
{
    return g->why->nattempts && g->why->attempt[g->why->nattempts - 1].pass == 2;
}

static void print_doubling(const struct kl_graph_report *g, FILE *to)
{
    if (g->why->doubling == KL_DOUBLING_NOT_ASKED || g->graph->pattern == KL_PATTERN_NVLS) return;
    if (g->why->doubling == KL_DOUBLING_DONE)
        fprintf(to, "  Then its channels were duplicated, each at half the bandwidth, as they had at least 25 GB/s.\n");
    else
        fprintf(to, "  Channels were %s.\n", kl_doubling_name(g->why->doubling));
}

static bool has_patterns(const struct kl_graph_report *g)
{
    for (int i = 1; i < g->why->nattempts; i++)
        if (g->why->attempt[i].pattern != g->why->attempt[0].pattern) return true;
    return false;
}

static void print_story(const struct kl_search_report *report, const struct kl_graph_report *g, bool all, FILE *to)
{
    const struct kl_topo *t = report->domain->topo;
    struct columns c = {t, report->domain->graphs.has_nets, t->count[KL_NODE_NET] > 1, has_patterns(g), all, to};

    if (!g->why->nattempts) return;
    fprintf(to, "  Constraints tried, and the result:\n");
    print_pass(&c, g, 1);
    fprintf(to, "  How it ended: %s", kl_search_end_name(g->why->end));
    if (g->why->end == KL_END_SATURATED) fprintf(to, " (%g GB/s in all)", (double)t->total_bw);
    fprintf(to, ".\n");
    print_doubling(g, to);
    if (!second_pass(g) || !g->why->found) return;
    fprintf(to, "  With the solution's constraints, more bandwidth was tried:\n");
    print_pass(&c, g, 2);
}

/* ---- loads ---- */

enum { GROUPS_SHOWN = 10 };

static void print_group(const struct kl_search_report *report, const struct kl_link_group *l, FILE *to)
{
    char name[160];
    struct kl_text t = kl_text_in(name, sizeof name);
    struct columns c = {.to = to};

    kl_search_add_links(report->domain->topo, l, &t);
    fprintf(to, "  ");
    print_cell(&c, 48, name);
    fprintf(to, "%7g  %7g  %7g", (double)l->used, (double)l->bw, (double)l->more);
    if (l->lacks > 0) fprintf(to, "  lacks %g", (double)l->lacks);
    if (l->lacks > 0 && l->nlacks < l->n) fprintf(to, " on %d of them", l->nlacks);
    fprintf(to, "\n");
}

static void print_loads(const struct kl_search_report *report, const struct kl_graph_report *g, bool all, FILE *to)
{
    struct columns c = {.to = to};
    int shown = all || g->ngroups <= GROUPS_SHOWN + 2 ? g->ngroups : GROUPS_SHOWN;

    if (!g->ngroups || g->why->end == KL_END_FALLBACK) return;
    fprintf(to, "  ");
    print_cell(&c, 48, "GB/s on links, fullest first");
    fprintf(to, "   used       of  one more (like channel %d)\n", g->load->like);
    for (int i = 0; i < shown; i++) print_group(report, &g->group[i], to);
    if (shown < g->ngroups) fprintf(to, "  ... and %d more groups; --all shows them\n", g->ngroups - shown);
}

static void print_limit(const struct kl_graph_report *g, FILE *to)
{
    if (g->load->like < 0 || g->why->end == KL_END_FALLBACK || g->load->limit == KL_LIMIT_LINKS ||
        g->load->limit == KL_LIMIT_PORTS)
        return;
    if (g->load->limit == KL_LIMIT_NONE)
        fprintf(to, "  There is room for one more like channel %d.\n", g->load->like);
    else if (g->id == KL_GRAPH_TREE || g->id == KL_GRAPH_COLLNET_CHAIN)
        fprintf(to, "  It may have no more channels than the ring: %d.\n", g->graph->max_channels);
    else
        fprintf(to, "  There may be no more than %d channels.\n", g->graph->max_channels);
}

/* ---- a graph ---- */

/* A pattern that goes without saying: its name is the graph's. */
static bool is_plain(const struct kl_graph *g)
{
    return (g->id == KL_GRAPH_RING && g->pattern == KL_PATTERN_RING) ||
           (g->id == KL_GRAPH_TREE && g->pattern == KL_PATTERN_TREE) ||
           (g->id == KL_GRAPH_NVLS && g->pattern == KL_PATTERN_NVLS);
}

static void print_graph(const struct kl_search_report *report, const struct kl_graph_report *g, bool all, FILE *to)
{
    const struct kl_graph *a = g->graph;
    struct kl_graph_result r = kl_graph_result_of(&report->domain->graphs, g->id);
    char line[128];
    struct kl_text t = kl_text_in(line, sizeof line);

    kl_search_add_result(&r, &t);
    fprintf(to, "\n%s: %s", kl_graph_name(g->id), line);
    if (a->nchannels) {
        if (!is_plain(a)) fprintf(to, ", %s", kl_graph_pattern_name(a->pattern));
        fprintf(to, ", GPU paths up to %s", kl_path_type_name[a->type_intra]);
        if (r.nets) fprintf(to, ", NIC paths up to %s", kl_path_type_name[a->type_inter]);
        if (a->pattern != KL_PATTERN_NVLS)
            fprintf(to, ", %s", a->same_channels ? "same order in all channels" : "orders may differ between channels");
        if (a->cross_nic) fprintf(to, ", crossing NICs");
    }
    fprintf(to, "\n");
    if (g->why->refused) fprintf(to, "  The graph file was not used: %s.\n", g->why->refused);
    if (!g->why->nattempts) fprintf(to, "  There was no search: %s.\n", kl_search_end_name(g->why->end));
    print_story(report, g, all, to);
    print_loads(report, g, all, to);
    print_limit(g, to);
}

/* ---- channels ---- */

static void print_channels(const struct kl_search_report *report, FILE *to)
{
    const struct kl_plan *p = report->planned.plan;
    const struct kl_connect *c = p->connect;

    fprintf(to, "\nThe communicator of %d rank%s on %d node%s has %d channels:\n", p->nranks, kl_plural(p->nranks),
            c->nodes.nnodes, kl_plural(c->nodes.nnodes), c->nchannels);
    for (int i = 0; i < c->nsteps; i++)
        fprintf(to, "  %3d  %s\n", c->step[i].after, kl_channel_reason_text(c->step[i].reason));
    if (c->coll_channels != c->nchannels)
        fprintf(to, "  Rings and trees use %d of them, NVLS %d.\n", c->coll_channels, c->nvls_channels);
}

static void print_domains(const struct kl_search_report *report, FILE *to)
{
    const struct kl_plan *p = report->planned.plan;
    int shown = p->ndomains < 10 ? p->ndomains : 10;

    if (p->ndomains < 2) return;
    fprintf(to,
            "\nGPUs that reach each other only through the network are searched apart. This was about those with "
            "rank %d; the others:\n",
            report->domain->rank);
    for (int i = 0; i < shown; i++) {
        char line[128];
        struct kl_text t = kl_text_in(line, sizeof line);
        struct kl_graph_result r = kl_graph_result_of(&p->domain[i].graphs, report->graph[0].id);

        if (&p->domain[i] == report->domain) continue;
        kl_search_add_result(&r, &t);
        fprintf(to, "  with rank %d, %s: %s\n", p->domain[i].rank, kl_graph_name(report->graph[0].id), line);
    }
    if (shown < p->ndomains) fprintf(to, "  ... and %d more\n", p->ndomains - shown);
}

void kl_search_text(const struct kl_search_report *report, bool all, FILE *to)
{
    char headline[KL_HEADLINE_TEXT];
    struct kl_text text = kl_text_in(headline, sizeof headline);

    kl_search_add_headline(report, &text);
    fprintf(to, "%s\n", headline);
    kl_explain_place(report->cluster, "", to);
    print_faults(report, to);
    for (int i = 0; i < report->ngraphs; i++) print_graph(report, &report->graph[i], all, to);
    print_channels(report, to);
    print_domains(report, to);
}
