/* SPDX-License-Identifier: Apache-2.0 */
/**
 * faulty_rma.c - a plugin for one-sided operations (v15) with one fault, which FAULTY_RMA names. Its process dies at the place that
 * FAULTY_RMA_DIES names, from the moment on when that is set.
 */
#include <signal.h>

#define RMA_SYMBOL example_rma
#include "examples/plugins/rma.c" /* NOLINT(bugprone-suspicious-include): the example, with other functions */

struct rma_plugin ncclRmaPlugin_v15;
static const char *fault = "";
static int outstanding;

static int has(const char *name)
{
    return !strcmp(fault, name);
}

static void die_at(const char *place)
{
    const char *wanted = getenv("FAULTY_RMA_DIES");

    if (wanted && !strcmp(wanted, place)) kill(getpid(), SIGKILL);
}

static int faulty_iput(void *place, int context, uint64_t from, void *from_mr, size_t bytes, uint64_t to, void *to_mr,
                       uint32_t rank, uint32_t options, void **request)
{
    if (has("part")) bytes /= 2;
    const int rc = iput(place, context, from, from_mr, bytes, to, to_mr, rank, options, request);
    if (bytes) die_at("put"); /* of which a part may be under way */
    return rc;
}

/* The signal of a put goes before its data, which follow after some rounds of progress. */
static struct late {
    void *place, *from_mr, *to_mr;
    uint64_t from, to;
    size_t bytes;
    uint32_t rank;
    int rounds;
} late;

static int faulty_progress(void *place)
{
    void *request;

    if (late.rounds && !--late.rounds)
        (void)iput(late.place, 0, late.from, late.from_mr, late.bytes, late.to, late.to_mr, late.rank, 0, &request);
    const int rc = progress(place);
    const struct comm *c = place;
    for (int i = 0; i < c->n; i++)
        if (c->peer[i].got > sizeof(struct head)) die_at("receive"); /* in the middle of data */
    return rc;
}

static int faulty_iput_signal(void *place, int context, uint64_t from, void *from_mr, size_t bytes, uint64_t to,
                              void *to_mr, uint32_t rank, uint64_t counter, void *counter_mr, uint64_t value,
                              uint32_t op, bool strong, uint32_t options, void **request)
{
    if (has("null") && ++outstanding > 32) return RMA_OK; /* the data are lost */
    if (has("full") && ++outstanding > 32) return RMA_INTERNAL;
    if (has("twice")) value++;
    if (has("before") && bytes) {
        late = (struct late){place, from_mr, to_mr, from, to, bytes, rank, 100};
        bytes = 0;
    }
    const int rc = iput_signal(place, context, from, from_mr, bytes, to, to_mr, rank, counter, counter_mr, value, op,
                               strong, options, request);
    if (bytes) die_at("put");
    return rc;
}

static int faulty_connect(void *context, void *handles[], int n, int rank, void *listener, void **comm)
{
    die_at("connect");
    const int rc = connect_all(context, handles, n, rank, listener, comm);

    if (has("connect") && rank) *comm = NULL;
    return rc;
}

static int faulty_reg_mr(void *comm, void *data, size_t bytes, int type, uint64_t flags, void **mr)
{
    die_at("register");
    return reg_mr(comm, data, bytes, type, flags, mr);
}

static int faulty_query(void *place, bool *failed)
{
    (void)query_last_error(place, failed);
    if (has("query")) *failed = true;
    return RMA_OK;
}

static int faulty_test(void *comm, void *request, int *done)
{
    outstanding = 0;
    const int rc = test(comm, request, done);
    if (!*done) die_at("test");
    return rc;
}

__attribute__((constructor)) static void choose_fault(void)
{
    fault = getenv("FAULTY_RMA") ? getenv("FAULTY_RMA") : "";
    ncclRmaPlugin_v15 = example_rma;
    ncclRmaPlugin_v15.name = "FaultyRma";
    ncclRmaPlugin_v15.iput = faulty_iput;
    ncclRmaPlugin_v15.iput_signal = faulty_iput_signal;
    ncclRmaPlugin_v15.connect = faulty_connect;
    ncclRmaPlugin_v15.reg_mr = faulty_reg_mr;
    ncclRmaPlugin_v15.query_last_error = faulty_query;
    ncclRmaPlugin_v15.test = faulty_test;
    ncclRmaPlugin_v15.progress = faulty_progress;
}
