/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/log_make.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 1 << 14, MOST_GBPS = 100000 }; /* of a tree; of a link, GB/s */

/* ---- "=== System : maxBw 24.0 totalBw 24.0 ===" ---- */

/* Lines of several ranks may alternate: each has its own tree. -1: none is open. */
static int open_system(const struct kl_log *log, int origin)
{
    int s = log->origin[origin].system;

    return s < 0 || log->system[s].complete || log->system[s].cut ? -1 : s;
}

static bool read_head(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = kl_log_after(line->text, "=== System : max");

    if (!at || !strstr(at, " total")) return false;
    int m = kl_log_planning(log, origin, line->at);
    struct kl_log_system *s = m < 0 ? NULL : KL_LOG_NEW(log, system);

    if (!s) return true;
    *s = (struct kl_log_system){.at = line->at, .member = m, .origin = origin, .first = -1, .last = -1};
    log->origin[origin].system = log->nsystem - 1;
    return true;
}

/* A node: "GPU/0-17000 (0)". */
static void read_node(struct kl_log *log, const char *at, struct kl_log_node *n)
{
    size_t type = strcspn(at, "/ "), id;

    n->type = kl_log_keep(log, at, type);
    at += type + (at[type] == '/');
    id = strcspn(at, " ");
    n->id = kl_log_keep(log, at, id);
    at += id + strspn(at + id, " (");
    n->more = kl_log_keep(log, at, strcspn(at, ")"));
}

/* The parent is the last node of the same tree with a smaller depth. */
static int parent_at(const struct kl_log *log, int system, int depth)
{
    int i = log->system[system].last;

    while (i >= 0 && log->node[i].depth >= depth) i = log->node[i].before;
    return i;
}

static void add_node(struct kl_log *log, int system, int depth, const char *node, int link, double bw)
{
    int parent = depth < 0 ? -1 : parent_at(log, system, depth);
    struct kl_log_system *s = &log->system[system];
    struct kl_log_node *n = s->n < NODES ? KL_LOG_NEW(log, node) : NULL;

    if (!n) {
        log->full = s->cut = true;
        return;
    }
    *n = (struct kl_log_node){.system = system,
                              .depth = depth,
                              .parent = parent,
                              .before = s->last,
                              .next = -1,
                              .link = (enum kl_path_type)link,
                              .bw = bw >= 0 && bw < MOST_GBPS ? bw : 0};
    read_node(log, node, n);
    s->n++;
    if (s->last >= 0) log->node[s->last].next = log->nnode - 1;
    s->last = log->nnode - 1;
    if (s->first < 0) s->first = s->last;
}

/* "PCI/0-1000 (1002147800000000)": vendor and device ids; a rank may be 1002 as well. */
static bool is_amd(const char *node)
{
    const char *ids = strstr(node, "(1002");

    return ids && strspn(ids + 1, "0123456789abcdef") == 16;
}

/* "+ PCI[24.0] - GPU/0-17000 (0)", indented by where it hangs. */
static bool read_branch(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    int column = (int)strspn(line->text, " ");
    const char *plus = line->text + column, *bracket = strchr(plus, '['), *node = strstr(plus, "] - ");

    if (strncmp(plus, "+ ", 2) || !bracket || !node || node < bracket) return false;
    int type = kl_log_path_type(plus + 2), s = open_system(log, origin);

    log->amd |= strstr(plus, "XGMI[") || is_amd(node);
    if (type >= 0 && s >= 0 && log->system[s].last >= 0)
        add_node(log, s, column, node + 4, type, strtod(bracket + 1, NULL));
    return true;
}

static bool read_cpu(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    int s = open_system(log, origin);

    if (s < 0 || strncmp(line->text, "CPU/", 4) || !strchr(line->text, '(')) return false;
    add_node(log, s, -1, line->text, KL_PATH_LOC, 0);
    return true;
}

static bool read_end(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    int s = open_system(log, origin);

    if (strncmp(line->text, "==========", 10)) return false;
    if (s >= 0) log->system[s].complete = log->system[s].last >= 0;
    return true;
}

/* ---- "Pattern 4, crossNic 0, nChannels 12, bw 20.0/20.0, type NVL/PIX, sameChannels 1" ---- */

static bool read_graph(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = kl_log_after(line->text, "Pattern "), *bw = kl_log_after(line->text, ", bw "), *type;
    struct kl_log_graph g = {.at = line->at, .type_intra = -1, .type_inter = -1};

    if (!at || !strstr(at, "nChannels")) return false;
    if (!bw) bw = kl_log_after(line->text, ", speed ");
    g.pattern = (int)kl_log_number(line->text, "Pattern ", 0);
    g.nchannels = (int)kl_log_number(line->text, "nChannels ", 0);
    if (bw) {
        g.bw_intra = strtod(bw, NULL);
        g.bw_inter = strtod(bw + strcspn(bw, "/,") + 1, NULL);
    }
    type = kl_log_after(line->text, ", type ");
    if (type) {
        g.type_intra = kl_log_path_type(type);
        type += strcspn(type, "/,");
        if (*type == '/') g.type_inter = kl_log_path_type(type + 1);
    }
    g.member = kl_log_planning(log, origin, line->at);
    struct kl_log_graph *kept = g.member < 0 ? NULL : KL_LOG_NEW(log, graph);

    if (kept) *kept = g;
    return true;
}

/* "GPU/17000 :GPU/17000 (0/5000.0/LOC) ...": paths follow from the links, and are not kept. */
static bool read_paths(const struct kl_log_line *line)
{
    const char *colon = strstr(line->text, " :");

    return colon && strchr(line->text, '/') && strchr(line->text, '/') < colon && strstr(colon, "/LOC)");
}

bool kl_log_read_machine(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    return read_head(log, origin, line) || read_branch(log, origin, line) || read_cpu(log, origin, line) ||
           read_end(log, origin, line) || read_graph(log, origin, line) || read_paths(line);
}
