// SPDX-License-Identifier: Apache-2.0
/**
 * tensors.hpp - tensors as Kolo takes them: types, operators, and contiguous memory.
 *
 * A tensor that is row-major, dense and free of lazy conjugation is used where it lies. Any other goes through a copy: `Staging` keeps it, and
 * brings results back when the operation is over. Errors are c10::ValueError and c10::TypeError, and begin with the operation.
 */
#pragma once

#include "kolo.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kolo
{

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<std::vector<at::Tensor>>;

[[noreturn]] inline void bad_value(const char *op, const std::string &text)
{
    C10_THROW_ERROR(ValueError, "kolo: " + std::string(op) + ": " + text);
}

[[noreturn]] inline void bad_type(const char *op, const std::string &text)
{
    C10_THROW_ERROR(TypeError, "kolo: " + std::string(op) + ": " + text);
}

// ---- types and operators ----

/** The type in which Kolo computes; none: it can only be moved, as bytes. */
inline std::optional<ncclDataType_t> arithmetic_type(at::ScalarType type)
{
    switch (type) {
    case at::kChar:
        return ncclInt8;
    case at::kByte:
        return ncclUint8;
    case at::kBool:
        return ncclUint8;
    case at::kInt:
        return ncclInt32;
    case at::kUInt32:
        return ncclUint32;
    case at::kLong:
        return ncclInt64;
    case at::kUInt64:
        return ncclUint64;
    case at::kHalf:
        return ncclFloat16;
    case at::kFloat:
        return ncclFloat32;
    case at::kDouble:
        return ncclFloat64;
    case at::kBFloat16:
        return ncclBfloat16;
    case at::kFloat8_e4m3fn:
        return ncclFloat8e4m3;
    case at::kFloat8_e5m2:
        return ncclFloat8e5m2;
    default:
        return std::nullopt;
    }
}

/** How an element moves: `count` units of `type`. */
struct Unit {
    ncclDataType_t type;
    size_t count;
};

inline Unit unit_of(const at::Tensor &t)
{
    if (auto type = arithmetic_type(t.scalar_type())) return {*type, 1};
    return {ncclUint8, (size_t)t.element_size()};
}

inline ncclRedOp_t truth_operator(const char *op, c10d::ReduceOp::RedOpType kind)
{
    switch (kind) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::MAX:
    case c10d::ReduceOp::BOR:
        return koloLogicalOr;
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
        return koloLogicalAnd;
    case c10d::ReduceOp::BXOR:
        return koloLogicalXor;
    default:
        bad_type(op, "ReduceOp.AVG and PREMUL_SUM have no meaning for dtype Bool");
    }
}

inline ncclRedOp_t bit_operator(const char *op, c10d::ReduceOp::RedOpType kind, at::ScalarType type)
{
    static const char *const names[] = {"BAND", "BOR", "BXOR"};
    static const ncclRedOp_t ops[] = {koloBitAnd, koloBitOr, koloBitXor};
    const int i = kind - c10d::ReduceOp::BAND;

    if (!at::isIntegralType(type, false) && type != at::kUInt32 && type != at::kUInt64)
        bad_value(op, std::string("Cannot use ReduceOp.") + names[i] + " with non-integral dtype");
    return ops[i];
}

/** The operator but PREMUL_SUM, which belongs to a communicator. */
inline ncclRedOp_t plain_operator(const char *op, c10d::ReduceOp::RedOpType kind, at::ScalarType type)
{
    if (type == at::kBool) return truth_operator(op, kind);
    switch (kind) {
    case c10d::ReduceOp::SUM:
        return ncclSum;
    case c10d::ReduceOp::AVG:
        return ncclAvg;
    case c10d::ReduceOp::PRODUCT:
        return ncclProd;
    case c10d::ReduceOp::MIN:
        return ncclMin;
    case c10d::ReduceOp::MAX:
        return ncclMax;
    case c10d::ReduceOp::BAND:
    case c10d::ReduceOp::BOR:
    case c10d::ReduceOp::BXOR:
        return bit_operator(op, kind, type);
    default:
        bad_value(op, "unknown ReduceOp");
    }
}

/** A tensor that lies ready, to be reduced: the same memory, complex numbers as pairs of real ones. */
inline at::Tensor reducible(const char *op, const at::Tensor &t, const c10d::ReduceOp &reduce)
{
    if (t.is_complex()) {
        if (!c10d::isComplexViewAsRealAllowed(reduce))
            bad_value(op, "only ReduceOp.SUM, AVG and PREMUL_SUM are supported for complex tensors");
        return at::view_as_real(t);
    }
    if (!arithmetic_type(t.scalar_type()))
        bad_type(op, std::string("dtype ") + c10::toString(t.scalar_type()) + " is not supported");
    return t;
}

// ---- memory ----

inline bool lies_ready(const at::Tensor &t)
{
    return t.is_contiguous() && !t.is_conj() && !t.is_neg();
}

/** Copies that stand in for tensors. Keeps them until it is destroyed. */
struct Staging {
    std::vector<std::pair<at::Tensor, at::Tensor>> back; // to, from
    Tensors kept;

    at::Tensor keep(at::Tensor t)
    {
        kept.push_back(t);
        return t;
    }

    at::Tensor readable(const at::Tensor &t)
    {
        if (lies_ready(t)) return t;
        return keep(t.resolve_conj().resolve_neg().contiguous());
    }

    /** For results that replace all of `t`. */
    at::Tensor writable(const at::Tensor &t)
    {
        if (lies_ready(t)) return t;
        auto copy = at::empty(t.sizes(), t.options().memory_format(at::MemoryFormat::Contiguous));
        back.emplace_back(t, copy);
        return copy;
    }

    /** For results that replace the values that were read. */
    at::Tensor updatable(const at::Tensor &t)
    {
        if (lies_ready(t)) return t;
        auto copy = readable(t);
        back.emplace_back(t, copy);
        return copy;
    }

    /** One row of all elements of `list`, in its order. */
    at::Tensor readable(const Tensors &list);
    at::Tensor writable(const Tensors &list);

    void bring_back() const
    {
        at::AutoDispatchBelowADInplaceOrView guard;
        for (auto &[to, from] : back) to.copy_(from.view(to.sizes()));
    }
};

inline int64_t elements_of(const Tensors &list)
{
    int64_t n = 0;
    for (auto &t : list) n += t.numel();
    return n;
}

/** The list as one row where it lies, if its tensors follow each other in one storage. */
inline std::optional<at::Tensor> adjacent(const Tensors &list)
{
    const auto &first = list.front();
    int64_t next = first.storage_offset();

    for (auto &t : list) {
        if (!lies_ready(t) || !t.is_alias_of(first) || t.storage_offset() != next) return std::nullopt;
        next += t.numel();
    }
    return first.detach().as_strided({elements_of(list)}, {1}, first.storage_offset());
}

inline at::Tensor row_like(const Tensors &list)
{
    return at::empty({elements_of(list)}, list.front().options().memory_format(at::MemoryFormat::Contiguous));
}

inline at::Tensor Staging::writable(const Tensors &list)
{
    if (auto row = adjacent(list)) return *row;
    auto row = row_like(list);
    int64_t at = 0;
    for (auto &t : list) {
        back.emplace_back(t, row.narrow(0, at, t.numel()));
        at += t.numel();
    }
    return keep(row);
}

inline at::Tensor Staging::readable(const Tensors &list)
{
    at::AutoDispatchBelowADInplaceOrView guard;
    if (auto row = adjacent(list)) return *row;
    auto row = row_like(list);
    int64_t at = 0;
    for (auto &t : list) {
        row.narrow(0, at, t.numel()).view(t.sizes()).copy_(t);
        at += t.numel();
    }
    return keep(row);
}

/** Whether two ready tensors share memory. */
inline bool overlap(const at::Tensor &a, const at::Tensor &b)
{
    auto *pa = static_cast<const char *>(a.const_data_ptr()), *pb = static_cast<const char *>(b.const_data_ptr());

    return pa < pb + b.nbytes() && pb < pa + a.nbytes();
}

// ---- checks ----

inline void check_tensor(const char *op, const at::Tensor &t, size_t index)
{
    const std::string where = "tensor at index " + std::to_string(index);

    if (!t.defined()) bad_value(op, where + " is undefined");
    if (t.layout() != at::kStrided) bad_value(op, "only supports dense tensors, " + where + " is sparse");
    if (!t.device().is_cpu())
        bad_value(op, "unsupported device type " + t.device().str() + ", " + where + " has to be on the CPU");
}

inline void check_tensors(const char *op, const Tensors &list)
{
    for (size_t i = 0; i < list.size(); i++) check_tensor(op, list[i], i);
}

inline const at::Tensor &single(const char *op, const Tensors &list)
{
    if (list.size() != 1) bad_value(op, "requires a single-element tensor list");
    check_tensor(op, list[0], 0);
    return list[0];
}

inline void check_type(const char *op, at::ScalarType expected, const at::Tensor &t, size_t index)
{
    if (t.scalar_type() != expected)
        bad_value(op, "invalid tensor type at index " + std::to_string(index) + " (expected " +
                          c10::toString(expected) + ", got " + c10::toString(t.scalar_type()) + ")");
}

inline std::string sizes_text(at::IntArrayRef sizes)
{
    std::string s = "(";
    for (size_t i = 0; i < sizes.size(); i++) s += (i ? ", " : "") + std::to_string(sizes[i]);
    return s + ")";
}

inline void check_like(const char *op, const at::Tensor &model, const Tensors &list)
{
    for (size_t i = 0; i < list.size(); i++) {
        check_tensor(op, list[i], i);
        check_type(op, model.scalar_type(), list[i], i);
        if (list[i].numel() != model.numel())
            bad_value(op, "invalid tensor size at index " + std::to_string(i) + " (expected " +
                              sizes_text(model.sizes()) + ", got " + sizes_text(list[i].sizes()) + ")");
    }
}

inline void check_root(const char *op, int64_t root, int size)
{
    if (root < 0 || root >= size) bad_value(op, "invalid root rank: " + std::to_string(root));
}

// ---- the checks of PyTorch's backend for NCCL, in its words ----

inline void check_tensors_of_nccl(const char *op, const Tensors &list, bool all_dense)
{
    for (auto &t : list) {
        if (all_dense && !t.is_contiguous(t.suggest_memory_format())) bad_value(op, "Tensors must be contiguous");
        if (!t.is_complex() && !arithmetic_type(t.scalar_type()))
            bad_type(op, std::string("Input tensor data type is not supported for NCCL process group: ") +
                             c10::toString(t.scalar_type()));
    }
}

inline void check_operator_of_nccl(const char *op, const c10d::ReduceOp &reduce)
{
    static const char *const names[] = {"BAND", "BOR", "BXOR"};
    const int i = reduce.op_ - c10d::ReduceOp::BAND;

    if (i >= 0 && i < 3) bad_value(op, std::string("Cannot use ReduceOp.") + names[i] + " with NCCL");
}

} // namespace kolo
