/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

/* Of the calling thread: objects to keep until the end, and streams to wait for then. */
struct group {
    int depth;
    PyObject *kept;
    koloStream_t *stream;
    int *rank;
    size_t n, most;
};

static _Thread_local struct group group;

bool kc_in_group(void)
{
    return group.depth > 0;
}

static int note_stream(koloStream_t stream, int rank)
{
    for (size_t i = 0; i < group.n; i++)
        if (group.stream[i] == stream) return 0;
    if (group.n == group.most) {
        const size_t most = group.most ? 2 * group.most : 16;
        koloStream_t *streams = realloc(group.stream, most * sizeof(koloStream_t));
        int *ranks;

        if (!streams) return PyErr_NoMemory(), -1;
        group.stream = streams;
        ranks = realloc(group.rank, most * sizeof *ranks);
        if (!ranks) return PyErr_NoMemory(), -1;
        group.rank = ranks;
        group.most = most;
    }
    group.stream[group.n] = stream;
    group.rank[group.n++] = rank;
    return 0;
}

int kc_group_keep(PyObject *owner, koloStream_t wait_for, int rank)
{
    if (!group.kept) group.kept = PyList_New(0);
    if (!group.kept || (owner && PyList_Append(group.kept, owner))) return -1;
    return note_stream(wait_for, rank);
}

static PyObject *group_start(PyObject *self, PyObject *unused)
{
    const ncclResult_t rc = ncclGroupStart();

    (void)self, (void)unused;
    if (rc) return kc_raise(rc, -1);
    group.depth++;
    Py_RETURN_NONE;
}

/* The first failure counts; all streams are waited for. */
static ncclResult_t end_group(int *rank)
{
    ncclResult_t rc = ncclGroupEnd();

    for (size_t i = 0; i < group.n && group.depth == 1; i++) {
        const ncclResult_t one = koloStreamSynchronize(group.stream[i]);

        if (rc || !one) continue;
        rc = one;
        *rank = group.rank[i];
    }
    return rc;
}

static PyObject *group_end(PyObject *self, PyObject *unused)
{
    ncclResult_t rc;
    int rank = -1;

    (void)self, (void)unused;
    if (!group.depth) return kc_refuse("group_end without group_start"), NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = end_group(&rank);
    Py_END_ALLOW_THREADS
    if (--group.depth == 0) {
        Py_CLEAR(group.kept);
        free(group.stream);
        free(group.rank);
        memset(&group, 0, sizeof group);
    }
    if (rc) return kc_raise(rc, rank);
    Py_RETURN_NONE;
}

/* ---- ids, devices ---- */

static PyObject *get_unique_id(PyObject *self, PyObject *unused)
{
    ncclUniqueId id;
    ncclResult_t rc;

    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    rc = ncclGetUniqueId(&id);
    Py_END_ALLOW_THREADS
    if (rc) return kc_raise(rc, -1);
    return PyBytes_FromStringAndSize(id.internal, sizeof id.internal);
}

static PyObject *get_version(PyObject *self, PyObject *unused)
{
    int version = 0;
    const ncclResult_t rc = ncclGetVersion(&version);

    (void)self, (void)unused;
    return rc ? kc_raise(rc, -1) : PyLong_FromLong(version);
}

static PyObject *device_count(PyObject *self, PyObject *unused)
{
    int n = 0;
    const ncclResult_t rc = koloGetDeviceCount(&n);

    (void)self, (void)unused;
    return rc ? kc_raise(rc, -1) : PyLong_FromLong(n);
}

static PyObject *set_device(PyObject *self, PyObject *device)
{
    const long n = PyLong_AsLong(device);
    ncclResult_t rc;

    (void)self;
    if (n == -1 && PyErr_Occurred()) return NULL;
    rc = koloSetDevice((int)n);
    if (rc) return kc_raise(rc, -1);
    Py_RETURN_NONE;
}

static PyObject *get_device(PyObject *self, PyObject *unused)
{
    int device = 0;
    const ncclResult_t rc = koloGetDevice(&device);

    (void)self, (void)unused;
    return rc ? kc_raise(rc, -1) : PyLong_FromLong(device);
}

static PyMethodDef functions[] = {
    {"group_start", group_start, METH_NOARGS,
     "group_start()\n--\n\nBegin a group of operations of the calling thread (ncclGroupStart)."},
    {"group_end", group_end, METH_NOARGS,
     "group_end()\n--\n\nIssue the group. At the end of the outermost one, operations without a stream have finished "
     "when it returns."},
    {"get_unique_id", get_unique_id, METH_NOARGS,
     "get_unique_id()\n--\n\n128 bytes that identify a communicator to be made; pass them to all of its ranks."},
    {"nccl_version", get_version, METH_NOARGS,
     "nccl_version()\n--\n\nThe version of NCCL whose interface the library has: major * 10000 + minor * 100 + patch."},
    {"device_count", device_count, METH_NOARGS, "device_count()\n--\n\nHow many devices this process has."},
    {"set_device", set_device, METH_O,
     "set_device(device)\n--\n\nChoose the calling thread's device, below device_count()."},
    {"get_device", get_device, METH_NOARGS, "get_device()\n--\n\nThe calling thread's device."},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    return kc_errors_load() || kc_streams_add(module) || kc_shared_add(module) || kc_windows_add(module) ||
                   kc_requests_add(module) || kc_comms_add(module)
               ? -1
               : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "kolocc._core",
                                        "Communicators, collectives, streams and one-sided operations of Kolo.",
                                        0,
                                        functions,
                                        slots,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
