/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "tools/kolo/explain/coll_print.h"

#include <stdio.h>

enum { ROUNDS_SHOWN = 16, CHANNELS_SHOWN = 8 };

static void print_piece(const struct kl_coll_asked *a, FILE *to)
{
    int64_t least = kl_coll_piece_bytes(a, a->first), most = kl_coll_piece_bytes(a, a->last);
    enum kl_coll_id id = kl_coll_id(a->coll);
    char first[KL_SIZE_TEXT], last[KL_SIZE_TEXT];

    fprintf(to, "%s of %s",
            id == KL_ALLTOALLV   ? "messages that differ, on average"
            : id == KL_HYPERCUBE ? "pieces"
                                 : "messages",
            kl_size_text(least, first));
    if (least < most) fprintf(to, " to %s", kl_size_text(most, last));
}

static void print_channels(const struct kl_op_rounds *m, FILE *to)
{
    const struct kl_p2p_channels_why *w = &m->channels.why;

    fprintf(to, "  %d channel%s for sends and receives: %s", m->channels.n, kl_plural(m->channels.n),
            kl_p2p_channels_limit_text(w->limit));
    if (w->limited != m->channels.n) fprintf(to, ", %d, and then the next power of two", w->limited);
    fprintf(to, "\n  %d of them for each peer: %s", m->channels.per_peer, kl_p2p_share_text(w->share));
    if (w->gpu >= 0 && w->far >= 0) fprintf(to, "; fewest between ranks %d and %d", w->gpu, w->far);
    if (w->gpu >= 0 && w->far < 0) fprintf(to, "; fewest for rank %d", w->gpu);
    if (w->wanted != m->channels.per_peer)
        fprintf(to, ", %d, and then %s", w->wanted,
                m->channels.per_peer > w->wanted ? "the next power of two" : "all there are");
    fprintf(to, "\n");
}

static void print_rank(int rank, FILE *to)
{
    if (rank < 0)
        fprintf(to, " %12s", "-");
    else
        fprintf(to, " %12d", rank);
}

static void print_round(const struct kl_op_rounds *m, const struct kl_op_round *r, FILE *to)
{
    int n = m->channels.per_peer;

    fprintf(to, "  %8d", r->round);
    print_rank(r->send, to);
    print_rank(r->recv, to);
    fprintf(to, "   ");
    if (r->send == 0 || r->recv == 0) {
        fprintf(to, "none: itself, a copy\n");
        return;
    }
    for (int k = 0; k < n && k < CHANNELS_SHOWN; k++)
        fprintf(to, "%s%d", k ? ", " : "", kl_p2p_channel(r->base, k, m->channels.n, m->channels.nccl));
    fprintf(to, "%s\n", n > CHANNELS_SHOWN ? ", ..." : "");
}

static void print_rounds(const struct kl_coll_asked *a, const struct kl_op_rounds *m, FILE *to)
{
    int shown = m->nrounds > ROUNDS_SHOWN ? ROUNDS_SHOWN : m->nrounds;

    fprintf(to,
            "\nEvery rank goes through %d round%s, one per peer; in each, all send the same distance, and each "
            "receives from one.\n",
            a->ranks, kl_plural(a->ranks));
    if (m->by_node) fprintf(to, "Rounds within the node come first, then those with another node, and so on.\n");
    fprintf(to, "Rank 0:\n");
    fprintf(to, "  %8s %12s %12s   %s\n", "round", "sends to", "gets from", "channels it may use");
    for (int i = 0; i < shown; i++) print_round(m, &m->round[i], to);
    if (shown < m->nrounds) fprintf(to, "  %8s and %d more; --json has all\n", "...", m->nrounds - shown);
}

void kl_coll_rounds_text(const struct kl_coll_asked *a, const struct kl_op_rounds *m, FILE *to)
{
    int steps = kl_coll_steps(kl_coll_id(a->coll), a->ranks);

    kl_coll_headline(a, to);
    fprintf(to, ": sends and receives, no algorithm to choose; ");
    print_piece(a, to);
    fprintf(to, " over up to %d of %d channel%s\n", m->channels.per_peer, m->channels.n, kl_plural(m->channels.n));
    fprintf(to, "  %s: a group of ncclSend and ncclRecv%s; sizes in bytes (nccl-tests' size)\n", a->cluster->name,
            a->peers == KL_PEERS_CUBE ? " for each step" : "");
    if (steps > 1)
        fprintf(
            to,
            "  %d steps: a copy of its own piece, then exchanges with rank ^ 1, ^ 2, ^ 4, ... of 1, 2, 4, ... pieces\n",
            steps);
    fprintf(to, "  NCCL has no model of how long they take\n\n");
    print_channels(m, to);
    print_rounds(a, m, to);
}
