/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include "dlpack.h"

#include <stdlib.h>
#include <string.h>

/* ---- types of elements ---- */

static const struct {
    const char *name;
    int type;
    size_t item;
} types[] = {
    {"int8", ncclInt8, 1},
    {"uint8", ncclUint8, 1},
    {"int32", ncclInt32, 4},
    {"uint32", ncclUint32, 4},
    {"int64", ncclInt64, 8},
    {"uint64", ncclUint64, 8},
    {"float16", ncclFloat16, 2},
    {"float32", ncclFloat32, 4},
    {"float64", ncclFloat64, 8},
    {"bfloat16", ncclBfloat16, 2},
    {"float8_e4m3fn", ncclFloat8e4m3, 1},
    {"float8_e5m2", ncclFloat8e5m2, 1},
};

int kc_type_named(PyObject *name, size_t *item)
{
    if (PyUnicode_Check(name))
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
            if (!PyUnicode_CompareWithASCIIString(name, types[i].name)) return *item = types[i].item, types[i].type;
    return kc_refuse(
        "dtype %R: expected \"int8\", \"uint8\", \"int32\", \"uint32\", \"int64\", \"uint64\", \"float16\", "
        "\"float32\", \"float64\", \"bfloat16\", \"float8_e4m3fn\" or \"float8_e5m2\"",
        name);
}

static int integer_type(bool is_signed, size_t item)
{
    switch (item) {
    case 1:
        return is_signed ? ncclInt8 : ncclUint8;
    case 4:
        return is_signed ? ncclInt32 : ncclUint32;
    case 8:
        return is_signed ? ncclInt64 : ncclUint64;
    default:
        return -1;
    }
}

/* The struct module's format of one element; others are only moved. */
static int type_of_format(const char *format, size_t item)
{
    if (!format) return ncclUint8;
    if (strchr("@=<", *format) && *format) format++; /* little endian, as all hosts of Kolo */
    if (strlen(format) != 1) return -1;
    if (strchr("bhilq", *format)) return integer_type(true, item);
    if (strchr("BHILQ?c", *format)) return integer_type(false, item);
    return *format == 'e' ? ncclFloat16 : *format == 'f' ? ncclFloat32 : *format == 'd' ? ncclFloat64 : -1;
}

static int type_of_tensor(const struct kc_dl_tensor *t)
{
    const size_t item = t->bits / 8u;

    if (t->lanes != 1) return -1;
    switch (t->code) {
    case KC_DL_INT:
        return integer_type(true, item);
    case KC_DL_UINT:
    case KC_DL_BOOL:
        return integer_type(false, item);
    case KC_DL_FLOAT:
        return item == 2 ? ncclFloat16 : item == 4 ? ncclFloat32 : item == 8 ? ncclFloat64 : -1;
    case KC_DL_BFLOAT:
        return ncclBfloat16;
    case KC_DL_E4M3FN:
        return ncclFloat8e4m3;
    case KC_DL_E5M2:
        return ncclFloat8e5m2;
    default:
        return -1;
    }
}

/* ---- the buffer protocol ---- */

static int hold_buffer(PyObject *object, const char *name, bool writable, struct kc_memory *m)
{
    if (PyObject_GetBuffer(object, &m->view, PyBUF_FORMAT | PyBUF_ND)) {
        PyErr_Clear();
        if (PyObject_GetBuffer(object, &m->view, PyBUF_FORMAT | PyBUF_STRIDES)) return -1;
        PyBuffer_Release(&m->view);
        return kc_refuse("%s is not contiguous; pass a contiguous copy", name);
    }
    m->has_view = true;
    if (writable && m->view.readonly) return kc_refuse("%s is read-only, and the operation writes to it", name);
    m->data = m->view.buf;
    m->bytes = (size_t)m->view.len;
    m->item = (size_t)m->view.itemsize;
    m->type = type_of_format(m->view.format, m->item);
    return 0;
}

/* ---- DLPack ---- */

static void drop_managed(void *tensor)
{
    struct kc_dl_managed *t = tensor;

    if (t->deleter) t->deleter(t);
}

static void drop_versioned(void *tensor)
{
    struct kc_dl_versioned *t = tensor;

    if (t->deleter) t->deleter(t);
}

static bool is_contiguous(const struct kc_dl_tensor *t)
{
    int64_t want = 1;

    for (int i = t->ndim; t->strides && i-- > 0; want *= t->shape[i])
        if (t->shape[i] != 1 && t->strides[i] != want) {
            for (int k = 0; k < t->ndim; k++)
                if (!t->shape[k]) return true; /* nothing in it */
            return false;
        }
    return true;
}

static int take_tensor(const struct kc_dl_tensor *t, const char *name, struct kc_memory *m)
{
    size_t n = 1;

    if (t->device_type != KC_DL_CPU) return kc_refuse("%s is not in the memory of CPUs", name);
    if (!is_contiguous(t)) return kc_refuse("%s is not contiguous; pass a contiguous copy", name);
    for (int i = 0; i < t->ndim; i++) n *= (size_t)t->shape[i];
    m->item = (size_t)t->bits * t->lanes / 8;
    m->bytes = n * m->item;
    m->data = (char *)t->data + t->byte_offset;
    m->type = type_of_tensor(t);
    return 0;
}

/* The capsule's tensor is ours from the renaming on. */
static int take_capsule(PyObject *capsule, const char *name, bool writable, struct kc_memory *m)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        struct kc_dl_versioned *t = PyCapsule_GetPointer(capsule, "dltensor_versioned");

        if (t->major != 1) return kc_refuse("%s: DLPack %u is not understood", name, (unsigned)t->major);
        if (PyCapsule_SetName(capsule, "used_dltensor_versioned")) return -1;
        m->tensor = t;
        m->drop = drop_versioned;
        if (writable && t->flags & KC_DL_READ_ONLY)
            return kc_refuse("%s is read-only, and the operation writes to it", name);
        return take_tensor(&t->tensor, name, m);
    }
    struct kc_dl_managed *t = PyCapsule_GetPointer(capsule, "dltensor");

    if (!t || PyCapsule_SetName(capsule, "used_dltensor")) return -1;
    m->tensor = t;
    m->drop = drop_managed;
    return take_tensor(&t->tensor, name, m);
}

static PyObject *capsule_of(PyObject *object)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__"), *none = PyTuple_New(0), *capsule = NULL;
    PyObject *version = Py_BuildValue("{s:(ii)}", "max_version", 1, 1);

    if (method && none && version) capsule = PyObject_Call(method, none, version);
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* a producer that is older */
        PyErr_Clear();
        capsule = PyObject_Call(method, none, NULL);
    }
    Py_XDECREF(version);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

static int hold_tensor(PyObject *object, const char *name, bool writable, struct kc_memory *m)
{
    PyObject *capsule = capsule_of(object);
    const int rc = capsule ? take_capsule(capsule, name, writable, m) : -1;

    Py_XDECREF(capsule);
    return rc;
}

/* ---- both ---- */

static int apply_dtype(PyObject *dtype, const char *name, struct kc_memory *m)
{
    if (!kc_given(dtype)) return 0;
    m->type = kc_type_named(dtype, &m->item);
    if (m->type < 0) return -1;
    return m->bytes % m->item ? kc_refuse("%s: %zu bytes are not whole elements of %zu bytes", name, m->bytes, m->item)
                              : 0;
}

int kc_memory_hold(PyObject *object, const char *name, bool writable, PyObject *dtype, struct kc_memory *m)
{
    int rc;

    memset(m, 0, sizeof *m);
    if (PyObject_CheckBuffer(object))
        rc = hold_buffer(object, name, writable, m);
    else if (PyObject_HasAttrString(object, "__dlpack__"))
        rc = hold_tensor(object, name, writable, m);
    else {
        PyErr_Format(PyExc_TypeError, "%s: %R has neither the buffer protocol nor __dlpack__", name,
                     (PyObject *)Py_TYPE(object));
        return -1;
    }
    if (!rc) rc = apply_dtype(dtype, name, m);
    if (rc) kc_memory_release(m);
    return rc;
}

void kc_memory_release(struct kc_memory *m)
{
    if (m->has_view) PyBuffer_Release(&m->view);
    if (m->tensor) m->drop(m->tensor);
    m->has_view = false;
    m->tensor = NULL;
}

static void release_both(PyObject *capsule)
{
    struct kc_memory *both = PyCapsule_GetPointer(capsule, NULL);

    kc_memory_release(&both[0]);
    kc_memory_release(&both[1]);
    free(both);
}

PyObject *kc_memory_owner(struct kc_memory *a, struct kc_memory *b)
{
    struct kc_memory *both = calloc(2, sizeof *both);
    PyObject *owner;

    if (!both) return PyErr_NoMemory();
    both[0] = *a;
    both[1] = *b;
    a->has_view = b->has_view = false;
    a->tensor = b->tensor = NULL;
    owner = PyCapsule_New(both, NULL, release_both);
    if (owner) return owner;
    kc_memory_release(&both[0]);
    kc_memory_release(&both[1]);
    free(both);
    return NULL;
}

/* ---- shared memory ---- */

PyTypeObject *kc_shared_type;

struct shared {
    PyObject_HEAD
    void *data;
    Py_ssize_t bytes;
};

static PyObject *shared_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Py_ssize_t bytes;
    struct shared *s;
    ncclResult_t rc;
    void *data = NULL;

    if (kw && PyDict_Size(kw)) {
        PyErr_SetString(PyExc_TypeError, "SharedMemory() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "n", &bytes)) return NULL;
    if (bytes < 0) return kc_refuse("bytes is %zd", bytes), NULL;
    Py_BEGIN_ALLOW_THREADS
    rc = ncclMemAlloc(&data, bytes ? (size_t)bytes : 1);
    Py_END_ALLOW_THREADS
    if (rc) return kc_raise(rc, -1);
    s = (struct shared *)alloc(type, 0);
    if (!s) {
        ncclMemFree(data);
        return NULL;
    }
    s->data = data;
    s->bytes = bytes;
    return (PyObject *)s;
}

static void shared_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    ncclMemFree(((struct shared *)self)->data);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int shared_buffer(PyObject *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, self, ((struct shared *)self)->data, ((struct shared *)self)->bytes, 0, flags);
}

static Py_ssize_t shared_length(PyObject *self)
{
    return ((struct shared *)self)->bytes;
}

static PyType_Slot shared_slots[] = {
    {Py_tp_new, shared_new},
    {Py_tp_dealloc, shared_dealloc},
    {Py_bf_getbuffer, shared_buffer},
    {Py_sq_length, shared_length},
    {Py_tp_doc, (void *)"SharedMemory(bytes)\n--\n\nMemory that all ranks of a host can map (ncclMemAlloc): operations "
                        "on it copy less. It has the buffer "
                        "protocol; numpy.frombuffer(memory, dtype) makes an array of it. bytes: at least 0."},
    {0, NULL},
};

static PyType_Spec shared_spec = {"kolocc._core.SharedMemory", sizeof(struct shared), 0, Py_TPFLAGS_DEFAULT,
                                  shared_slots};

int kc_shared_add(PyObject *module)
{
    kc_shared_type = (PyTypeObject *)PyType_FromSpec(&shared_spec);
    return kc_shared_type ? PyModule_AddObjectRef(module, "SharedMemory", (PyObject *)kc_shared_type) : -1;
}
