/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

PyTypeObject *kc_stream_type, *kc_event_type;

static void type_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* ---- Stream ---- */

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char inline_name[] = "inline";
    static char *names[] = {inline_name, NULL};
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct kc_stream *s;
    ncclResult_t rc;
    int inside = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|p:Stream", names, &inside)) return NULL;
    s = (struct kc_stream *)alloc(type, 0);
    if (!s) return NULL;
    s->flags = inside ? KOLO_STREAM_INLINE : KOLO_STREAM_DEFAULT;
    s->kept = PyList_New(0);
    rc = koloStreamCreate(&s->stream, s->flags);
    if (rc) s->stream = NULL;
    if (!rc && s->kept) return (PyObject *)s;
    if (rc) kc_raise(rc, -1);
    Py_DECREF(s);
    return NULL;
}

static void stream_dealloc(PyObject *self)
{
    struct kc_stream *s = (struct kc_stream *)self;

    if (s->stream) {
        Py_BEGIN_ALLOW_THREADS
        koloStreamDestroy(s->stream); /* waits: queued operations use the memory that is kept */
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(s->kept);
    type_free(self);
}

static PyObject *stream_synchronize(PyObject *self, PyObject *unused)
{
    struct kc_stream *s = (struct kc_stream *)self;
    PyObject *kept = s->kept, *fresh = PyList_New(0);
    ncclResult_t rc;

    (void)unused;
    if (!fresh) return NULL;
    s->kept = fresh; /* another thread may queue meanwhile */
    Py_BEGIN_ALLOW_THREADS
    rc = koloStreamSynchronize(s->stream);
    Py_END_ALLOW_THREADS
    Py_DECREF(kept);
    if (rc) return kc_raise(rc, -1);
    Py_RETURN_NONE;
}

static PyObject *stream_query(PyObject *self, PyObject *unused)
{
    const ncclResult_t rc = koloStreamQuery(((struct kc_stream *)self)->stream);

    (void)unused;
    if (rc && rc != ncclInProgress) return kc_raise(rc, -1);
    return PyBool_FromLong(rc == ncclSuccess);
}

struct event {
    PyObject_HEAD
    koloEvent_t event;
};

static PyObject *stream_wait(PyObject *self, PyObject *other)
{
    ncclResult_t rc;

    if (!PyObject_TypeCheck(other, kc_event_type)) {
        PyErr_SetString(PyExc_TypeError, "Stream.wait() takes an Event");
        return NULL;
    }
    rc = koloStreamWaitEvent(((struct kc_stream *)self)->stream, ((struct event *)other)->event, 0);
    if (rc) return kc_raise(rc, -1);
    Py_RETURN_NONE;
}

static PyMethodDef stream_methods[] = {
    {"synchronize", stream_synchronize, METH_NOARGS,
     "synchronize()\n--\n\nRun and wait for all that is queued. The failure of an operation is raised here. Memory "
     "that was kept for it is released."},
    {"query", stream_query, METH_NOARGS, "query()\n--\n\nIs all that was queued done? Does not wait."},
    {"wait", stream_wait, METH_O, "wait(event)\n--\n\nLater work of this stream runs behind the event."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot stream_slots[] = {
    {Py_tp_new, stream_new},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_methods, stream_methods},
    {Py_tp_doc, (void *)"Stream(inline=False)\n--\n\nA queue that runs in order. Operations that are given a stream "
                        "return at once; it keeps their buffers alive. "
                        "inline: operations run inside the call."},
    {0, NULL},
};

static PyType_Spec stream_spec = {"kolocc._core.Stream", sizeof(struct kc_stream), 0, Py_TPFLAGS_DEFAULT, stream_slots};

/* ---- Event ---- */

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct event *e;
    ncclResult_t rc;

    if (!PyArg_ParseTuple(args, ":Event") || (kw && PyDict_Size(kw))) return NULL;
    e = (struct event *)alloc(type, 0);
    if (!e) return NULL;
    rc = koloEventCreate(&e->event);
    if (!rc) return (PyObject *)e;
    e->event = NULL;
    Py_DECREF(e);
    return kc_raise(rc, -1);
}

static void event_dealloc(PyObject *self)
{
    struct event *e = (struct event *)self;

    if (e->event) koloEventDestroy(e->event);
    type_free(self);
}

static PyObject *event_record(PyObject *self, PyObject *stream)
{
    ncclResult_t rc;

    if (!PyObject_TypeCheck(stream, kc_stream_type)) {
        PyErr_SetString(PyExc_TypeError, "Event.record() takes a Stream");
        return NULL;
    }
    rc = koloEventRecord(((struct event *)self)->event, ((struct kc_stream *)stream)->stream);
    if (rc) return kc_raise(rc, -1);
    Py_RETURN_NONE;
}

static PyObject *event_synchronize(PyObject *self, PyObject *unused)
{
    ncclResult_t rc;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    rc = koloEventSynchronize(((struct event *)self)->event);
    Py_END_ALLOW_THREADS
    if (rc) return kc_raise(rc, -1);
    Py_RETURN_NONE;
}

static PyObject *event_query(PyObject *self, PyObject *unused)
{
    const ncclResult_t rc = koloEventQuery(((struct event *)self)->event);

    (void)unused;
    if (rc && rc != ncclInProgress) return kc_raise(rc, -1);
    return PyBool_FromLong(rc == ncclSuccess);
}

static PyObject *event_elapsed(PyObject *self, PyObject *end)
{
    int64_t ns = 0;
    ncclResult_t rc;

    if (!PyObject_TypeCheck(end, kc_event_type)) {
        PyErr_SetString(PyExc_TypeError, "Event.elapsed() takes an Event");
        return NULL;
    }
    rc = koloEventElapsedTime(&ns, ((struct event *)self)->event, ((struct event *)end)->event);
    if (rc) return kc_raise(rc, -1);
    return PyFloat_FromDouble((double)ns / 1e9);
}

static PyMethodDef event_methods[] = {
    {"record", event_record, METH_O, "record(stream)\n--\n\nRecord the event behind all that is queued on the stream."},
    {"synchronize", event_synchronize, METH_NOARGS,
     "synchronize()\n--\n\nWait until the event is done; raises the failure of the work before it."},
    {"query", event_query, METH_NOARGS, "query()\n--\n\nIs the event done? Does not wait."},
    {"elapsed", event_elapsed, METH_O, "elapsed(end)\n--\n\nSeconds from this event to another; both must be done."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot event_slots[] = {
    {Py_tp_new, event_new},
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_methods, event_methods},
    {Py_tp_doc, (void *)"Event()\n--\n\nA mark in a stream, to wait for or to time."},
    {0, NULL},
};

static PyType_Spec event_spec = {"kolocc._core.Event", sizeof(struct event), 0, Py_TPFLAGS_DEFAULT, event_slots};

int kc_streams_add(PyObject *module)
{
    kc_stream_type = (PyTypeObject *)PyType_FromSpec(&stream_spec);
    kc_event_type = (PyTypeObject *)PyType_FromSpec(&event_spec);
    if (!kc_stream_type || !kc_event_type) return -1;
    return PyModule_AddObjectRef(module, "Stream", (PyObject *)kc_stream_type) ||
           PyModule_AddObjectRef(module, "Event", (PyObject *)kc_event_type);
}
