/* SPDX-License-Identifier: Apache-2.0 */
/**
 * core.h - the parts of the extension kolocc._core: CPython's stable ABI of 3.11 over kolo.h.
 *
 *     module.c    the module, groups, ids, devices
 *     args.c      arguments by position and name
 *     errors.c    ncclResult_t as exceptions (kolocc/_errors.py)
 *     memory.c    memory of Python's objects: buffer protocol, DLPack; shared memory
 *     stream.c    Stream, Event
 *     comm.c      Communicator; collectives.c its operations; messages.c messages with tags, Request
 *
 * Threads: the GIL is released in every call that may wait. Functions return NULL or -1 with an exception set.
 */
#ifndef KOLOCC_CORE_H
#define KOLOCC_CORE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "include/kolo.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- arguments ---- */

enum { KC_ARGS = 12 };

/** A function's parameters: names in order; the first `required` must be given, those from `keyword` on only by name. */
struct kc_signature {
    const char *function;
    const char *names[KC_ARGS];
    int n, required, keyword;
};

/** Borrowed references, NULL where not given; None stays None. */
int kc_args(const struct kc_signature *s, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out);

/** Was an argument given, and not as None? */
static inline bool kc_given(PyObject *o)
{
    return o && o != Py_None;
}

/** An int argument in a range; `absent` if it was not given. */
int kc_int(const char *name, PyObject *o, long least, long most, long absent, long *value);

/* ---- errors ---- */

/** Raise the exception of a result with the library's sentence. Returns NULL. */
PyObject *kc_raise(ncclResult_t rc, int rank);
/** The same with a sentence of its own. */
PyObject *kc_raise_text(ncclResult_t rc, const char *text, int rank);
int kc_errors_load(void);

/** Raise ValueError with a sentence; returns -1. */
int kc_refuse(const char *format, ...);

/* ---- memory ---- */

/** Memory that an operation reads or writes, held until kc_memory_release. */
struct kc_memory {
    char *data;
    size_t bytes, item; /* item: bytes of an element */
    int type;           /* ncclDataType_t, or -1: elements that can be moved only */
    Py_buffer view;
    bool has_view;
    void *tensor; /* of DLPack */
    void (*drop)(void *tensor);
};

/** Hold the memory of an object. `name` is the argument's, for messages; `dtype` (may be NULL or None) names the type of its elements. */
int kc_memory_hold(PyObject *object, const char *name, bool writable, PyObject *dtype, struct kc_memory *m);
void kc_memory_release(struct kc_memory *m);

/** An owner of both, which releases them when it goes; they are empty afterwards. */
PyObject *kc_memory_owner(struct kc_memory *a, struct kc_memory *b);

/** "float32" ...: the type, or -1 with ValueError. */
int kc_type_named(PyObject *name, size_t *item);

/* ---- types ---- */

struct kc_stream {
    PyObject_HEAD
    koloStream_t stream;
    PyObject *kept; /* list of owners of memory that queued operations use */
    unsigned flags;
};

struct kc_comm {
    PyObject_HEAD
    ncclComm_t comm; /* NULL: destroyed */
    int rank, size, device;
    koloStream_t now, grouped; /* of operations without a stream: alone, and in a group */
};

extern PyTypeObject *kc_stream_type, *kc_event_type, *kc_comm_type, *kc_shared_type, *kc_window_type, *kc_request_type;
int kc_streams_add(PyObject *module);
int kc_comms_add(PyObject *module);
int kc_shared_add(PyObject *module);
int kc_windows_add(PyObject *module);
int kc_requests_add(PyObject *module);

/** The communicator's operations, for its type. */
extern PyMethodDef kc_comm_methods[];
PyObject *kc_allreduce(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_reduce(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_broadcast(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_allgather(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_reduce_scatter(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_alltoall(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_allgatherv(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_reduce_scatterv(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_alltoallv(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_gather(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_scatter(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_send(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_recv(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_isend(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_irecv(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_iprobe(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_barrier(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_register_window(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_put_signal(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_signal(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *kc_wait_signal(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* ---- messages with tags ---- */

/** send and recv with a tag: when they return, the message was taken, or is here. `status` may be NULL or None. */
PyObject *kc_send_tagged(struct kc_comm *c, PyObject *buffer, PyObject *peer, PyObject *tag);
PyObject *kc_recv_tagged(struct kc_comm *c, PyObject *buffer, PyObject *peer, PyObject *tag, PyObject *status);

/* ---- issue ---- */

/** The stream that an operation runs on: the one given, or the communicator's own. -1 with an exception. */
int kc_issue_stream(struct kc_comm *c, PyObject *stream, koloStream_t *to);

/**
 * Behind an operation that returned `rc`: keep the memory while it is queued, or wait and release it. Returns `result` with a new
 * reference, or NULL with an exception; both memories are empty afterwards.
 */
PyObject *kc_issue_end(struct kc_comm *c, PyObject *stream, koloStream_t on, ncclResult_t rc, struct kc_memory *a,
                       struct kc_memory *b, PyObject *result);

/** Is the calling thread between group_start and group_end? */
bool kc_in_group(void);

/** Keep an object until the group's end, and wait for a stream then. */
int kc_group_keep(PyObject *owner, koloStream_t wait_for, int rank);

#endif
