/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

static int index_of(const struct kc_signature *s, PyObject *name)
{
    for (int i = 0; i < s->n; i++)
        if (PyUnicode_CompareWithASCIIString(name, s->names[i]) == 0) return i;
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", s->function, name);
    return -1;
}

int kc_args(const struct kc_signature *s, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    const Py_ssize_t nkeywords = kwnames ? PyTuple_Size(kwnames) : 0;

    for (int i = 0; i < s->n; i++) out[i] = NULL;
    if (nargs > s->keyword) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments (%zd given)", s->function, s->keyword,
                     nargs);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) out[i] = args[i];
    for (Py_ssize_t k = 0; k < nkeywords; k++) {
        const int i = index_of(s, PyTuple_GetItem(kwnames, k));

        if (i < 0) return -1;
        if (out[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", s->function, s->names[i]);
            return -1;
        }
        out[i] = args[nargs + k];
    }
    for (int i = 0; i < s->required; i++) {
        if (out[i]) continue;
        PyErr_Format(PyExc_TypeError, "%s() is missing the argument '%s'", s->function, s->names[i]);
        return -1;
    }
    return 0;
}

int kc_int(const char *name, PyObject *o, long least, long most, long absent, long *value)
{
    *value = absent;
    if (!kc_given(o)) return 0;
    *value = PyLong_AsLong(o);
    if (*value == -1 && PyErr_Occurred()) return -1;
    if (*value >= least && *value <= most) return 0;
    return kc_refuse("%s is %ld; expected %ld to %ld", name, *value, least, most);
}
