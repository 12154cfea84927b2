/* SPDX-License-Identifier: Apache-2.0 */
/* The extension kolocc._plan: libkoloplan's clusters and questions; answers are str (JSON). Dataclasses are made in Python (kolocc/plan.py). */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "include/koloplan.h"

#include <stdbool.h>
#include <stdlib.h>

static PyObject *make_error; /* kolocc._errors.make(result, message, rank) */
static PyTypeObject *cluster_type;

struct cluster {
    PyObject_HEAD
    koloplanCluster_t cluster;
};

static PyObject *raise_error(ncclResult_t rc)
{
    PyObject *error = PyObject_CallFunction(make_error, "isi", (int)rc, koloplanGetLastError(), -1);

    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

/* Takes the text. */
static PyObject *answer(ncclResult_t rc, char *json)
{
    PyObject *text;

    if (rc) return raise_error(rc);
    text = PyUnicode_FromString(json);
    koloplanFree(json);
    return text;
}

#define ASK(call)                                                                                                      \
    do {                                                                                                               \
        char *json = NULL;                                                                                             \
        ncclResult_t rc;                                                                                               \
        Py_BEGIN_ALLOW_THREADS                                                                                         \
        rc = (call);                                                                                                   \
        Py_END_ALLOW_THREADS                                                                                           \
        return answer(rc, json);                                                                                       \
    } while (0)

/* ---- lists of strings ---- */

struct list {
    const char **text;
    int n;
};

/* The strings belong to `sequence`, a tuple. */
static int read_list(PyObject *sequence, struct list *l)
{
    const Py_ssize_t n = PyTuple_Size(sequence);

    if (n < 0) return -1;
    l->text = calloc((size_t)n + 1, sizeof *l->text);
    if (!l->text) return PyErr_NoMemory(), -1;
    for (; l->n < n; l->n++) {
        l->text[l->n] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(sequence, l->n), NULL);
        if (!l->text[l->n]) return -1;
    }
    return 0;
}

/* ---- Cluster ---- */

static PyObject *cluster_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static const char *const names[] = {"topo",  "machine",   "text",         "label", "smi",   "sysfs",
                                        "nccl",  "constants", "gpus",         "hosts", "ranks", "mnnvl",
                                        "with_", "without",   "without_link", NULL};
    koloplanRequest_t q = KOLOPLAN_REQUEST_INITIALIZER;
    PyObject *smi = NULL, *with = NULL, *without = NULL, *links = NULL;
    struct list lists[4] = {{NULL, 0}};
    struct cluster *c = NULL;
    Py_ssize_t bytes = 0;
    ncclResult_t rc = ncclSuccess;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|$zzz#zO!zzzziipO!O!O!", (char **)(void *)names, &q.topo, &q.machine,
                                     &q.text, &bytes, &q.label, &PyTuple_Type, &smi, &q.sysfs, &q.nccl, &q.constants,
                                     &q.gpus, &q.hosts, &q.ranks, &q.mnnvl, &PyTuple_Type, &with, &PyTuple_Type,
                                     &without, &PyTuple_Type, &links))
        return NULL;
    q.bytes = (size_t)bytes;
    if ((smi && read_list(smi, &lists[0])) || (with && read_list(with, &lists[1])) ||
        (without && read_list(without, &lists[2])) || (links && read_list(links, &lists[3])))
        goto out;
    q.smi = lists[0].text;
    q.nsmi = lists[0].n;
    q.with = lists[1].text;
    q.nwith = lists[1].n;
    q.without = lists[2].text;
    q.nwithout = lists[2].n;
    q.withoutLink = lists[3].text;
    q.nwithoutLink = lists[3].n;
    c = (struct cluster *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!c) goto out;
    Py_BEGIN_ALLOW_THREADS
    rc = koloplanOpen(&q, &c->cluster);
    Py_END_ALLOW_THREADS
    if (rc) {
        raise_error(rc);
        Py_CLEAR(c);
    }
out:
    for (int i = 0; i < 4; i++) free(lists[i].text);
    return (PyObject *)c;
}

static void cluster_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    koloplanClose(((struct cluster *)self)->cluster);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static koloplanCluster_t cluster_of(PyObject *self)
{
    return ((struct cluster *)self)->cluster;
}

static PyObject *ask_topo(PyObject *self, PyObject *unused)
{
    (void)unused;
    ASK(koloplanTopo(cluster_of(self), &json));
}

static PyObject *ask_nics(PyObject *self, PyObject *unused)
{
    (void)unused;
    ASK(koloplanExplainNics(cluster_of(self), &json));
}

static PyObject *ask_graph(PyObject *self, PyObject *args)
{
    const char *graph = NULL;

    if (!PyArg_ParseTuple(args, "|z", &graph)) return NULL;
    ASK(koloplanGraph(cluster_of(self), graph, &json));
}

static PyObject *ask_path(PyObject *self, PyObject *args)
{
    const char *a, *b;

    if (!PyArg_ParseTuple(args, "ss", &a, &b)) return NULL;
    ASK(koloplanPath(cluster_of(self), a, b, &json));
}

static PyObject *ask_pair(PyObject *self, PyObject *args)
{
    const char *a, *b;

    if (!PyArg_ParseTuple(args, "ss", &a, &b)) return NULL;
    ASK(koloplanExplainPair(cluster_of(self), a, b, &json));
}

static PyObject *ask_search(PyObject *self, PyObject *args)
{
    const char *graph = NULL;
    int all = 0;

    if (!PyArg_ParseTuple(args, "|zp", &graph, &all)) return NULL;
    ASK(koloplanExplainSearch(cluster_of(self), graph, all, &json));
}

static PyObject *ask_collective(PyObject *self, PyObject *args)
{
    const char *name, *type = NULL, *op = NULL;
    long long first = 0, last = 0;

    if (!PyArg_ParseTuple(args, "s|zzLL", &name, &type, &op, &first, &last)) return NULL;
    ASK(koloplanExplainCollective(cluster_of(self), name, type, op, first, last, &json));
}

/* The numbers of a tuple; free() them. NULL with an exception. */
static int64_t *read_numbers(PyObject *tuple, int *n)
{
    int64_t *number = calloc((size_t)PyTuple_Size(tuple) + 1, sizeof *number);

    if (!number) return (void *)PyErr_NoMemory();
    for (*n = 0; *n < PyTuple_Size(tuple); ++*n) {
        number[*n] = PyLong_AsLongLong(PyTuple_GetItem(tuple, *n));
        if (number[*n] != -1 || !PyErr_Occurred()) continue;
        free(number);
        return NULL;
    }
    return number;
}

static PyObject *ask_order(PyObject *self, PyObject *args)
{
    koloplanOrder_t q = KOLOPLAN_ORDER_INITIALIZER;
    long long first = 0, last = 0;
    PyObject *group;
    char *json = NULL;
    int64_t *sizes;
    ncclResult_t rc;
    int lint = 0;

    if (!PyArg_ParseTuple(args, "szzLLO!ipzp", &q.collective, &q.type, &q.op, &first, &last, &PyTuple_Type, &group,
                          &q.root, &q.registered, &q.vs, &lint))
        return NULL;
    sizes = read_numbers(group, &q.ngroup);
    if (!sizes) return NULL;
    q.first = first;
    q.last = last;
    q.group = sizes;
    Py_BEGIN_ALLOW_THREADS
    rc = (lint ? koloplanLintOrder : koloplanExplainOrder)(cluster_of(self), &q, &json);
    Py_END_ALLOW_THREADS
    free(sizes);
    return answer(rc, json);
}

static PyObject *ask_traffic(PyObject *self, PyObject *args)
{
    const char *name, *type, *op;
    int root = 0, npods = 0;
    long long bytes = 0;
    PyObject *pods;
    char *json = NULL;
    ncclResult_t rc;

    if (!PyArg_ParseTuple(args, "szzLiO!", &name, &type, &op, &bytes, &root, &PyTuple_Type, &pods)) return NULL;
    int64_t *pod = read_numbers(pods, &npods);

    if (!pod) return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = koloplanExplainTraffic(cluster_of(self), name, type, op, bytes, root, pod, npods, &json);
    Py_END_ALLOW_THREADS
    free(pod);
    return answer(rc, json);
}

static PyObject *ask_estimate(PyObject *self, PyObject *args)
{
    const char *name, *type, *op;
    PyObject *sizes;
    char *json = NULL;
    int64_t *bytes;
    ncclResult_t rc;
    int n = 0;

    if (!PyArg_ParseTuple(args, "szzO!", &name, &type, &op, &PyTuple_Type, &sizes)) return NULL;
    bytes = read_numbers(sizes, &n);
    if (!bytes) return NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = koloplanEstimate(cluster_of(self), name, type, op, bytes, n, &json);
    Py_END_ALLOW_THREADS
    free(bytes);
    return answer(rc, json);
}

static PyObject *ask_diff(PyObject *self, PyObject *other)
{
    if (!PyObject_TypeCheck(other, cluster_type)) {
        PyErr_SetString(PyExc_TypeError, "diff() takes a Cluster");
        return NULL;
    }
    ASK(koloplanDiff(cluster_of(self), cluster_of(other), &json));
}

static PyObject *get_warnings(PyObject *self, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    const char *text;

    (void)unused;
    for (int i = 0; list && (text = koloplanGetWarning(cluster_of(self), i)); i++) {
        PyObject *one = PyUnicode_FromString(text);

        if (!one || PyList_Append(list, one)) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyMethodDef cluster_methods[] = {
    {"topo", ask_topo, METH_NOARGS, NULL},
    {"nics", ask_nics, METH_NOARGS, NULL},
    {"graph", ask_graph, METH_VARARGS, NULL},
    {"path", ask_path, METH_VARARGS, NULL},
    {"pair", ask_pair, METH_VARARGS, NULL},
    {"search", ask_search, METH_VARARGS, NULL},
    {"collective", ask_collective, METH_VARARGS, NULL},
    {"order", ask_order, METH_VARARGS, NULL},
    {"traffic", ask_traffic, METH_VARARGS, NULL},
    {"estimate", ask_estimate, METH_VARARGS, NULL},
    {"diff", ask_diff, METH_O, NULL},
    {"warnings", get_warnings, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot cluster_slots[] = {
    {Py_tp_new, cluster_new},
    {Py_tp_dealloc, cluster_dealloc},
    {Py_tp_methods, cluster_methods},
    {Py_tp_doc, (void *)"An opened cluster (koloplan.h); each method returns an answer as JSON."},
    {0, NULL},
};

static PyType_Spec cluster_spec = {"kolocc._plan.Cluster", sizeof(struct cluster), 0, Py_TPFLAGS_DEFAULT,
                                   cluster_slots};

/* ---- texts ---- */

/* [(name, bytes or None)], and a Cluster or None. */
static PyObject *ask_texts(PyObject *args, ncclResult_t (*ask)(koloplanCluster_t, const koloplanText_t *, int, char **))
{
    PyObject *list, *cluster = Py_None;
    koloplanText_t *text;
    char *json = NULL;
    ncclResult_t rc;
    int n = 0;

    if (!PyArg_ParseTuple(args, "O!|O", &PyList_Type, &list, &cluster)) return NULL;
    if (cluster != Py_None && !PyObject_TypeCheck(cluster, cluster_type)) {
        PyErr_SetString(PyExc_TypeError, "cluster is no Cluster");
        return NULL;
    }
    text = calloc((size_t)PyList_Size(list) + 1, sizeof *text);
    if (!text) return PyErr_NoMemory();
    for (; n < PyList_Size(list); n++) {
        Py_ssize_t bytes = 0;

        if (!PyArg_ParseTuple(PyList_GetItem(list, n), "sz#", &text[n].name, &text[n].text, &bytes)) {
            free(text);
            return NULL;
        }
        text[n].bytes = (size_t)bytes;
    }
    Py_BEGIN_ALLOW_THREADS
    rc = ask(cluster == Py_None ? NULL : cluster_of(cluster), text, n, &json);
    Py_END_ALLOW_THREADS
    free(text);
    return answer(rc, json);
}

static PyObject *explain_log(PyObject *self, PyObject *args)
{
    (void)self;
    return ask_texts(args, koloplanExplainLog);
}

static PyObject *explain_bench(PyObject *self, PyObject *args)
{
    (void)self;
    return ask_texts(args, koloplanExplainBench);
}

static PyObject *machines(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    ASK(koloplanMachines(&json));
}

static PyMethodDef functions[] = {
    {"machines", machines, METH_NOARGS, NULL},
    {"explain_log", explain_log, METH_VARARGS, NULL},
    {"explain_bench", explain_bench, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    PyObject *errors = PyImport_ImportModule("kolocc._errors");

    if (errors) make_error = PyObject_GetAttrString(errors, "make");
    Py_XDECREF(errors);
    cluster_type = make_error ? (PyTypeObject *)PyType_FromSpec(&cluster_spec) : NULL;
    return cluster_type ? PyModule_AddObjectRef(module, "Cluster", (PyObject *)cluster_type) : -1;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "kolocc._plan",
                                        "Plans and answers of libkoloplan, as JSON.",
                                        0,
                                        functions,
                                        slots,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__plan(void);
PyMODINIT_FUNC PyInit__plan(void)
{
    return PyModuleDef_Init(&definition);
}
