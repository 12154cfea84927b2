/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *kc_comm_type;

/* ---- issue ---- */

static int make_stream(struct kc_comm *c, unsigned flags, koloStream_t *stream)
{
    int before = 0;
    ncclResult_t rc;

    if (*stream) return 0;
    koloGetDevice(&before);
    rc = koloSetDevice(c->device);
    if (!rc) rc = koloStreamCreate(stream, flags);
    koloSetDevice(before);
    return rc ? kc_raise(rc, c->rank), -1 : 0;
}

int kc_issue_stream(struct kc_comm *c, PyObject *stream, koloStream_t *to)
{
    if (kc_given(stream)) {
        if (!PyObject_TypeCheck(stream, kc_stream_type)) {
            PyErr_SetString(PyExc_TypeError, "stream is no Stream");
            return -1;
        }
        *to = ((struct kc_stream *)stream)->stream;
        return 0;
    }
    if (kc_in_group()) {
        if (make_stream(c, KOLO_STREAM_DEFAULT, &c->grouped)) return -1;
        *to = c->grouped;
        return 0;
    }
    if (make_stream(c, KOLO_STREAM_INLINE, &c->now)) return -1;
    *to = c->now;
    return 0;
}

enum { KEPT = 256 }; /* owners that a stream keeps before it looks whether they are still needed */

static int keep(struct kc_stream *s, PyObject *owner)
{
    if (PyList_Size(s->kept) >= KEPT && koloStreamQuery(s->stream) == ncclSuccess &&
        PyList_SetSlice(s->kept, 0, PyList_Size(s->kept), NULL))
        return -1;
    return PyList_Append(s->kept, owner);
}

/* Queued: the stream or the group keeps the memory. */
static int keep_both(struct kc_comm *c, PyObject *stream, koloStream_t on, struct kc_memory *a, struct kc_memory *b)
{
    PyObject *owner = kc_memory_owner(a, b);
    int rc;

    if (!owner) return -1;
    if (kc_given(stream))
        rc = keep((struct kc_stream *)stream, owner);
    else
        rc = kc_group_keep(owner, on, c->rank);
    Py_DECREF(owner);
    return rc;
}

PyObject *kc_issue_end(struct kc_comm *c, PyObject *stream, koloStream_t on, ncclResult_t rc, struct kc_memory *a,
                       struct kc_memory *b, PyObject *result)
{
    int kept = 0;

    if (!rc && (kc_given(stream) || kc_in_group()))
        kept = keep_both(c, stream, on, a, b);
    else if (!rc) {
        Py_BEGIN_ALLOW_THREADS
        rc = koloStreamSynchronize(on);
        Py_END_ALLOW_THREADS
    }
    kc_memory_release(a);
    kc_memory_release(b);
    if (rc) return kc_raise(rc, c->rank);
    return kept ? NULL : Py_NewRef(result);
}

/* ---- life ---- */

static void end_streams(struct kc_comm *c)
{
    if (c->now) koloStreamDestroy(c->now);
    if (c->grouped) koloStreamDestroy(c->grouped);
    c->now = c->grouped = NULL;
}

static struct kc_comm *comm_alloc(void)
{
    return (struct kc_comm *)((allocfunc)PyType_GetSlot(kc_comm_type, Py_tp_alloc))(kc_comm_type, 0);
}

/* Takes the communicator. */
static PyObject *wrap(ncclComm_t comm)
{
    struct kc_comm *c = comm_alloc();

    if (!c) {
        ncclCommAbort(comm);
        return NULL;
    }
    c->comm = comm;
    ncclCommUserRank(comm, &c->rank);
    ncclCommCount(comm, &c->size);
    ncclCommCuDevice(comm, &c->device);
    return (PyObject *)c;
}

static void comm_dealloc(PyObject *self)
{
    struct kc_comm *c = (struct kc_comm *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (c->comm) {
        ncclComm_t comm = c->comm;

        c->comm = NULL;
        Py_BEGIN_ALLOW_THREADS
        ncclCommAbort(comm); /* nobody destroyed it, and its peers may be gone */
        Py_END_ALLOW_THREADS
    }
    end_streams(c);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int read_id(PyObject *o, ncclUniqueId *id)
{
    char *bytes;
    Py_ssize_t n;

    if (PyBytes_AsStringAndSize(o, &bytes, &n)) return -1;
    if (n != (Py_ssize_t)sizeof id->internal)
        return kc_refuse("unique_id has %zd bytes; expected the %zu of get_unique_id()", n, sizeof id->internal);
    memcpy(id->internal, bytes, sizeof id->internal);
    return 0;
}

static PyObject *comm_init(PyObject *type, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    static const struct kc_signature signature = {"init", {"nranks", "rank", "unique_id", "name"}, 4, 3, 3};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    PyObject *a[KC_ARGS];
    ncclComm_t comm = NULL;
    ncclUniqueId id;
    ncclResult_t rc;
    long nranks, rank;
    PyObject *name = NULL;

    (void)type;
    if (kc_args(&signature, args, nargs, kw, a) || kc_int("nranks", a[0], 1, INT_MAX, 1, &nranks) ||
        kc_int("rank", a[1], 0, nranks - 1, 0, &rank) || read_id(a[2], &id))
        return NULL;
    if (kc_given(a[3])) {
        name = PyUnicode_AsUTF8String(a[3]);
        if (!name) return NULL;
        config.commName = PyBytes_AsString(name);
    }
    Py_BEGIN_ALLOW_THREADS
    rc = ncclCommInitRankConfig(&comm, (int)nranks, id, (int)rank, &config);
    Py_END_ALLOW_THREADS
    Py_XDECREF(name);
    return rc ? kc_raise(rc, (int)rank) : wrap(comm);
}

static PyObject *comm_from_env(PyObject *type, PyObject *unused)
{
    ncclComm_t comm = NULL;
    ncclResult_t rc;

    (void)type, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    rc = koloInitFromEnv(&comm);
    Py_END_ALLOW_THREADS
    return rc ? kc_raise(rc, -1) : wrap(comm);
}

static PyObject *wrap_all(ncclComm_t *comm, int n)
{
    PyObject *list = PyList_New(0);

    for (int i = 0; i < n; i++) {
        PyObject *one = list ? wrap(comm[i]) : NULL;

        if (!list) ncclCommAbort(comm[i]);
        if (one && PyList_Append(list, one)) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    if (list && PyList_Size(list) != n) Py_CLEAR(list);
    return list;
}

static PyObject *comm_init_all(PyObject *type, PyObject *number)
{
    const long n = PyLong_AsLong(number);
    ncclComm_t *comm;
    ncclResult_t rc;
    PyObject *list = NULL;

    (void)type;
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 1 || n > 4096) return kc_refuse("n is %ld; expected 1 to 4096", n), NULL;
    comm = calloc((size_t)n, sizeof(ncclComm_t));
    if (!comm) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    rc = ncclCommInitAll(comm, (int)n, NULL);
    Py_END_ALLOW_THREADS
    if (rc)
        kc_raise(rc, -1);
    else
        list = wrap_all(comm, (int)n);
    free(comm);
    return list;
}

static PyObject *comm_end(PyObject *self, ncclResult_t (*end)(ncclComm_t))
{
    struct kc_comm *c = (struct kc_comm *)self;
    ncclComm_t comm = c->comm;
    ncclResult_t rc;

    if (!comm) Py_RETURN_NONE;
    c->comm = NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = end(comm);
    end_streams(c);
    Py_END_ALLOW_THREADS
    if (rc) return kc_raise(rc, c->rank);
    Py_RETURN_NONE;
}

static PyObject *comm_destroy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return comm_end(self, ncclCommDestroy);
}

static PyObject *comm_abort(PyObject *self, PyObject *unused)
{
    (void)unused;
    return comm_end(self, ncclCommAbort);
}

static PyObject *comm_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *comm_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    return comm_end(self, n && kc_given(args[0]) ? ncclCommAbort : ncclCommDestroy);
}

/* ---- other communicators ---- */

static int alive(const struct kc_comm *c)
{
    return c->comm ? 0 : kc_refuse("the communicator was destroyed");
}

static PyObject *comm_split(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    static const struct kc_signature signature = {"split", {"color", "key"}, 2, 1, 2};
    struct kc_comm *c = (struct kc_comm *)self;
    PyObject *a[KC_ARGS];
    ncclComm_t comm = NULL;
    long color, key;
    ncclResult_t rc;

    if (alive(c) || kc_args(&signature, args, nargs, kw, a) ||
        kc_int("color", a[0], 0, INT_MAX, NCCL_SPLIT_NOCOLOR, &color) ||
        kc_int("key", a[1], INT_MIN, INT_MAX, c->rank, &key))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = ncclCommSplit(c->comm, (int)color, (int)key, &comm, NULL);
    Py_END_ALLOW_THREADS
    if (rc) return kc_raise(rc, c->rank);
    if (comm) return wrap(comm);
    Py_RETURN_NONE;
}

static PyObject *comm_get_unique_id(PyObject *self, PyObject *unused)
{
    struct kc_comm *c = (struct kc_comm *)self;
    ncclUniqueId id;
    ncclResult_t rc;

    (void)unused;
    if (alive(c)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = ncclCommGetUniqueId(c->comm, &id);
    Py_END_ALLOW_THREADS
    return rc ? kc_raise(rc, c->rank) : PyBytes_FromStringAndSize(id.internal, sizeof id.internal);
}

static PyObject *comm_grow(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    static const struct kc_signature signature = {"grow", {"nranks", "unique_id"}, 2, 1, 2};
    struct kc_comm *c = (struct kc_comm *)self;
    PyObject *a[KC_ARGS];
    ncclComm_t comm = NULL;
    ncclUniqueId id;
    ncclResult_t rc;
    long n;

    if (alive(c) || kc_args(&signature, args, nargs, kw, a) || kc_int("nranks", a[0], c->size + 1, INT_MAX, 0, &n) ||
        (kc_given(a[1]) && read_id(a[1], &id)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = ncclCommGrow(c->comm, (int)n, kc_given(a[1]) ? &id : NULL, -1, &comm, NULL);
    Py_END_ALLOW_THREADS
    return rc ? kc_raise(rc, c->rank) : wrap(comm);
}

static PyObject *comm_grow_join(PyObject *unused, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    static const struct kc_signature signature = {"grow_join", {"nranks", "rank", "unique_id"}, 3, 3, 3};
    PyObject *a[KC_ARGS];
    ncclComm_t comm = NULL;
    ncclUniqueId id;
    ncclResult_t rc;
    long n, rank;

    (void)unused;
    if (kc_args(&signature, args, nargs, kw, a) || kc_int("nranks", a[0], 2, INT_MAX, 0, &n) ||
        kc_int("rank", a[1], 1, n - 1, 0, &rank) || read_id(a[2], &id))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = ncclCommGrow(NULL, (int)n, &id, (int)rank, &comm, NULL);
    Py_END_ALLOW_THREADS
    return rc ? kc_raise(rc, (int)rank) : wrap(comm);
}

static PyObject *comm_shrink(PyObject *self, PyObject *ranks)
{
    struct kc_comm *c = (struct kc_comm *)self;
    PyObject *list = alive(c) ? NULL : PySequence_List(ranks);
    int *exclude = NULL, n = 0;
    ncclComm_t comm = NULL;
    ncclResult_t rc;

    if (!list) return NULL;
    exclude = calloc((size_t)PyList_Size(list) + 1, sizeof *exclude);
    for (; exclude && n < PyList_Size(list); n++) {
        long rank;

        if (kc_int("rank", PyList_GetItem(list, n), 0, c->size - 1, -1, &rank)) break;
        exclude[n] = (int)rank;
    }
    const bool good = exclude && n == PyList_Size(list);

    Py_DECREF(list);
    if (!good) {
        if (!exclude) PyErr_NoMemory();
        free(exclude);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    rc = ncclCommShrink(c->comm, exclude, n, &comm, NULL, NCCL_SHRINK_DEFAULT);
    Py_END_ALLOW_THREADS
    free(exclude);
    return rc ? kc_raise(rc, c->rank) : wrap(comm);
}

static PyObject *comm_finalize(PyObject *self, PyObject *unused)
{
    struct kc_comm *c = (struct kc_comm *)self;
    ncclResult_t rc;

    (void)unused;
    if (alive(c)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = ncclCommFinalize(c->comm);
    Py_END_ALLOW_THREADS
    if (rc) return kc_raise(rc, c->rank);
    Py_RETURN_NONE;
}

static PyObject *comm_set_timeout(PyObject *self, PyObject *seconds)
{
    struct kc_comm *c = (struct kc_comm *)self;
    const double s = PyFloat_AsDouble(seconds);
    ncclResult_t rc;

    if (alive(c) || (s == -1 && PyErr_Occurred())) return NULL;
    if (!(s >= 0 && s < 1e9)) return kc_refuse("seconds is %R; expected 0 (for ever) or more", seconds), NULL;
    rc = koloSetTimeout(c->comm, (unsigned long long)(s * 1e3));
    if (rc) return kc_raise(rc, c->rank);
    Py_RETURN_NONE;
}

static PyObject *comm_create_pre_mul_sum(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    static const struct kc_signature signature = {"create_pre_mul_sum", {"scalar", "dtype"}, 2, 2, 2};
    struct kc_comm *c = (struct kc_comm *)self;
    PyObject *a[KC_ARGS];
    ncclRedOp_t op;
    size_t item;
    ncclResult_t rc;
    int type;

    if (alive(c) || kc_args(&signature, args, nargs, kw, a)) return NULL;
    const double scalar = PyFloat_AsDouble(a[0]);

    if ((scalar == -1 && PyErr_Occurred()) || (type = kc_type_named(a[1], &item)) < 0) return NULL;
    union {
        float f;
        double d;
    } value;

    if (type == ncclFloat32)
        value.f = (float)scalar;
    else if (type == ncclFloat64)
        value.d = scalar;
    else
        return kc_refuse("dtype %R: expected float32 or float64", a[1]), NULL;
    rc = ncclRedOpCreatePreMulSum(&op, &value, (ncclDataType_t)type, ncclScalarHostImmediate, c->comm);
    return rc ? kc_raise(rc, c->rank) : PyLong_FromLong((long)op);
}

static PyObject *comm_destroy_op(PyObject *self, PyObject *op)
{
    struct kc_comm *c = (struct kc_comm *)self;
    const long number = PyLong_AsLong(op);
    ncclResult_t rc;

    if (alive(c) || (number == -1 && PyErr_Occurred())) return NULL;
    rc = ncclRedOpDestroy((ncclRedOp_t)number, c->comm);
    if (rc) return kc_raise(rc, c->rank);
    Py_RETURN_NONE;
}

static PyObject *comm_async_error(PyObject *self, PyObject *unused)
{
    struct kc_comm *c = (struct kc_comm *)self;
    ncclResult_t error = ncclSuccess, rc;

    (void)unused;
    if (alive(c)) return NULL;
    rc = ncclCommGetAsyncError(c->comm, &error);
    if (!rc) rc = error;
    if (rc && rc != ncclInProgress) return kc_raise(rc, c->rank);
    Py_RETURN_NONE;
}

/* ---- the type ---- */

static PyObject *get_rank(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((struct kc_comm *)self)->rank);
}

static PyObject *get_size(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((struct kc_comm *)self)->size);
}

static PyObject *get_device(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((struct kc_comm *)self)->device);
}

static PyGetSetDef comm_fields[] = {
    {"rank", get_rank, NULL, "This rank, from 0.", NULL},
    {"size", get_size, NULL, "The number of ranks.", NULL},
    {"device", get_device, NULL, "The device that this rank uses.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define FAST(function)       ((PyCFunction)(void (*)(void))(function)), METH_FASTCALL | METH_KEYWORDS
#define FAST_CLASS(function) ((PyCFunction)(void (*)(void))(function)), METH_FASTCALL | METH_KEYWORDS | METH_STATIC

#define BUFFERS "Buffers have the buffer protocol or __dlpack__, and are contiguous. "
#define STREAMS                                                                                                        \
    "Without a stream it has finished when it returns, and its failure is raised; with one it is queued, and the "     \
    "stream keeps the buffers."

PyMethodDef kc_comm_methods[] = {
    {"init", FAST_CLASS(comm_init),
     "init(nranks, rank, unique_id, *, name=None)\n--\n\nJoin a communicator of nranks ranks as rank (from 0). All "
     "ranks call it with one id of "
     "get_unique_id(); it waits for them. Raises RemoteError or Timeout if one does not come."},
    {"init_from_env", comm_from_env, METH_NOARGS | METH_STATIC,
     "init_from_env()\n--\n\nJoin the job that the environment describes: kolo run, torchrun, mpirun, srun. One rank "
     "without a job."},
    {"init_all", comm_init_all, METH_O | METH_STATIC,
     "init_all(n)\n--\n\nn communicators of one clique, all in this process: a list, by rank."},
    {"split", FAST(comm_split),
     "split(color, key=None)\n--\n\nA communicator of the ranks with this color (0 or more), by key (default: rank). "
     "All ranks call it; color None: no part "
     "in any, and None is returned."},
    {"shrink", comm_shrink, METH_O, "shrink(ranks)\n--\n\nA communicator without these ranks; the others call it."},
    {"get_unique_id", comm_get_unique_id, METH_NOARGS,
     "get_unique_id()\n--\n\nAn id with which new ranks join the next communicator that grow() makes of this one: "
     "bytes. "
     "One rank calls it."},
    {"grow", FAST(comm_grow),
     "grow(nranks, unique_id=None)\n--\n\nA communicator of these ranks, which keep their numbers, and of new ones, "
     "which "
     "call grow_join(). "
     "All ranks call it; unique_id may be None except on the rank that made it."},
    {"grow_join", FAST_CLASS(comm_grow_join),
     "grow_join(nranks, rank, unique_id)\n--\n\nJoin a communicator that grows to nranks, as a rank from its size on, "
     "with "
     "the id of its get_unique_id()."},
    {"finalize", comm_finalize, METH_NOARGS, "finalize()\n--\n\nWait until all that was issued is done on all ranks."},
    {"destroy", comm_destroy, METH_NOARGS,
     "destroy()\n--\n\nWait for all issued operations, and free the communicator. Again: nothing."},
    {"abort", comm_abort, METH_NOARGS,
     "abort()\n--\n\nEnd operations under way, without waiting for other ranks, and free the communicator. Again: "
     "nothing."},
    {"set_timeout", comm_set_timeout, METH_O,
     "set_timeout(seconds)\n--\n\nHow long later operations may stand still before they fail on all ranks; 0: for "
     "ever."},
    {"async_error", comm_async_error, METH_NOARGS,
     "async_error()\n--\n\nRaise the failure of the communicator, if there is one."},
    {"create_pre_mul_sum", FAST(comm_create_pre_mul_sum),
     "create_pre_mul_sum(scalar, dtype)\n--\n\nAn op that multiplies this rank's elements by scalar before the sum; "
     "dtype: float32 or float64."},
    {"destroy_op", comm_destroy_op, METH_O, "destroy_op(op)\n--\n\nFree an op of create_pre_mul_sum."},
    {"__enter__", comm_enter, METH_NOARGS, NULL},
    {"__exit__", ((PyCFunction)(void (*)(void))comm_exit), METH_FASTCALL, NULL},
    {"allreduce", FAST(kc_allreduce),
     "allreduce(send, recv=None, op='sum', *, stream=None, dtype=None)\n--\n\nReduce all ranks' send, element by "
     "element, into every rank's recv, which has as "
     "many bytes; recv None: in place. op: sum prod max min avg band bor bxor land lor lxor. dtype names the elements "
     "of buffers that cannot "
     "say it (\"bfloat16\"). Returns recv. " BUFFERS STREAMS " Raises ValueError for buffers that do not fit."},
    {"reduce", FAST(kc_reduce),
     "reduce(send, recv=None, op='sum', root=0, *, stream=None, dtype=None)\n--\n\nAs allreduce, with the result on "
     "root only. " STREAMS},
    {"broadcast", FAST(kc_broadcast),
     "broadcast(send, recv=None, root=0, *, stream=None)\n--\n\nThe root's send to every rank's recv, which has as "
     "many bytes; recv None: in place. "
     "Returns recv. " BUFFERS STREAMS},
    {"allgather", FAST(kc_allgather),
     "allgather(send, recv, *, stream=None)\n--\n\nEvery rank's send to all ranks' recv, by rank: recv has size times "
     "the bytes. Returns recv. " BUFFERS STREAMS},
    {"reduce_scatter", FAST(kc_reduce_scatter),
     "reduce_scatter(send, recv, op='sum', *, stream=None, dtype=None)\n--\n\nReduce all ranks' send, and give rank i "
     "the i-th piece: send has size times the "
     "bytes of recv. Returns recv. " BUFFERS STREAMS},
    {"alltoall", FAST(kc_alltoall),
     "alltoall(send, recv, *, stream=None)\n--\n\nThe j-th piece of rank i's send becomes the i-th of rank j's recv; "
     "pieces are equal. Returns recv. " BUFFERS STREAMS},
    {"allgatherv", FAST(kc_allgatherv),
     "allgatherv(send, recv, counts, displs=None, *, stream=None)\n--\n\nrecv[displs[r]:][:counts[r]] = send of rank "
     "r, "
     "on every rank. "
     "counts, displs: elements, one for each rank, the same on all; without displs piece follows piece. " BUFFERS
         STREAMS},
    {"reduce_scatterv", FAST(kc_reduce_scatterv),
     "reduce_scatterv(send, recv, counts, op='sum', *, stream=None, dtype=None)\n--\n\nThe pieces of send, counts[r] "
     "elements for rank r one behind the other, are reduced; each rank gets its own in recv. " BUFFERS STREAMS},
    {"alltoallv", FAST(kc_alltoallv),
     "alltoallv(send, send_counts, recv, recv_counts, send_displs=None, recv_displs=None, *, stream=None)\n--\n\nTo "
     "rank "
     "r go send_counts[r] elements, from it come recv_counts[r]; without displs piece follows piece. Not in "
     "place. " BUFFERS STREAMS},
    {"gather", FAST(kc_gather),
     "gather(send, recv=None, root=0, *, stream=None)\n--\n\nEvery rank's send to the root's recv, by rank. Returns "
     "recv on the root, else None. " BUFFERS STREAMS},
    {"scatter", FAST(kc_scatter),
     "scatter(send, recv, root=0, *, stream=None)\n--\n\nThe i-th piece of the root's send to rank i's recv; others "
     "give None as send. Returns recv. " BUFFERS STREAMS},
    {"send", FAST(kc_send),
     "send(send, peer, *, stream=None, tag=None)\n--\n\nSend to a rank, which calls recv with as many bytes. Messages "
     "between two ranks that go both ways stand in a group. " STREAMS
     " tag (0 or more): the message is outside of the order of operations, as with isend().wait()."},
    {"recv", FAST(kc_recv),
     "recv(recv, peer, *, stream=None, tag=None, status=None)\n--\n\nReceive from a rank that sends as many bytes. "
     "Returns recv. " STREAMS
     " tag, or ANY_TAG: a message that was sent with a tag, as with irecv().wait(); peer may be "
     "ANY_SOURCE; status: a Status, which is filled in."},
    {"isend", FAST(kc_isend),
     "isend(send, peer, tag=0)\n--\n\nSend a message with a tag, 0 or more; returns a Request. Messages with tags are "
     "outside of the order of operations, proceed in the background, and any thread may send and receive them. The "
     "buffer must not change before the request is over."},
    {"irecv", FAST(kc_irecv),
     "irecv(recv, peer=ANY_SOURCE, tag=ANY_TAG)\n--\n\nReceive the first message that fits; returns a Request, whose "
     "Status has source, tag and bytes. recv may be longer than the message, not shorter."},
    {"iprobe", FAST(kc_iprobe),
     "iprobe(peer=ANY_SOURCE, tag=ANY_TAG)\n--\n\nThe Status of the message that a receive would take now, or None."},
    {"barrier", FAST(kc_barrier), "barrier(*, stream=None)\n--\n\nWait until all ranks are there. " STREAMS},
    {"register_window", FAST(kc_register_window),
     "register_window(memory)\n--\n\nLet other ranks write to memory; all ranks call it, each with its own. Best with "
     "SharedMemory. The window keeps it."},
    {"put_signal", FAST(kc_put_signal),
     "put_signal(send, peer, window, *, offset=0, signal=0, context=0, stream=None)\n--\n\nWrite send into the peer's "
     "window at a byte offset, then signal it. " STREAMS},
    {"signal", FAST(kc_signal),
     "signal(peer, *, signal=0, context=0, stream=None)\n--\n\nSignal a rank, behind earlier puts to it. " STREAMS},
    {"wait_signal", FAST(kc_wait_signal),
     "wait_signal(peer, count=1, *, signal=0, context=0, stream=None)\n--\n\nWait for count signals of a rank; the "
     "puts before them have arrived. " STREAMS},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot comm_slots[] = {
    {Py_tp_dealloc, comm_dealloc},
    {Py_tp_methods, kc_comm_methods},
    {Py_tp_getset, comm_fields},
    {Py_tp_doc, (void *)"A communicator: Communicator.init(), init_all(), init_from_env(). With `with` it is destroyed "
                        "at the end, or aborted after an exception. "
                        "One thread at a time issues operations."},
    {0, NULL},
};

static PyType_Spec comm_spec = {"kolocc._core.Communicator", sizeof(struct kc_comm), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, comm_slots};

int kc_comms_add(PyObject *module)
{
    kc_comm_type = (PyTypeObject *)PyType_FromSpec(&comm_spec);
    return kc_comm_type ? PyModule_AddObjectRef(module, "Communicator", (PyObject *)kc_comm_type) : -1;
}
