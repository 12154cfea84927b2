/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* ---- operators ---- */

static const struct {
    const char *name;
    ncclRedOp_t op;
} ops[] = {
    {"sum", ncclSum},         {"prod", ncclProd},     {"max", ncclMax},         {"min", ncclMin},
    {"avg", ncclAvg},         {"band", koloBitAnd},   {"bor", koloBitOr},       {"bxor", koloBitXor},
    {"land", koloLogicalAnd}, {"lor", koloLogicalOr}, {"lxor", koloLogicalXor},
};

/* A name, or a number of create_pre_mul_sum. */
static int read_op(PyObject *o, ncclRedOp_t *op)
{
    long number;

    *op = ncclSum;
    if (!kc_given(o)) return 0;
    if (PyUnicode_Check(o)) {
        for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
            if (!PyUnicode_CompareWithASCIIString(o, ops[i].name)) return *op = ops[i].op, 0;
        return kc_refuse("op %R: expected sum, prod, max, min, avg, band, bor, bxor, land, lor or lxor", o);
    }
    number = PyLong_AsLong(o);
    if (number == -1 && PyErr_Occurred()) return -1;
    *op = (ncclRedOp_t)number;
    return 0;
}

/* ---- an operation's memory ---- */

struct both {
    struct kc_memory send, recv;
    bool in_place;
    size_t *numbers; /* counts and offsets of operations that have them, until the call */
};

static void release(struct both *b)
{
    kc_memory_release(&b->send);
    kc_memory_release(&b->recv);
    free(b->numbers);
    b->numbers = NULL;
}

/* `recv` not given: the operation works in `send`. */
static int hold(struct both *b, PyObject *send, PyObject *recv, PyObject *dtype)
{
    memset(b, 0, sizeof *b);
    b->in_place = !kc_given(recv);
    if (kc_memory_hold(send, "send", b->in_place, dtype, &b->send)) return -1;
    if (b->in_place) {
        b->recv = b->send;
        b->recv.has_view = false;
        b->recv.tensor = NULL;
        return 0;
    }
    if (!kc_memory_hold(recv, "recv", true, dtype, &b->recv)) return 0;
    kc_memory_release(&b->send);
    return -1;
}

static int fail(struct both *b, const char *function, const char *want)
{
    kc_refuse("%s: send has %zu bytes and recv %zu; expected %s", function, b->send.bytes, b->recv.bytes, want);
    release(b);
    return -1;
}

/* For operations that compute: both have one type that can be reduced. */
static int check_types(struct both *b, const char *function)
{
    if (b->send.type >= 0 && b->send.type == b->recv.type) return 0;
    kc_refuse(b->send.type == b->recv.type ? "%s: elements of this type cannot be reduced; name a dtype"
                                           : "%s: send and recv have different types of elements",
              function);
    release(b);
    return -1;
}

static struct kc_comm *comm_of(PyObject *self)
{
    struct kc_comm *c = (struct kc_comm *)self;

    if (c->comm) return c;
    kc_refuse("the communicator was destroyed");
    return NULL;
}

#define SIGNATURE(function, required, keyword, ...)                                                                    \
    static const struct kc_signature signature = {                                                                     \
        function, {__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), required, keyword}

/* Run an operation of the library with the GIL released, and see to its memory. */
#define ISSUE(call)                                                                                                    \
    do {                                                                                                               \
        koloStream_t on;                                                                                               \
        ncclResult_t rc;                                                                                               \
        if (kc_issue_stream(c, stream, &on)) {                                                                         \
            release(&b);                                                                                               \
            return NULL;                                                                                               \
        }                                                                                                              \
        Py_BEGIN_ALLOW_THREADS                                                                                         \
        rc = (call);                                                                                                   \
        Py_END_ALLOW_THREADS                                                                                           \
        free(b.numbers);                                                                                               \
        b.numbers = NULL;                                                                                              \
        return kc_issue_end(c, stream, on, rc, &b.send, &b.recv, result);                                              \
    } while (0)

/* ---- reductions ---- */

PyObject *kc_allreduce(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("allreduce", 1, 3, "send", "recv", "op", "stream", "dtype");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b;
    ncclRedOp_t op;

    if (!c || kc_args(&signature, args, nargs, kw, a) || read_op(a[2], &op) || hold(&b, a[0], a[1], a[4])) return NULL;
    if (b.send.bytes != b.recv.bytes) return fail(&b, "allreduce", "as many"), NULL;
    if (check_types(&b, "allreduce")) return NULL;
    result = b.in_place ? a[0] : a[1];
    stream = a[3];
    ISSUE(ncclAllReduce(b.send.data, b.recv.data, b.send.bytes / b.send.item, (ncclDataType_t)b.send.type, op, c->comm,
                        (cudaStream_t)on));
}

PyObject *kc_reduce(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("reduce", 1, 4, "send", "recv", "op", "root", "stream", "dtype");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b;
    ncclRedOp_t op;
    long root;

    if (!c || kc_args(&signature, args, nargs, kw, a) || read_op(a[2], &op) ||
        kc_int("root", a[3], 0, c->size - 1, 0, &root) || hold(&b, a[0], a[1], a[5]))
        return NULL;
    if (b.send.bytes != b.recv.bytes) return fail(&b, "reduce", "as many"), NULL;
    if (check_types(&b, "reduce")) return NULL;
    result = b.in_place ? a[0] : a[1];
    stream = a[4];
    ISSUE(ncclReduce(b.send.data, b.recv.data, b.send.bytes / b.send.item, (ncclDataType_t)b.send.type, op, (int)root,
                     c->comm, (cudaStream_t)on));
}

PyObject *kc_reduce_scatter(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("reduce_scatter", 2, 3, "send", "recv", "op", "stream", "dtype");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b;
    ncclRedOp_t op;

    if (!c || kc_args(&signature, args, nargs, kw, a) || read_op(a[2], &op) || hold(&b, a[0], a[1], a[4])) return NULL;
    if (b.in_place || b.send.bytes != b.recv.bytes * (size_t)c->size)
        return fail(&b, "reduce_scatter", "send to hold a piece like recv for each rank"), NULL;
    if (check_types(&b, "reduce_scatter")) return NULL;
    result = a[1];
    stream = a[3];
    ISSUE(ncclReduceScatter(b.send.data, b.recv.data, b.recv.bytes / b.recv.item, (ncclDataType_t)b.send.type, op,
                            c->comm, (cudaStream_t)on));
}

/* ---- moves: elements of any type, as bytes ---- */

PyObject *kc_broadcast(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("broadcast", 1, 3, "send", "recv", "root", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b;
    long root;

    if (!c || kc_args(&signature, args, nargs, kw, a) || kc_int("root", a[2], 0, c->size - 1, 0, &root) ||
        hold(&b, a[0], a[1], NULL))
        return NULL;
    if (b.send.bytes != b.recv.bytes) return fail(&b, "broadcast", "as many"), NULL;
    result = b.in_place ? a[0] : a[1];
    stream = a[3];
    ISSUE(ncclBroadcast(b.send.data, b.recv.data, b.send.bytes, ncclUint8, (int)root, c->comm, (cudaStream_t)on));
}

PyObject *kc_allgather(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("allgather", 2, 2, "send", "recv", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b;

    if (!c || kc_args(&signature, args, nargs, kw, a) || hold(&b, a[0], a[1], NULL)) return NULL;
    if (b.in_place || b.recv.bytes != b.send.bytes * (size_t)c->size)
        return fail(&b, "allgather", "recv to hold a piece like send of each rank"), NULL;
    result = a[1];
    stream = a[2];
    ISSUE(ncclAllGather(b.send.data, b.recv.data, b.send.bytes, ncclUint8, c->comm, (cudaStream_t)on));
}

PyObject *kc_alltoall(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("alltoall", 2, 2, "send", "recv", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b;

    if (!c || kc_args(&signature, args, nargs, kw, a) || hold(&b, a[0], a[1], NULL)) return NULL;
    if (b.in_place || b.send.bytes != b.recv.bytes || b.send.bytes % (size_t)c->size)
        return fail(&b, "alltoall", "as many, a piece for each rank"), NULL;
    result = a[1];
    stream = a[2];
    ISSUE(ncclAlltoAll(b.send.data, b.recv.data, b.send.bytes / (size_t)c->size, ncclUint8, c->comm, (cudaStream_t)on));
}

/* Only the root needs the side that holds a piece for or of each rank. */
PyObject *kc_gather(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("gather", 1, 3, "send", "recv", "root", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b = {.in_place = false};
    long root;

    if (!c || kc_args(&signature, args, nargs, kw, a) || kc_int("root", a[2], 0, c->size - 1, 0, &root)) return NULL;
    if (root == c->rank && !kc_given(a[1])) return kc_refuse("gather: the root needs recv"), NULL;
    if (kc_memory_hold(a[0], "send", false, NULL, &b.send)) return NULL;
    if (root == c->rank && kc_memory_hold(a[1], "recv", true, NULL, &b.recv)) return release(&b), NULL;
    if (root == c->rank && b.recv.bytes != b.send.bytes * (size_t)c->size)
        return fail(&b, "gather", "recv to hold a piece like send of each rank"), NULL;
    result = root == c->rank ? a[1] : Py_None;
    stream = a[3];
    ISSUE(ncclGather(b.send.data, b.recv.data, b.send.bytes, ncclUint8, (int)root, c->comm, (cudaStream_t)on));
}

PyObject *kc_scatter(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("scatter", 2, 3, "send", "recv", "root", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b = {.in_place = false};
    long root;

    if (!c || kc_args(&signature, args, nargs, kw, a) || kc_int("root", a[2], 0, c->size - 1, 0, &root)) return NULL;
    if (root == c->rank && !kc_given(a[0])) return kc_refuse("scatter: the root needs send"), NULL;
    if (kc_memory_hold(a[1], "recv", true, NULL, &b.recv)) return NULL;
    if (root == c->rank && kc_memory_hold(a[0], "send", false, NULL, &b.send)) return release(&b), NULL;
    if (root == c->rank && b.send.bytes != b.recv.bytes * (size_t)c->size)
        return fail(&b, "scatter", "send to hold a piece like recv for each rank"), NULL;
    result = a[1];
    stream = a[3];
    ISSUE(ncclScatter(b.send.data, b.recv.data, b.recv.bytes, ncclUint8, (int)root, c->comm, (cudaStream_t)on));
}

static PyObject *refuse_stream(void)
{
    return kc_refuse("a message with a tag is in no stream's order: give either"), NULL;
}

PyObject *kc_send(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("send", 2, 2, "send", "peer", "stream", "tag");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result = Py_None, *stream;
    struct both b = {.in_place = false};
    long peer;

    if (!c || kc_args(&signature, args, nargs, kw, a)) return NULL;
    if (kc_given(a[3])) return kc_given(a[2]) ? refuse_stream() : kc_send_tagged(c, a[0], a[1], a[3]);
    if (kc_int("peer", a[1], 0, c->size - 1, -1, &peer) || kc_memory_hold(a[0], "send", false, NULL, &b.send))
        return NULL;
    stream = a[2];
    ISSUE(ncclSend(b.send.data, b.send.bytes, ncclUint8, (int)peer, c->comm, (cudaStream_t)on));
}

PyObject *kc_recv(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("recv", 2, 2, "recv", "peer", "stream", "tag", "status");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b = {.in_place = false};
    long peer;

    if (!c || kc_args(&signature, args, nargs, kw, a)) return NULL;
    if (kc_given(a[3])) return kc_given(a[2]) ? refuse_stream() : kc_recv_tagged(c, a[0], a[1], a[3], a[4]);
    if (kc_given(a[4]))
        return kc_refuse("recv: status needs tag=: messages without one have the order of operations"), NULL;
    if (kc_int("peer", a[1], 0, c->size - 1, -1, &peer) || kc_memory_hold(a[0], "recv", true, NULL, &b.recv))
        return NULL;
    result = a[0];
    stream = a[2];
    ISSUE(ncclRecv(b.recv.data, b.recv.bytes, ncclUint8, (int)peer, c->comm, (cudaStream_t)on));
}

PyObject *kc_barrier(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("barrier", 0, 0, "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result = Py_None, *stream;
    struct both b = {.in_place = false};

    if (!c || kc_args(&signature, args, nargs, kw, a)) return NULL;
    stream = a[0];
    ISSUE(koloBarrier(c->comm, (cudaStream_t)on));
}

/* ---- counts that differ from rank to rank ---- */

/* A number of elements. */
static int read_count(PyObject *o, const char *name, size_t *count)
{
    Py_ssize_t value = PyLong_AsSsize_t(o);

    if (value == -1 && PyErr_Occurred()) return -1;
    *count = (size_t)value;
    return value < 0 ? kc_refuse("%s has a %zd; expected 0 or more elements", name, value) : 0;
}

/* n numbers of a sequence. */
static int read_counts(PyObject *o, const char *name, int n, size_t *to)
{
    PyObject *list = PySequence_List(o);
    int bad = !list;

    if (list && PyList_Size(list) != n)
        bad = kc_refuse("%s has %zd numbers; expected one for each of %d ranks", name, PyList_Size(list), n);
    for (int i = 0; i < n && !bad; i++) bad = read_count(PyList_GetItem(list, i), name, &to[i]);
    Py_XDECREF(list);
    return bad ? -1 : 0;
}

/* Offsets: those given, or pieces one behind the other. Every piece is inside its memory of `elements`. */
static int read_pieces(PyObject *counts, PyObject *displs, const char *name, int n, size_t elements, size_t *count,
                       size_t *displ)
{
    size_t next = 0;

    if (read_counts(counts, name, n, count) || (kc_given(displs) && read_counts(displs, "displs", n, displ))) return -1;
    for (int i = 0; i < n; i++) {
        if (!kc_given(displs)) displ[i] = next;
        if (count[i] > elements || displ[i] > elements - count[i])
            return kc_refuse("%s: the %zu elements of rank %d from %zu on are not inside a buffer of %zu", name,
                             count[i], i, displ[i], elements);
        next = displ[i] + count[i];
    }
    return 0;
}

/* Elements that are moved only: their type need not be one of NCCL's. */
static void scale(size_t *numbers, int n, size_t item)
{
    for (int i = 0; i < n; i++) numbers[i] *= item;
}

static int hold_numbers(struct both *b, int n)
{
    b->numbers = calloc((size_t)n, sizeof *b->numbers);
    if (b->numbers) return 0;
    release(b);
    PyErr_NoMemory();
    return -1;
}

PyObject *kc_allgatherv(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("allgatherv", 3, 4, "send", "recv", "counts", "displs", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b;

    if (!c || kc_args(&signature, args, nargs, kw, a) || hold(&b, a[0], a[1], NULL) || hold_numbers(&b, 2 * c->size))
        return NULL;
    size_t *count = b.numbers, *displ = count + c->size;
    if (b.in_place || b.send.item != b.recv.item)
        return fail(&b, "allgatherv", "send and recv with elements of one type"), NULL;
    if (read_pieces(a[2], a[3], "counts", c->size, b.recv.bytes / b.recv.item, count, displ)) return release(&b), NULL;
    if (count[c->rank] * b.send.item != b.send.bytes)
        return fail(&b, "allgatherv", "send to hold as many elements as this rank's entry of counts"), NULL;
    scale(b.numbers, 2 * c->size, b.recv.item);
    result = a[1];
    stream = a[4];
    ISSUE(koloAllGatherV(b.send.data, b.send.bytes, b.recv.data, count, displ, ncclUint8, c->comm, (cudaStream_t)on));
}

PyObject *kc_reduce_scatterv(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("reduce_scatterv", 3, 4, "send", "recv", "counts", "op", "stream", "dtype");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b;
    ncclRedOp_t op;

    if (!c || kc_args(&signature, args, nargs, kw, a) || read_op(a[3], &op) || hold(&b, a[0], a[1], a[5]) ||
        hold_numbers(&b, 2 * c->size) || check_types(&b, "reduce_scatterv"))
        return NULL;
    size_t *count = b.numbers, *displ = count + c->size, elements = b.send.bytes / b.send.item;
    if (read_pieces(a[2], NULL, "counts", c->size, elements, count, displ)) return release(&b), NULL;
    if (b.in_place || displ[c->size - 1] + count[c->size - 1] != elements ||
        count[c->rank] * b.recv.item != b.recv.bytes)
        return fail(&b, "reduce_scatterv", "send to hold all elements of counts, recv this rank's"), NULL;
    result = a[1];
    stream = a[4];
    ISSUE(koloReduceScatterV(b.send.data, b.recv.data, count, (ncclDataType_t)b.send.type, op, c->comm,
                             (cudaStream_t)on));
}

PyObject *kc_alltoallv(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("alltoallv", 4, 6, "send", "send_counts", "recv", "recv_counts", "send_displs", "recv_displs", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result, *stream;
    struct both b;

    if (!c || kc_args(&signature, args, nargs, kw, a) || hold(&b, a[0], a[2], NULL) || hold_numbers(&b, 4 * c->size))
        return NULL;
    size_t *sent = b.numbers, *from = sent + c->size, *got = from + c->size, *to = got + c->size;
    if (b.in_place || b.send.item != b.recv.item)
        return fail(&b, "alltoallv", "send and recv with elements of one type"), NULL;
    if (read_pieces(a[1], a[4], "send_counts", c->size, b.send.bytes / b.send.item, sent, from) ||
        read_pieces(a[3], a[5], "recv_counts", c->size, b.recv.bytes / b.recv.item, got, to))
        return release(&b), NULL;
    scale(b.numbers, 4 * c->size, b.recv.item);
    result = a[2];
    stream = a[6];
    ISSUE(koloAllToAllV(b.send.data, sent, from, b.recv.data, got, to, ncclUint8, c->comm, (cudaStream_t)on));
}

/* ---- one-sided ---- */

PyTypeObject *kc_window_type;

struct window {
    PyObject_HEAD
    ncclWindow_t window;
    PyObject *comm, *owner; /* of the communicator and of the memory */
};

static void window_dealloc(PyObject *self)
{
    struct window *w = (struct window *)self;
    PyTypeObject *type = Py_TYPE(self);
    struct kc_comm *c = (struct kc_comm *)w->comm;

    if (w->window && c && c->comm) ncclCommWindowDeregister(c->comm, w->window);
    Py_XDECREF(w->owner);
    Py_XDECREF(w->comm);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot window_slots[] = {
    {Py_tp_dealloc, window_dealloc},
    {Py_tp_doc, (void *)"Memory of this rank that the others may write to: Communicator.register_window()."},
    {0, NULL},
};

static PyType_Spec window_spec = {"kolocc._core.Window", sizeof(struct window), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, window_slots};

int kc_windows_add(PyObject *module)
{
    kc_window_type = (PyTypeObject *)PyType_FromSpec(&window_spec);
    return kc_window_type ? PyModule_AddObjectRef(module, "Window", (PyObject *)kc_window_type) : -1;
}

PyObject *kc_register_window(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("register_window", 1, 1, "memory");
    struct kc_comm *c = comm_of(self);
    struct kc_memory m, none = {.has_view = false};
    PyObject *a[KC_ARGS];
    struct window *w;
    ncclResult_t rc;

    if (!c || kc_args(&signature, args, nargs, kw, a) || kc_memory_hold(a[0], "memory", true, NULL, &m)) return NULL;
    w = (struct window *)((allocfunc)PyType_GetSlot(kc_window_type, Py_tp_alloc))(kc_window_type, 0);
    if (!w) return kc_memory_release(&m), NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = ncclCommWindowRegister(c->comm, m.data, m.bytes, &w->window, 0);
    Py_END_ALLOW_THREADS
    w->comm = Py_NewRef(self);
    if (rc) w->window = NULL;
    if (!rc) w->owner = kc_memory_owner(&m, &none);
    kc_memory_release(&m);
    if (!rc && w->owner) return (PyObject *)w;
    Py_DECREF(w);
    return rc ? kc_raise(rc, c->rank) : NULL;
}

PyObject *kc_put_signal(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("put_signal", 3, 3, "send", "peer", "window", "offset", "signal", "context", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result = Py_None, *stream;
    struct both b = {.in_place = false};
    long peer, offset, number, context;

    if (!c || kc_args(&signature, args, nargs, kw, a) || kc_int("peer", a[1], 0, c->size - 1, -1, &peer) ||
        kc_int("offset", a[3], 0, PY_SSIZE_T_MAX, 0, &offset) || kc_int("signal", a[4], 0, 15, 0, &number) ||
        kc_int("context", a[5], 0, 1 << 20, 0, &context))
        return NULL;
    if (!PyObject_TypeCheck(a[2], kc_window_type)) {
        PyErr_SetString(PyExc_TypeError, "put_signal(): window is no Window");
        return NULL;
    }
    if (kc_memory_hold(a[0], "send", false, NULL, &b.send)) return NULL;
    stream = a[6];
    ISSUE(ncclPutSignal(b.send.data, b.send.bytes, ncclUint8, (int)peer, ((struct window *)a[2])->window,
                        (size_t)offset, (int)number, (int)context, 0, c->comm, (cudaStream_t)on));
}

PyObject *kc_signal(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("signal", 1, 1, "peer", "signal", "context", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result = Py_None, *stream;
    struct both b = {.in_place = false};
    long peer, number, context;

    if (!c || kc_args(&signature, args, nargs, kw, a) || kc_int("peer", a[0], 0, c->size - 1, -1, &peer) ||
        kc_int("signal", a[1], 0, 15, 0, &number) || kc_int("context", a[2], 0, 1 << 20, 0, &context))
        return NULL;
    stream = a[3];
    ISSUE(ncclSignal((int)peer, (int)number, (int)context, 0, c->comm, (cudaStream_t)on));
}

PyObject *kc_wait_signal(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    SIGNATURE("wait_signal", 1, 2, "peer", "count", "signal", "context", "stream");
    struct kc_comm *c = comm_of(self);
    PyObject *a[KC_ARGS], *result = Py_None, *stream;
    struct both b = {.in_place = false};
    long peer, count, number, context;

    if (!c || kc_args(&signature, args, nargs, kw, a) || kc_int("peer", a[0], 0, c->size - 1, -1, &peer) ||
        kc_int("count", a[1], 1, INT_MAX, 1, &count) || kc_int("signal", a[2], 0, 15, 0, &number) ||
        kc_int("context", a[3], 0, 1 << 20, 0, &context))
        return NULL;
    ncclWaitSignalDesc_t wanted = {(int)count, (int)peer, (int)number, (int)context};

    stream = a[4];
    ISSUE(ncclWaitSignal(1, &wanted, c->comm, (cudaStream_t)on));
}
