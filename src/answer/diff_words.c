/* SPDX-License-Identifier: Apache-2.0 */
#include "base/param.h"
#include "answer/diff.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- parts of machines ---- */

static void add_part(const struct kl_part *p, struct kl_text *t)
{
    switch (p->kind) {
    case KL_PART_GPU:
        kl_text_add(t, p->of_b ? "GPU/%d of B" : "GPU/%d", p->number);
        break;
    case KL_PART_NET:
        kl_text_add(t, "NET/%d", p->number);
        break;
    case KL_PART_PCI:
        kl_text_add(t, "PCI/%d-%" PRIx64, p->host, p->busid);
        break;
    case KL_PART_CPU:
        kl_text_add(t, "CPU/%d-%d", p->host, p->number);
        break;
    default:
        kl_text_add(t, "<%s>", p->tag);
    }
}

static void add_end(int end, struct kl_text *t)
{
    if (end == KL_LINK_END_NVS)
        kl_text_add(t, "NVS");
    else if (end == KL_LINK_END_CPU)
        kl_text_add(t, "CPU");
    else
        kl_text_add(t, "GPU/%d", end);
}

/* ---- facts ---- */

static void say_links(int n, float gbps, char value[KL_FACT_VALUE])
{
    snprintf(value, KL_FACT_VALUE, n ? "%d NVLink%s, %g GB/s" : "none", n, kl_plural(n), (double)((float)n * gbps));
}

static void describe_links(const struct kl_fact *f, struct kl_fact_words *w)
{
    int a = f->links[0], b = f->links[1], more = b > a ? b - a : a - b;
    struct kl_text subject = kl_text_in(w->subject, sizeof w->subject);
    struct kl_text p = kl_text_in(w->predicate, sizeof w->predicate);
    double bw_a = (double)((float)a * f->gbps), bw_b = (double)((float)b * f->gbps);

    add_end(f->ends[0], &subject);
    kl_text_add(&subject, f->ways == 1 ? " to " : "-");
    add_end(f->ends[1], &subject);
    snprintf(w->what, sizeof w->what, "NVLink");
    say_links(a, f->gbps, w->a);
    say_links(b, f->gbps, w->b);
    if (b && b < a)
        kl_text_add(&p, "lost %d of its %d NVLinks (%g to %g GB/s)", more, a, bw_a, bw_b);
    else if (b < a && a > 1)
        kl_text_add(&p, "lost its %d NVLinks (%g GB/s)", a, bw_a);
    else if (b < a)
        kl_text_add(&p, "lost its NVLink (%g GB/s)", bw_a);
    else
        kl_text_add(&p, "got %d%s NVLink%s (%g to %g GB/s)", more, a ? " more" : "", kl_plural(more), bw_a, bw_b);
    if (f->ways == 1) kl_text_add(&p, ", one way");
}

static void describe_attribute(const struct kl_fact *f, struct kl_fact_words *w)
{
    struct kl_text subject = kl_text_in(w->subject, sizeof w->subject);

    add_part(&f->part, &subject);
    snprintf(w->what, sizeof w->what, "%s%.50s", f->c2c ? "C2C " : "", f->key);
    snprintf(w->a, sizeof w->a, "%.60s", f->a ? f->a : "unset");
    snprintf(w->b, sizeof w->b, "%.60s", f->b ? f->b : "unset");
    snprintf(w->predicate, sizeof w->predicate, "has %s %s instead of %s", w->what, w->b, w->a);
}

/* What is gone, new, or elsewhere. */
static void describe_presence(const struct kl_fact *f, struct kl_fact_words *w)
{
    bool in_a = f->change == KL_CHANGE_GONE || f->change == KL_CHANGE_MOVED;
    bool moved = f->change == KL_CHANGE_MOVED || f->change == KL_CHANGE_ARRIVED;
    const char *other = moved ? "elsewhere" : "absent";
    struct kl_text subject = kl_text_in(w->subject, sizeof w->subject);

    add_part(&f->part, &subject);
    if (f->nparts > 1) kl_text_add(&subject, " and %d more", f->nparts - 1);
    snprintf(w->what, sizeof w->what, f->c2c ? "C2C link" : "presence");
    snprintf(w->a, sizeof w->a, "%s", in_a ? "there" : other);
    snprintf(w->b, sizeof w->b, "%s", in_a ? other : "there");
    if (moved)
        snprintf(w->predicate, sizeof w->predicate, "is below another device");
    else if (f->c2c)
        snprintf(w->predicate, sizeof w->predicate, "%s its C2C link to the CPU", in_a ? "lost" : "got");
    else
        snprintf(w->predicate, sizeof w->predicate, "%s %s", f->nparts > 1 ? "are" : "is", in_a ? "gone" : "new");
}

static void describe_order(struct kl_fact_words *w)
{
    snprintf(w->subject, sizeof w->subject, "the GPUs");
    snprintf(w->what, sizeof w->what, "order");
    snprintf(w->a, sizeof w->a, "as in A");
    snprintf(w->b, sizeof w->b, "another");
    snprintf(w->predicate, sizeof w->predicate, "have their ranks in another order");
}

static void add_machine(const struct kl_topo *t, struct kl_text *text)
{
    int gpus = t->count[KL_NODE_GPU], nets = t->count[KL_NODE_NET];

    kl_text_add(text, "%d GPU%s of sm %d", gpus, kl_plural(gpus), t->node[kl_topo_at(t, KL_NODE_GPU, 0)].gpu.sm);
    if (nets)
        kl_text_add(text, ", %d NIC%s of %.4g GB/s", nets, kl_plural(nets),
                    (double)t->node[kl_topo_at(t, KL_NODE_NET, 0)].net.bw);
}

static void describe_machine(const struct kl_diff *d, struct kl_fact_words *w)
{
    struct kl_text a = kl_text_in(w->a, sizeof w->a), b = kl_text_in(w->b, sizeof w->b);

    add_machine(d->a.whole, &a);
    add_machine(d->b.whole, &b);
    snprintf(w->subject, sizeof w->subject, "machine");
    snprintf(w->text, sizeof w->text, "another machine (%s instead of %s)", w->b, w->a);
}

static void describe_setting(const struct kl_diff *d, const struct kl_fact *f, struct kl_fact_words *w)
{
    const struct kl_setting *over = &d->b.cluster.over[f->setting];
    const char *dfl = f->param && *f->param->dfl ? f->param->dfl : NULL;
    char origin[KL_ORIGIN_TEXT];

    snprintf(w->subject, sizeof w->subject, "%.63s", over->name);
    snprintf(w->what, sizeof w->what, "setting");
    snprintf(w->b, sizeof w->b, "%.60s", *over->text ? over->text : "unset");
    if (f->was_set)
        snprintf(w->a, sizeof w->a, "%.30s (%.30s)", f->was.text, kl_setting_origin(&f->was, origin));
    else
        snprintf(w->a, sizeof w->a, "%.40s%s", dfl ? dfl : "unset", dfl ? " (default)" : "");
    snprintf(w->text, sizeof w->text, "%.63s=%.100s", over->name, over->text);
}

void kl_fact_describe(const struct kl_diff *d, const struct kl_fact *f, struct kl_fact_words *w)
{
    *w = (struct kl_fact_words){.text = ""};
    if (f->change == KL_CHANGE_SETTING) {
        describe_setting(d, f, w);
        return;
    }
    if (f->change == KL_CHANGE_MACHINE) {
        describe_machine(d, w);
        return;
    }
    if (f->change == KL_CHANGE_LINKS)
        describe_links(f, w);
    else if (f->change == KL_CHANGE_ATTRIBUTE)
        describe_attribute(f, w);
    else if (f->change == KL_CHANGE_ORDER)
        describe_order(w);
    else
        describe_presence(f, w);
    if (f->nmerged > 1)
        snprintf(w->text, sizeof w->text, "%s and %d more: each %.100s", w->subject, f->nmerged - 1, w->predicate);
    else
        snprintf(w->text, sizeof w->text, "%s %.120s", w->subject, w->predicate);
}

/* ---- kinds of rows ---- */

const struct kl_row_kind kl_row_kinds[KL_ROW_WHATS] = {
    [KL_ROW_TRANSPORT] = {"transport", NULL, NULL, NULL, true, "transports", "transports between GPUs"},
    [KL_ROW_RELAY] = {"relay", NULL, NULL, NULL, true, "who serves the NIC (PXN)", "PXN answers"},
    [KL_ROW_GDR] = {"gdr", NULL, NULL, NULL, true, "GPUDirect RDMA", "GPUDirect answers"},
    [KL_ROW_GPU_GPU] = {"gpu_gpu", "type", "bw", "GB/s", true, "paths from GPU to GPU", "paths from GPU to GPU"},
    [KL_ROW_GPU_NET] = {"gpu_net", "type", "bw", "GB/s", true, "paths from GPU to NIC", "paths from GPU to NIC"},
    [KL_ROW_NET_GPU] = {"net_gpu", "type", "bw", "GB/s", true, "paths from NIC to GPU", "paths from NIC to GPU"},
    [KL_ROW_GRAPH] = {"graph", NULL, NULL, "", false, "graphs", "numbers of graphs"},
    [KL_ROW_ORDER] = {"order", NULL, NULL, NULL, false, "orders of channels", "orders of channels"},
    [KL_ROW_NIC] = {"nic", NULL, NULL, NULL, true, "NICs of GPUs", "NICs of GPUs"},
    [KL_ROW_SEND] = {"send", NULL, NULL, NULL, true, "sends to GPUs of another host", "sends to other hosts"},
    [KL_ROW_CHANNELS] = {"channels", NULL, NULL, "", false, "channels", "counts of channels"},
    [KL_ROW_TUNING] = {"tuning", "choice", "time_us", "us", false, "predicted times", "predicted times"},
};

/* ---- subjects ---- */

static const char *const number_names[KL_GRAPH_NUMBERS] = {
    [KL_NUMBER_CHANNELS] = "channels",
    [KL_NUMBER_BW_INTRA] = "GB/s inside",
    [KL_NUMBER_BW_INTER] = "GB/s to the network",
    [KL_NUMBER_TYPE_INTRA] = "paths inside",
    [KL_NUMBER_TYPE_INTER] = "paths to NICs",
    [KL_NUMBER_PATTERN] = "pattern",
    [KL_NUMBER_CROSS_NIC] = "crossing NICs",
    [KL_NUMBER_ONE_ORDER] = "one order for all",
};

static const char *const count_names[KL_CHANNEL_COUNTS] = {
    [KL_COUNT_RANKS] = "ranks",
    [KL_COUNT_NODES] = "nodes",
    [KL_COUNT_CHANNELS] = "channels",
    [KL_COUNT_COLLECTIVES] = "channels for collectives",
    [KL_COUNT_NVLS] = "channels for NVLS",
    [KL_COUNT_SENDRECV] = "channels for send and receive",
    [KL_COUNT_PER_PEER] = "channels per peer",
};

static void add_graph(const struct kl_diff_row *r, struct kl_text *t)
{
    kl_text_add(t, r->domain < 0 ? "%s" : "%s of GPU/%d", kl_graph_name(r->graph), r->domain);
}

const char *kl_row_subject(const struct kl_diff_row *r, char text[KL_SUBJECT_TEXT])
{
    struct kl_text t = kl_text_in(text, KL_SUBJECT_TEXT);

    switch (r->what) {
    case KL_ROW_RELAY:
    case KL_ROW_GDR:
    case KL_ROW_GPU_NET:
        kl_text_add(&t, "GPU/%d to NET/%d", r->from, -2 - r->to);
        break;
    case KL_ROW_NET_GPU:
        kl_text_add(&t, "NET/%d to GPU/%d", -2 - r->to, r->from);
        break;
    case KL_ROW_GRAPH:
        add_graph(r, &t);
        kl_text_add(&t, ": %s", number_names[r->item]);
        break;
    case KL_ROW_ORDER:
        add_graph(r, &t);
        kl_text_add(&t, " channel %d", r->item);
        break;
    case KL_ROW_NIC:
        kl_text_add(&t, "GPU/%d", r->from);
        break;
    case KL_ROW_CHANNELS:
        kl_text_add(&t, "%s", count_names[r->item]);
        break;
    case KL_ROW_TUNING:
        kl_text_add(&t, "%s ", kl_func_name[r->item]);
        kl_text_add_size(&t, r->bytes);
        break;
    default:
        kl_text_add(&t, "GPU/%d to GPU/%d", r->from, r->to);
    }
    return text;
}

/* ---- values ---- */

const char *kl_diff_number(float number, char text[24])
{
    snprintf(text, 24, number >= 1000 && number < 1e9f ? "%.0f" : "%.4g", (double)number);
    return text;
}

/* "through GPU/1", if there is one in between. */
static void add_relay(const char *blank, const struct kl_diff_relay *relay, struct kl_text *t)
{
    if (relay->used) kl_text_add(t, "%sthrough GPU/%d%s", blank, relay->rank, relay->of_b ? " of B" : "");
}

static void add_transport(const union kl_diff_value *v, struct kl_text *t)
{
    kl_text_add(t, "%s", v->transport.by ? v->transport.by->name : "NET");
    add_relay(" ", &v->transport.via, t);
}

static void add_gdr(const union kl_diff_value *v, struct kl_text *t)
{
    static const char *const ways[2][2] = {{"no", "only to receive"}, {"only to send", "yes"}};

    kl_text_add(t, "%s%s", ways[v->gdr.send][v->gdr.receive], v->gdr.pci ? ", mapped over PCI" : "");
}

/* The first GPUs of many. */
static void add_order(const struct kl_diff_order *o, struct kl_text *t)
{
    enum { SHOWN = 16 };
    int n = kl_diff_order_length(o);

    if (o->nets) kl_text_add(t, "NET/%d ", kl_diff_order_net(o, 0));
    for (int i = 0; i < n && i < SHOWN; i++) {
        bool of_b;
        int rank = kl_diff_order_rank(o, i, &of_b);

        kl_text_add(t, of_b ? "%sB:%d" : "%s%d", i ? " " : "", rank);
    }
    if (n > SHOWN) kl_text_add(t, " ... %d more", n - SHOWN);
    if (o->nets) kl_text_add(t, " NET/%d", kl_diff_order_net(o, 1));
}

static void add_nics(const union kl_diff_value *v, struct kl_text *t)
{
    for (int i = 0; i < v->nics.n; i++) kl_text_add(t, "%sNET/%d", i ? " " : "", v->nics.dev[i]);
    if (!v->nics.n) kl_text_add(t, "none");
}

static void add_send(const union kl_diff_value *v, struct kl_text *t)
{
    if (v->send.net < 0) {
        kl_text_add(t, "none");
        return;
    }
    kl_text_add(t, "NET/%d", v->send.net);
    add_relay(" ", &v->send.proxy, t);
}

static void set_number(float number, struct kl_value_words *w)
{
    w->has_number = true;
    w->number = number;
}

static void set_graph_number(int item, const union kl_diff_value *v, struct kl_value_words *w, struct kl_text *t)
{
    float value = v->number.value;

    if (v->number.none)
        kl_text_add(t, "-");
    else if (item == KL_NUMBER_TYPE_INTRA || item == KL_NUMBER_TYPE_INTER)
        kl_text_add(t, "%s", kl_path_type_name[(int)value]);
    else if (item == KL_NUMBER_PATTERN)
        kl_text_add(t, "%s", kl_graph_pattern_name((int)value));
    else if (item == KL_NUMBER_CROSS_NIC || item == KL_NUMBER_ONE_ORDER)
        kl_text_add(t, value != 0 ? "yes" : "no");
    else
        set_number(value, w);
}

static void set_choice(const union kl_diff_value *v, struct kl_value_words *w, struct kl_text *t)
{
    if (v->choice.end == KL_CHOICE_NOTHING) kl_text_add(t, "nothing allowed");
    if (v->choice.end == KL_CHOICE_COPY) kl_text_add(t, "a copy, nothing is sent");
    if (v->choice.end != KL_CHOICE_MADE) return;
    set_number(v->choice.time, w);
    w->timeless = v->choice.timeless;
    kl_text_add(t, "%s %s on %d", kl_algo_name[v->choice.algo], kl_proto_name[v->choice.proto], v->choice.nchannels);
    if (v->choice.only_threads) kl_text_add(t, ", %d threads", v->choice.nthreads);
}

void kl_value_describe(const struct kl_diff_row *r, const union kl_diff_value *v, struct kl_value_words *w)
{
    struct kl_text t;

    *w = (struct kl_value_words){.has_number = false};
    t = kl_text_in(w->text, sizeof w->text);
    switch (r->what) {
    case KL_ROW_TRANSPORT:
        add_transport(v, &t);
        break;
    case KL_ROW_RELAY:
        add_relay("", &v->relay, &t);
        if (!v->relay.used) kl_text_add(&t, "direct");
        break;
    case KL_ROW_GDR:
        add_gdr(v, &t);
        break;
    case KL_ROW_GRAPH:
        set_graph_number(r->item, v, w, &t);
        break;
    case KL_ROW_ORDER:
        add_order(&v->order, &t);
        break;
    case KL_ROW_NIC:
        add_nics(v, &t);
        break;
    case KL_ROW_SEND:
        add_send(v, &t);
        break;
    case KL_ROW_CHANNELS:
        set_number((float)v->count, w);
        break;
    case KL_ROW_TUNING:
        set_choice(v, w, &t);
        break;
    default:
        kl_text_add(&t, "%s", kl_path_type_name[v->path.type]);
        if (v->path.bw > 0) set_number(v->path.bw, w);
    }
}
