// SPDX-License-Identifier: Apache-2.0
/**
 * issue.hpp - calls of kolo.h on a communicator: the scope of one issue, groups of calls, operators of reductions.
 */
#pragma once

#include "tensors.hpp"
#include "work.hpp"

#include <functional>

namespace kolo
{

using c10::intrusive_ptr;
using c10d::Backend;
using c10d::OpType;
using c10d::ReduceOp;
using c10d::Store;
using WorkPtr = intrusive_ptr<c10d::Work>;
using Options = Backend::Options;

/** Calls on a communicator under its lock. Operators made for them live until the end of it. */
struct Scope {
    ncclComm_t comm;
    koloStream_t stream;
    std::vector<ncclRedOp_t> made;

    Scope(ncclComm_t c, koloStream_t s) : comm(c), stream(s)
    {
    }
    Scope(const Scope &) = delete;
    ~Scope()
    {
        for (auto op : made) ncclRedOpDestroy(op, comm);
    }
};

using Issue = std::function<ncclResult_t(Scope &)>;

/** All of `calls`, which return results, as one group. */
template <class Calls> ncclResult_t grouped(Calls calls)
{
    ncclResult_t r = ncclGroupStart();
    if (r != ncclSuccess) return r;
    const ncclResult_t failed = calls();
    r = ncclGroupEnd();
    return failed != ncclSuccess ? failed : r;
}

/** A reduction's operator, made for the communicator when it is issued. */
struct Operator {
    ncclRedOp_t op = ncclSum;
    ncclDataType_t type;
    at::Tensor factor; // of PREMUL_SUM: one element of `type`

    Operator(const char *name, const ReduceOp &reduce, const at::Tensor &t) : type(*arithmetic_type(t.scalar_type()))
    {
        if (reduce.op_ == ReduceOp::PREMUL_SUM)
            factor = factor_of(name, reduce, t);
        else
            op = plain_operator(name, reduce.op_, t.scalar_type());
    }

    ncclResult_t get(Scope &scope, ncclRedOp_t *out) const
    {
        *out = op;
        if (!factor.defined()) return ncclSuccess;
        const ncclResult_t r =
            ncclRedOpCreatePreMulSum(out, factor.data_ptr(), type, ncclScalarHostImmediate, scope.comm);
        if (r == ncclSuccess) scope.made.push_back(*out);
        return r;
    }

  private:
    static at::Tensor factor_of(const char *name, const ReduceOp &reduce, const at::Tensor &t)
    {
        auto *given = dynamic_cast<c10d::PreMulSumSupplement *>(reduce.supplement_.get());
        if (!given) bad_value(name, "ReduceOp.PREMUL_SUM has no factor");
        if (t.scalar_type() == at::kBool) bad_type(name, "ReduceOp.AVG and PREMUL_SUM have no meaning for dtype Bool");
        auto value = given->tensor_factor.defined() ? given->tensor_factor.cpu().reshape({})
                                                    : at::scalar_tensor(given->double_factor, at::kDouble);
        return value.to(t.scalar_type()).contiguous();
    }
};

} // namespace kolo
