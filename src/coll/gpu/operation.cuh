/* SPDX-License-Identifier: Apache-2.0 */
/**
 * operation.cuh - operations on elements of a format: `first` makes the first rank's contribution a partial result, `join` adds
 * another rank's, `last` finishes. Factors are used by `scaled` alone.
 */
#ifndef KL_COLL_GPU_OPERATION_CUH
#define KL_COLL_GPU_OPERATION_CUH

#include "coll/gpu/format.cuh"

template <class F> struct op_plain {
    typedef typename F::code code;
    typedef typename F::value value;
    static const bool SCALES = false;
    ON_GPU code first(code x, value)
    {
        return x;
    }
    ON_GPU code last(code x, uint32_t)
    {
        return x;
    }
};

template <class F> struct op_sum : op_plain<F> {
    ON_GPU typename F::code join(typename F::code a, typename F::code b, typename F::value)
    {
        return F::write(F::add(F::read(a), F::read(b)));
    }
};

template <class F> struct op_prod : op_plain<F> {
    ON_GPU typename F::code join(typename F::code a, typename F::code b, typename F::value)
    {
        return F::write(F::mul(F::read(a), F::read(b)));
    }
};

template <class F> struct op_max : op_plain<F> {
    ON_GPU typename F::code join(typename F::code a, typename F::code b, typename F::value)
    {
        return F::larger(a, b);
    }
};

template <class F> struct op_min : op_plain<F> {
    ON_GPU typename F::code join(typename F::code a, typename F::code b, typename F::value)
    {
        return F::smaller(a, b);
    }
};

/* Contributions are scaled, and rounded, before they are added. */
template <class F> struct op_scaled : op_plain<F> {
    static const bool SCALES = true;
    ON_GPU typename F::code first(typename F::code x, typename F::value by)
    {
        return F::write(F::mul(F::read(x), by));
    }
    ON_GPU typename F::code join(typename F::code a, typename F::code b, typename F::value by)
    {
        return F::write(F::add(F::read(a), F::read(first(b, by))));
    }
};

/* Of integers: the wrapped sum is divided, rounding toward zero. */
template <class F> struct op_mean : op_plain<F> {
    ON_GPU typename F::code join(typename F::code a, typename F::code b, typename F::value)
    {
        return (typename F::code)((uint64_t)a + (uint64_t)b);
    }
    ON_GPU typename F::code last(typename F::code x, uint32_t by)
    {
        return (typename F::code)(x / (typename F::code)by);
    }
};

#define BITWISE(name, make, joined)                                                                                    \
    template <class F> struct op_##name : op_plain<F> {                                                                \
        ON_GPU typename F::code first(typename F::code a, typename F::value)                                           \
        {                                                                                                              \
            return (typename F::code)(make);                                                                           \
        }                                                                                                              \
        ON_GPU typename F::code join(typename F::code a, typename F::code b, typename F::value)                        \
        {                                                                                                              \
            return (typename F::code)(joined);                                                                         \
        }                                                                                                              \
    }
BITWISE(bits_and, a, a &b);
BITWISE(bits_or, a, a | b);
BITWISE(bits_xor, a, a ^ b);
BITWISE(truth_and, a != 0, (a != 0) & (b != 0));
BITWISE(truth_or, a != 0, (a != 0) | (b != 0));
BITWISE(truth_xor, a != 0, (a != 0) ^ (b != 0));

#endif
