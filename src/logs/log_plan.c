/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/log_make.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool blank_int(const char **at, int *value)
{
    *at += strspn(*at, " ");
    return kl_log_int(at, value);
}

static bool skip(const char **at, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(*at, word, n)) return false;
    *at += n;
    return true;
}

/* ---- rings ---- */

/* "Channel 00/08 :    0   3   2   1" */
static bool read_ring(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = line->text + strspn(line->text, " ");
    struct kl_log_ring r = {.at = line->at, .first = log->nrank};
    int rank, of;

    if (!skip(&at, "Channel ") || !kl_log_int(&at, &r.channel) || !skip(&at, "/") || !kl_log_int(&at, &of) ||
        !skip(&at, " :"))
        return false;
    if (r.channel < 0 || r.channel >= 64 || of > 64) return true;
    at += strspn(at, " ");
    if (!isdigit((unsigned char)*at)) return false;
    while (blank_int(&at, &rank) && rank >= 0) {
        int *kept = KL_LOG_NEW(log, rank);

        if (!kept) break;
        *kept = rank;
        r.n++;
    }
    if (*at) { /* a connection */
        log->nrank = r.first;
        return false;
    }
    r.member = kl_log_planning(log, origin, line->at);
    struct kl_log_ring *kept = r.member < 0 ? NULL : KL_LOG_NEW(log, ring);

    kl_log_reach(log, r.member, KL_LOG_PLANNED, line->at);

    if (kept) *kept = r;
    return true;
}

/* "Ring 00 : 3 -> 0 -> 1" */
static bool read_hop(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = line->text;
    struct kl_log_hop h = {.at = line->at};
    int before;

    if (!skip(&at, "Ring ") || !kl_log_int(&at, &h.channel) || !skip(&at, " : ") || !kl_log_int(&at, &before) ||
        !skip(&at, " -> ") || !kl_log_int(&at, &h.rank) || !skip(&at, " -> ") || !kl_log_int(&at, &h.next))
        return false;
    h.member = kl_log_planning(log, origin, line->at);
    struct kl_log_hop *kept = h.member < 0 || h.channel < 0 || h.channel >= 64 ? NULL : KL_LOG_NEW(log, hop);

    if (kept) *kept = h;
    return true;
}

/* ---- trees ---- */

/* "1/-1/-1->0->-1" */
static bool read_place(const char **at, struct kl_log_tree *t)
{
    return kl_log_int(at, &t->down[0]) && skip(at, "/") && kl_log_int(at, &t->down[1]) && skip(at, "/") &&
           kl_log_int(at, &t->down[2]) && skip(at, "->") && kl_log_int(at, &t->rank) && skip(at, "->") &&
           kl_log_int(at, &t->up);
}

/* "Trees [0] 1/-1/-1->0->-1 [1] ..." */
static bool read_trees(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = kl_log_after(line->text, "Trees ");
    int m;

    if (!at || *at != '[') return false;
    m = kl_log_planning(log, origin, line->at);
    kl_log_reach(log, m, KL_LOG_PLANNED, line->at);
    while (m >= 0 && skip(&at, "[")) {
        struct kl_log_tree t = {.at = line->at, .member = m};

        if (!kl_log_int(&at, &t.channel) || !skip(&at, "] ") || !read_place(&at, &t)) break;
        if (t.channel < 0 || t.channel >= 64) break;
        struct kl_log_tree *kept = KL_LOG_NEW(log, tree);

        if (kept) *kept = t;
        if (log->member[m].rank < 0) log->member[m].rank = t.rank;
        at += strcspn(at, " "); /* up to 2.8 the other tree follows: "|-1->0->1/-1/-1" */
        at += strspn(at, " ");
    }
    return true;
}

/* ---- connections ---- */

/* "1[0]", "3[81000]", "2": in brackets a device of that rank. */
static bool read_end(const char **at, int *rank)
{
    if (!kl_log_int(at, rank)) return false;
    if (!skip(at, "[")) return true;
    *at += strspn(*at, "0123456789abcdef");
    return skip(at, "]");
}

static enum kl_log_way way_of(const char *how)
{
    if (!strncmp(how, "P2P", 3) || !strncmp(how, "direct", 6)) return KL_LOG_P2P;
    if (!strncmp(how, "SHM", 3)) return KL_LOG_SHM;
    if (!strncmp(how, "COLLNET", 7)) return KL_LOG_COLLNET;
    return !strncmp(how, "NVLS", 4) ? KL_LOG_NVLS : KL_LOG_NET;
}

/* The device is the first number behind the plugin's name: "NET/NCCL RDMA Plugin v6/0(2)/GDRDMA/Shared". */
static void read_net(const char *how, struct kl_log_link *l)
{
    for (const char *at = strchr(how, '/'); at; at = strchr(at, '/')) {
        const char *digit = ++at;

        if (!isdigit((unsigned char)*digit) || !kl_log_int(&digit, &l->net)) continue;
        if (*digit == '(' && isdigit((unsigned char)digit[1])) {
            digit += 1 + strspn(digit + 1, "0123456789"); /* the rank that owns the NIC */
            digit += *digit == ')';
        }
        if (!*digit || *digit == '/' || *digit == ' ') return;
        l->net = -1;
    }
}

/* A plugin's name may hold blanks; RCCL adds the communicator: "NET/IB/0/GDRDMA comm 0x2035d540 nRanks 02". */
static size_t way_length(const char *via)
{
    const char *comm = strstr(via, " comm 0x"), *ranks = strstr(via, " nRanks ");
    const char *end = comm ? comm : ranks ? ranks : via + strlen(via);

    while (end > via && end[-1] == ' ') end--;
    return (size_t)(end - via);
}

/* "Channel 00/0 : 1[0] -> 0[1] [receive] via NET/IB/0/GDRDMA", in older releases without "/0" */
static bool read_link(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = line->text + strspn(line->text, " ");
    struct kl_log_link l = {.at = line->at, .connection = -1, .net = -1};

    if (!skip(&at, "Channel ") || !kl_log_int(&at, &l.channel)) return false;
    if (skip(&at, "/") && !kl_log_int(&at, &l.connection)) return false;
    if (!skip(&at, " : ") || !read_end(&at, &l.from) || !skip(&at, " -> ") || !read_end(&at, &l.to)) return false;
    const char *via = kl_log_after(at, " via ");

    if (!via || l.from < 0 || l.to < 0) return true;
    l.receives = strstr(at, "[receive]") != NULL;
    l.gdr = strstr(via, "/GDRDMA") != NULL;
    l.way = way_of(via);
    if (l.way == KL_LOG_NET) read_net(via, &l);
    l.member = kl_log_member_of(log, origin, line->at);
    struct kl_log_link *kept = l.member < 0 ? NULL : KL_LOG_NEW(log, link);

    kl_log_reach(log, l.member, KL_LOG_CONNECTING, line->at);

    if (!kept) return true;
    *kept = l;
    kept->how = kl_log_keep(log, via, way_length(via));
    if (strstr(via, " comm 0x")) log->amd = true;
    return true;
}

/* "Connected all rings, use ring PXN 0 GDR 1": each connection was printed by itself before. */
static bool read_connected(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    if (!strstr(line->text, "Connected all rings") && !strstr(line->text, "Connected all trees")) return false;
    log->rings = true;
    kl_log_reach(log, log->origin[origin].member, KL_LOG_CONNECTED, line->at);
    return true;
}

bool kl_log_read_plan(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    return read_ring(log, origin, line) || read_hop(log, origin, line) || read_trees(log, origin, line) ||
           read_link(log, origin, line) || read_connected(log, origin, line);
}
