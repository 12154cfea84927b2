/* SPDX-License-Identifier: Apache-2.0 */
/** faulty_collnet.c - a CollNet plugin (v12) with one fault, which FAULTY_COLLNET names. */
#define COLLNET_SYMBOL example_collnet
#include "examples/plugins/net/collnet.c" /* NOLINT(bugprone-suspicious-include): the example, with other functions */

struct collnet_plugin ncclCollNetPlugin_v12;
static const char *fault = "";

static int has(const char *name)
{
    return !strcmp(fault, name);
}

/* It names operations that it does not do right: all floats are doubles to it. */
static int faulty_support(int type, int op, int *yes)
{
    (void)type, (void)op;
    *yes = 1;
    return NET_OK;
}

static int faulty_iallreduce(void *comm, void *from, void *to, collnet_count count, int type, int op, void *send_mr,
                             void *recv_mr, void **request)
{
    if (has("support") && type == FLOAT32) type = INT32;
    return iallreduce(comm, from, to, count, type, op, send_mr, recv_mr, request);
}

static int faulty_connect(void *handles[], int n, int own, void *listener, void **comm)
{
    int rc = connect_group(handles, n, own, listener, comm);

    if (has("missing"))
        while (rc) { /* until all are there */
            usleep(1000);
            rc = connect_group(handles, n, own, listener, comm);
        }

    if (has("late") && own) *comm = NULL; /* not a communicator, and no failure */
    return rc;
}

static int faulty_test(void *request, int *done, int *size)
{
    struct work *w = request;
    char *to = w->to;
    const int rc = test_work(request, done, size);

    if (has("sum") && *done) to[0] ^= 1;
    if (has("lost") && *done) memset(to, 0, 4);
    return rc;
}

__attribute__((constructor)) static void choose_fault(void)
{
    fault = getenv("FAULTY_COLLNET") ? getenv("FAULTY_COLLNET") : "";
    ncclCollNetPlugin_v12 = example_collnet;
    ncclCollNetPlugin_v12.reduce_support = has("support") ? faulty_support : reduce_support;
    ncclCollNetPlugin_v12.iallreduce = faulty_iallreduce;
    ncclCollNetPlugin_v12.connect = faulty_connect;
    ncclCollNetPlugin_v12.test = faulty_test;
}
