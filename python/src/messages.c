/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with tags: isend, irecv, iprobe of a communicator, Request, and the waits of send and recv. */
#include "core.h"

#include <math.h>
#include <stdlib.h>

PyTypeObject *kc_request_type;
static PyObject *make_status; /* kolocc._messages.Status(source, tag, bytes) */

enum { SIGNALS_MS = 100 }; /* a wait looks for signals so often */

struct request {
    PyObject_HEAD
    koloRequest_t request; /* NULL: over */
    PyObject *owner;       /* of the memory, until then */
    PyObject *status;      /* once it is over, without a failure */
    int rank;
    bool sends, cancelled;
};

/* ---- requests that nobody holds any more, but which use memory ---- */

struct left {
    koloRequest_t request;
    PyObject *owner;
    struct left *next;
};
static struct left *lefts; /* under the GIL */

static void sweep(void)
{
    for (struct left **at = &lefts, *l; (l = *at);) {
        if (koloRequestTest(l->request, NULL) == ncclInProgress) {
            at = &l->next;
            continue;
        }
        koloRequestFree(l->request); /* an error: its communicator has ended */
        *at = l->next;
        Py_DECREF(l->owner);
        free(l);
    }
}

/* Takes the request and the owner. */
static void leave(koloRequest_t request, PyObject *owner)
{
    struct left *l = malloc(sizeof *l);

    if (!l) return; /* the memory stays for ever, which is safe */
    *l = (struct left){request, owner, lefts};
    lefts = l;
}

/* ---- the end of a request ---- */

static PyObject *status_of(const koloMessageStatus_t *s)
{
    return PyObject_CallFunction(make_status, "iin", s->source, s->tag, (Py_ssize_t)s->bytes);
}

/* It is over with `rc`. */
static PyObject *end(struct request *r, ncclResult_t rc, const koloMessageStatus_t *s)
{
    PyObject *error[3] = {NULL};

    if (rc) { /* first: freeing it would change the sentence */
        kc_raise(rc, r->rank);
        PyErr_Fetch(&error[0], &error[1], &error[2]);
    }
    koloRequestFree(r->request);
    r->request = NULL;
    Py_CLEAR(r->owner);
    if (rc) return PyErr_Restore(error[0], error[1], error[2]), NULL;
    r->status = status_of(s);
    return Py_XNewRef(r->status);
}

static PyObject *over(const struct request *r)
{
    if (r->status) return Py_NewRef(r->status);
    kc_refuse(r->cancelled ? "the request was cancelled" : "the request has failed before");
    return NULL;
}

/* ncclInProgress: the time is over; -1: an exception is set. */
static int wait_until(koloRequest_t request, double seconds, koloMessageStatus_t *s)
{
    ncclResult_t rc = ncclInProgress;

    do {
        double ms = seconds * 1000 < SIGNALS_MS ? ceil(seconds * 1000) : SIGNALS_MS;

        Py_BEGIN_ALLOW_THREADS
        rc = ms > 0 ? koloRequestWait(request, (unsigned long long)ms, s) : koloRequestTest(request, s);
        Py_END_ALLOW_THREADS
        seconds -= ms / 1000;
        if (rc == ncclInProgress && PyErr_CheckSignals()) return -1;
    } while (rc == ncclInProgress && seconds > 0);
    return (int)rc;
}

/* ---- Request ---- */

static int read_seconds(PyObject *o, double *seconds)
{
    *seconds = INFINITY;
    if (!kc_given(o)) return 0;
    *seconds = PyFloat_AsDouble(o);
    if (*seconds == -1 && PyErr_Occurred()) return -1;
    return *seconds >= 0 ? 0 : kc_refuse("timeout is negative; expected seconds");
}

static PyObject *request_wait(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    static const struct kc_signature signature = {"wait", {"timeout"}, 1, 0, 1};
    struct request *r = (struct request *)self;
    koloMessageStatus_t s = {0};
    PyObject *a[KC_ARGS];
    double seconds;

    if (kc_args(&signature, args, nargs, kw, a) || read_seconds(a[0], &seconds)) return NULL;
    if (!r->request) return over(r);
    const int rc = wait_until(r->request, seconds, &s);
    if (rc < 0) return NULL;
    if (!r->request) return over(r); /* another thread has waited, too */
    if (rc != (int)ncclInProgress) return end(r, (ncclResult_t)rc, &s);
    return kc_raise_text(ncclTimeout, r->sends ? "the message was not taken in time" : "no message has come in time",
                         r->rank);
}

static PyObject *request_test(PyObject *self, PyObject *unused)
{
    struct request *r = (struct request *)self;
    koloMessageStatus_t s = {0};

    (void)unused;
    if (!r->request) return over(r);
    const ncclResult_t rc = koloRequestTest(r->request, &s);
    if (rc == ncclInProgress) Py_RETURN_NONE;
    return end(r, rc, &s);
}

static PyObject *request_cancel(PyObject *self, PyObject *unused)
{
    struct request *r = (struct request *)self;

    (void)unused;
    if (!r->request) Py_RETURN_FALSE;
    if (r->sends) return kc_refuse("a message that was sent cannot be cancelled"), NULL;
    if (koloRequestTest(r->request, NULL) != ncclInProgress) Py_RETURN_FALSE;
    if (koloRequestCancel(r->request) == ncclInProgress) Py_RETURN_FALSE;
    r->request = NULL;
    r->cancelled = true;
    Py_CLEAR(r->owner);
    Py_RETURN_TRUE;
}

static void request_dealloc(PyObject *self)
{
    struct request *r = (struct request *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (r->request && koloRequestCancel(r->request) == ncclInProgress) {
        leave(r->request, r->owner);
        r->owner = NULL;
    }
    Py_XDECREF(r->owner);
    Py_XDECREF(r->status);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef request_methods[] = {
    {"wait", (PyCFunction)(void (*)(void))request_wait, METH_FASTCALL | METH_KEYWORDS,
     "wait(timeout=None)\n--\n\nWait until the message was taken, or is here. Returns its Status. timeout: seconds; "
     "then Timeout is raised, and the request goes on. "
     "Raises RemoteError if the other rank has failed or left, InvalidUsage if the message is longer than the buffer."},
    {"test", request_test, METH_NOARGS, "test()\n--\n\nThe Status if it is over, else None. Raises as wait()."},
    {"cancel", request_cancel, METH_NOARGS,
     "cancel()\n--\n\nWithdraw a receive. False: a message has reached it, or it is over."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot request_slots[] = {
    {Py_tp_dealloc, request_dealloc},
    {Py_tp_methods, request_methods},
    {Py_tp_doc, (void *)"A message under way: Communicator.isend(), irecv(). It keeps the buffer alive."},
    {0, NULL},
};

static PyType_Spec request_spec = {"kolocc._core.Request", sizeof(struct request), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, request_slots};

int kc_requests_add(PyObject *module)
{
    PyObject *messages = PyImport_ImportModule("kolocc._messages");

    if (messages) make_status = PyObject_GetAttrString(messages, "Status");
    Py_XDECREF(messages);
    kc_request_type = (PyTypeObject *)PyType_FromSpec(&request_spec);
    if (!make_status || !kc_request_type) return -1;
    return PyModule_AddObjectRef(module, "Request", (PyObject *)kc_request_type);
}

/* ---- the communicator's methods ---- */

/* Takes the memory. */
static struct request *wrap(struct kc_comm *c, koloRequest_t request, struct kc_memory *m, bool sends)
{
    struct kc_memory none = {.has_view = false};
    struct request *r = (struct request *)((allocfunc)PyType_GetSlot(kc_request_type, Py_tp_alloc))(kc_request_type, 0);
    PyObject *owner = kc_memory_owner(m, &none);

    if (!r || !owner) {
        /* the request uses memory that nobody could hold: it stays */
        Py_XDECREF((PyObject *)r);
        return NULL;
    }
    r->request = request;
    r->owner = owner;
    r->rank = c->rank;
    r->sends = sends;
    return r;
}

static struct request *start(struct kc_comm *c, PyObject *buffer, bool sends, long peer, long tag)
{
    struct kc_memory m;
    koloRequest_t request;
    ncclResult_t rc;

    if (!c->comm) return kc_refuse("the communicator was destroyed"), NULL;
    sweep();
    if (kc_memory_hold(buffer, sends ? "send" : "recv", !sends, NULL, &m)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = sends ? koloMessageSend(m.data, m.bytes, (int)peer, (int)tag, c->comm, &request)
               : koloMessageRecv(m.data, m.bytes, (int)peer, (int)tag, c->comm, &request);
    Py_END_ALLOW_THREADS
    if (!rc) return wrap(c, request, &m, sends);
    kc_memory_release(&m);
    kc_raise(rc, c->rank);
    return NULL;
}

static int read_source(const struct kc_comm *c, PyObject *peer, PyObject *tag, long *source, long *wanted)
{
    return kc_int("peer", peer, KOLO_ANY, c->size - 1, KOLO_ANY, source) ||
           kc_int("tag", tag, KOLO_ANY, INT_MAX, KOLO_ANY, wanted);
}

PyObject *kc_isend(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    static const struct kc_signature signature = {"isend", {"send", "peer", "tag"}, 3, 2, 3};
    struct kc_comm *c = (struct kc_comm *)self;
    PyObject *a[KC_ARGS];
    long peer, tag;

    if (kc_args(&signature, args, nargs, kw, a) || kc_int("peer", a[1], 0, c->size - 1, -1, &peer) ||
        kc_int("tag", a[2], 0, INT_MAX, 0, &tag))
        return NULL;
    return (PyObject *)start(c, a[0], true, peer, tag);
}

PyObject *kc_irecv(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    static const struct kc_signature signature = {"irecv", {"recv", "peer", "tag"}, 3, 1, 3};
    struct kc_comm *c = (struct kc_comm *)self;
    PyObject *a[KC_ARGS];
    long peer, tag;

    if (kc_args(&signature, args, nargs, kw, a) || read_source(c, a[1], a[2], &peer, &tag)) return NULL;
    return (PyObject *)start(c, a[0], false, peer, tag);
}

PyObject *kc_iprobe(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kw)
{
    static const struct kc_signature signature = {"iprobe", {"peer", "tag"}, 2, 0, 2};
    struct kc_comm *c = (struct kc_comm *)self;
    koloMessageStatus_t s;
    PyObject *a[KC_ARGS];
    long peer, tag;

    if (kc_args(&signature, args, nargs, kw, a) || read_source(c, a[0], a[1], &peer, &tag)) return NULL;
    if (!c->comm) return kc_refuse("the communicator was destroyed"), NULL;
    const ncclResult_t rc = koloMessageProbe((int)peer, (int)tag, c->comm, &s);
    if (rc == ncclInProgress) Py_RETURN_NONE;
    return rc ? kc_raise(rc, c->rank) : status_of(&s);
}

static PyObject *finish(struct request *r)
{
    PyObject *status = r ? request_wait((PyObject *)r, NULL, 0, NULL) : NULL;

    Py_XDECREF((PyObject *)r);
    return status;
}

PyObject *kc_send_tagged(struct kc_comm *c, PyObject *buffer, PyObject *peer, PyObject *tag)
{
    long to, number;

    if (kc_int("peer", peer, 0, c->size - 1, -1, &to) || kc_int("tag", tag, 0, INT_MAX, 0, &number)) return NULL;
    PyObject *status = finish(start(c, buffer, true, to, number));
    if (!status) return NULL;
    Py_DECREF(status);
    Py_RETURN_NONE;
}

static int copy_status(PyObject *from, PyObject *to)
{
    static const char *const fields[] = {"source", "tag", "bytes"};

    for (size_t i = 0; kc_given(to) && i < sizeof fields / sizeof fields[0]; i++) {
        PyObject *value = PyObject_GetAttrString(from, fields[i]);
        const int rc = value ? PyObject_SetAttrString(to, fields[i], value) : -1;

        Py_XDECREF(value);
        if (rc) return -1;
    }
    return 0;
}

PyObject *kc_recv_tagged(struct kc_comm *c, PyObject *buffer, PyObject *peer, PyObject *tag, PyObject *status)
{
    long from, number;

    if (read_source(c, peer, tag, &from, &number)) return NULL;
    PyObject *got = finish(start(c, buffer, false, from, number));
    if (!got) return NULL;
    const int rc = copy_status(got, status);
    Py_DECREF(got);
    return rc ? NULL : Py_NewRef(buffer);
}
