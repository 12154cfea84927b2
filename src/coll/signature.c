/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/signature.h"

#include "base/text.h"
#include "device/host/redop.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- words ---- */

static const char *const bits_names[] = {"bitwise and", "bitwise or", "bitwise xor",
                                         "logical and", "logical or", "logical xor"};

static unsigned bits(struct kl_call c, int from, int n)
{
    return (unsigned)(c.what >> from & ((1u << n) - 1));
}

static unsigned func_of(struct kl_call c)
{
    return bits(c, 0, KL_CALL_CONFIGURED);
}

/* The whole number: of those with these low bits, the one next to `near`. */
static uint64_t number_of(struct kl_call c, uint64_t near)
{
    const uint64_t range = (uint64_t)1 << KL_CALL_NUMBER_BITS, half = range / 2;
    const uint64_t above = ((c.what >> KL_CALL_NUMBER) - near) & (range - 1);

    return above < half || near + above < range ? near + above : near + above - range;
}

static bool is_configured(struct kl_call c)
{
    return bits(c, KL_CALL_CONFIGURED, 1);
}

static unsigned root_of(struct kl_call c)
{
    return bits(c, KL_CALL_ROOT, KL_CALL_NUMBER - KL_CALL_ROOT - (is_configured(c) ? 8 : 0));
}

/* 0: none. */
static unsigned configuration_of(struct kl_call c)
{
    return is_configured(c) ? 1u << 8 | bits(c, KL_CALL_NUMBER - 8, 8) : 0;
}

/* Calls come from other ranks: their numbers may be any. */
static const struct kl_func_info *info_of(struct kl_call c)
{
    static const struct kl_func_info unknown = {.name = "an unknown function"};

    return func_of(c) < KL_FUNC_ROWS ? &kl_func_info[func_of(c)] : &unknown;
}

static const char *type_name(unsigned type)
{
    const char *name = kl_type_name((ncclDataType_t)type);

    return name ? name : "an unknown type";
}

static const char *type_of(struct kl_call c)
{
    return type_name(bits(c, KL_CALL_TYPE, KL_CALL_OP - KL_CALL_TYPE));
}

const char *kl_call_op_name(unsigned code)
{
    const char *built_in = kl_redop_name((ncclRedOp_t)code);

    if (code >= KL_CALL_BITS_OP && code < KL_CALL_BITS_OP + sizeof bits_names / sizeof bits_names[0])
        return bits_names[code - KL_CALL_BITS_OP];
    return built_in ? built_in : "an operator of its own";
}

static const char *op_of(struct kl_call c)
{
    return kl_call_op_name(bits(c, KL_CALL_OP, KL_CALL_ROOT - KL_CALL_OP));
}

const char *kl_call_text(struct kl_call c, uint64_t near, char to[KL_CALL_TEXT])
{
    const struct kl_func_info *f = info_of(c);
    struct kl_text t = kl_text_over(to, KL_CALL_TEXT);

    kl_text_add(&t, "%s", f->name);
    if (func_of(c) < KL_FUNC_SEND) kl_text_add(&t, " #%" PRIu64, number_of(c, near));
    kl_text_add(&t, " of %llu %s", (unsigned long long)c.count, type_of(c));
    if (f->reduces) kl_text_add(&t, " (%s)", op_of(c));
    if (f->rooted) kl_text_add(&t, " with root %u", root_of(c));
    if (is_configured(c)) kl_text_add(&t, " with configuration %x", configuration_of(c));
    if (func_of(c) == KL_FUNC_SEND) kl_text_add(&t, " to rank %u", root_of(c));
    if (func_of(c) == KL_FUNC_RECV) kl_text_add(&t, " from rank %u", root_of(c));
    return to;
}

static void add_message(struct kl_text *t, uint64_t signature)
{
    kl_text_add(t, "%llu %s", (unsigned long long)(signature & (((uint64_t)1 << 56) - 1)),
                type_name((unsigned)(signature >> 56) & 0x1f));
}

const char *kl_message_differs(uint64_t theirs, int from, uint64_t mine, char to[KL_CALL_TEXT])
{
    struct kl_text t = kl_text_over(to, KL_CALL_TEXT);

    kl_text_add(&t, "rank %d sends ", from);
    add_message(&t, theirs);
    kl_text_add(&t, " where ");
    add_message(&t, mine);
    kl_text_add(&t, " are received");
    return to;
}

/* ---- differences ---- */

enum { TYPE = 1, OP = 2, ROOT = 4, COUNT = 8, FUNC = 16, CONFIGURATION = 32 };

static unsigned differences(struct kl_call a, struct kl_call b)
{
    const struct kl_call d = {.what = a.what ^ b.what};
    unsigned set = a.count == b.count ? 0 : COUNT;

    if (func_of(a) != func_of(b)) set |= FUNC;
    if (configuration_of(a) != configuration_of(b)) set |= CONFIGURATION;
    if (bits(d, KL_CALL_TYPE, KL_CALL_OP - KL_CALL_TYPE)) set |= TYPE;
    if (bits(d, KL_CALL_OP, KL_CALL_ROOT - KL_CALL_OP)) set |= OP;
    if (root_of(a) != root_of(b)) set |= ROOT;
    return set;
}

static bool same(struct kl_call a, struct kl_call b)
{
    return a.what == b.what && a.count == b.count;
}

/* The name, as "AllReduce", and in parentheses its arguments. Of other functions, those that the call has: a root, or
 * an operator. */
static void add_call(struct kl_text *t, struct kl_call c, unsigned differ)
{
    const struct kl_func_info *f = info_of(c);
    const char *between = "(";

    kl_text_add(t, "%s", f->name);
    if (f->rooted && differ & (ROOT | FUNC)) kl_text_add(t, "%sroot %u", between, root_of(c)), between = ", ";
    if (differ & CONFIGURATION && is_configured(c))
        kl_text_add(t, "%sconfiguration %x", between, configuration_of(c)), between = ", ";
    if (differ & CONFIGURATION && !is_configured(c)) kl_text_add(t, "%sno configuration", between), between = ", ";
    if (f->reduces && differ & OP && !(differ & FUNC)) kl_text_add(t, "%s%s", between, op_of(c)), between = ", ";
    if (differ & TYPE) kl_text_add(t, "%s%s", between, type_of(c)), between = ", ";
    if (differ & COUNT)
        kl_text_add(t, "%s%llu element%s", between, (unsigned long long)c.count, c.count == 1 ? "" : "s"),
            between = ", ";
    if (*between == ',') kl_text_add(t, ")");
}

/* ---- the verdict ---- */

/* Number of ranks with the call of rank `r`; 0: not known, or a rank before `r` made it. */
static int votes(const struct kl_called *by_rank, int n, int r)
{
    int count = 0;

    if (!by_rank[r].known) return 0;
    for (int i = 0; i < n; i++) {
        if (!by_rank[i].known || !same(by_rank[i].call, by_rank[r].call)) continue;
        if (i < r) return 0;
        count++;
    }
    return count;
}

struct vote {
    int most, groups, known; /* the first rank of the largest group; -1: none */
};

static struct vote count_votes(const struct kl_called *by_rank, int n)
{
    struct vote v = {.most = -1};
    int best = 0;

    for (int r = 0; r < n; r++) {
        int got = votes(by_rank, n, r);
        v.groups += got > 0;
        v.known += by_rank[r].known;
        if (got > best) best = got, v.most = r;
    }
    return v;
}

enum { MOST_NAMED = 8 }; /* ranks of a group, and groups */

static void add_ranks(struct kl_text *t, const struct kl_called *by_rank, int n, int like)
{
    int named = 0, total = 0;

    for (int r = 0; r < n; r++) total += by_rank[r].known && same(by_rank[r].call, by_rank[like].call);
    kl_text_add(t, total == 1 ? "rank " : "ranks ");
    for (int r = 0; r < n && named < MOST_NAMED; r++) {
        if (!by_rank[r].known || !same(by_rank[r].call, by_rank[like].call)) continue;
        kl_text_add(t, "%s%d", !named ? "" : named + 1 == total ? " and " : ", ", r);
        named++;
    }
    if (total > named) kl_text_add(t, " and %d more", total - named);
}

/* The smallest groups first, each by its difference from the largest. */
static void add_odd(struct kl_text *t, const struct kl_called *by_rank, int n, int most)
{
    int named = 0;

    for (int r = 0; r < n && named < MOST_NAMED; r++) {
        if (r == most || !votes(by_rank, n, r)) continue;
        kl_text_add(t, "%s", named++ ? "; " : "");
        add_ranks(t, by_rank, n, r);
        kl_text_add(t, " called ");
        add_call(t, by_rank[r].call, differences(by_rank[r].call, by_rank[most].call));
    }
}

static unsigned all_differences(const struct kl_called *by_rank, int n, int most)
{
    unsigned set = 0;

    for (int r = 0; r < n; r++)
        if (by_rank[r].known) set |= differences(by_rank[r].call, by_rank[most].call);
    return set;
}

static int first_odd(const struct kl_called *by_rank, int n, int most)
{
    for (int r = 0; r < n; r++)
        if (by_rank[r].known && !same(by_rank[r].call, by_rank[most].call)) return r;
    return -1;
}

bool kl_call_verdict(const struct kl_called *by_rank, int n, uint64_t number, char *text, size_t size, int *culprit)
{
    struct kl_text t = kl_text_over(text, size);
    const struct vote v = count_votes(by_rank, n);

    if (v.groups < 2) return false;
    const int others = votes(by_rank, n, v.most), odd = v.known - others;
    add_odd(&t, by_rank, n, v.most);
    kl_text_add(&t, " as #%" PRIu64 " where ", number);
    if (others > 1 && odd + others == n)
        kl_text_add(&t, "the others");
    else
        add_ranks(&t, by_rank, n, v.most);
    kl_text_add(&t, " called ");
    add_call(&t, by_rank[v.most].call, all_differences(by_rank, n, v.most));
    *culprit = first_odd(by_rank, n, v.most);
    return true;
}
