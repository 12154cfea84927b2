/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <stdarg.h>

static PyObject *make_error; /* kolocc._errors.make(result, message, rank) */

int kc_errors_load(void)
{
    PyObject *module = make_error ? NULL : PyImport_ImportModule("kolocc._errors");

    if (module) make_error = PyObject_GetAttrString(module, "make");
    Py_XDECREF(module);
    return make_error ? 0 : -1;
}

PyObject *kc_raise(ncclResult_t rc, int rank)
{
    const char *text = ncclGetLastError(NULL);

    return kc_raise_text(rc, *text ? text : ncclGetErrorString(rc), rank);
}

PyObject *kc_raise_text(ncclResult_t rc, const char *text, int rank)
{
    PyObject *error = PyObject_CallFunction(make_error, "isi", (int)rc, text, rank);

    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

int kc_refuse(const char *format, ...)
{
    va_list args;
    PyObject *text;

    va_start(args, format);
    text = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (text) PyErr_SetObject(PyExc_ValueError, text);
    Py_XDECREF(text);
    return -1;
}
