// SPDX-License-Identifier: Apache-2.0
/**
 * moves.hpp - the collectives that move data: broadcast, all-gather, gather, scatter, all-to-all.
 */
#pragma once

#include "counts.hpp"
#include "submit.hpp"

namespace kolo
{

WorkPtr KoloBackend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
    const Call call = call_of(OpType::BROADCAST, "broadcast", "kolo:broadcast", opts);
    const auto &t = single(call.name, tensors);
    const int root = (int)opts.rootRank;
    Staging staging;

    check_root(call.name, opts.rootRank, size_);
    const auto buffer = staging.updatable(t);
    const Unit unit = unit_of(t);
    return submit(call, tensors, tensors, staging, [=](Scope &s) {
        void *p = buffer.data_ptr();
        return ncclBroadcast(p, p, (size_t)buffer.numel() * unit.count, unit.type, root, s.comm, s.stream);
    });
}

/** `input` as a buffer apart from `output`, unless it is where its part of the result belongs. */
inline at::Tensor apart(Staging &staging, const at::Tensor &input, const at::Tensor &output, int64_t own)
{
    const auto in = staging.readable(input);
    auto *place = static_cast<const char *>(output.const_data_ptr()) + own * (int64_t)output.element_size();
    return overlap(in, output) && in.const_data_ptr() != place ? staging.keep(in.clone()) : in;
}

WorkPtr KoloBackend::_allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &opts)
{
    const Call call = call_of(OpType::_ALLGATHER_BASE, "all_gather_into_tensor", "kolo:_all_gather_base", opts);
    Staging staging;

    check_tensor(call.name, input, 0);
    check_tensor(call.name, output, 0);
    check_type(call.name, output.scalar_type(), input, 0);
    if (input.numel() * size_ != output.numel())
        bad_value(call.name, "output tensor size must be equal to world_size times input tensor size");
    const auto to = staging.writable(output);
    const auto from = apart(staging, input, to, rank_ * input.numel());
    const Unit unit = unit_of(input);
    return submit(call, {input}, {output}, staging, [=](Scope &s) {
        return ncclAllGather(from.const_data_ptr(), to.data_ptr(), (size_t)from.numel() * unit.count, unit.type, s.comm,
                             s.stream);
    });
}

WorkPtr KoloBackend::allgather(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    const Call call = call_of(OpType::ALLGATHER, "all_gather", "kolo:all_gather", opts);
    Staging staging;

    const auto &input = single(call.name, inputs);
    if (outputs.size() != 1) bad_value(call.name, "requires input/output tensor lists to have the same length");
    const auto &list = outputs[0];
    if (list.size() != (size_t)size_)
        bad_value(call.name, "invalid output tensor list at index 0 (expected length " + std::to_string(size_) +
                                 ", got " + std::to_string(list.size()) + ")");
    check_tensors(call.name, list);
    for (size_t i = 0; i < list.size(); i++) check_type(call.name, input.scalar_type(), list[i], i);
    check_like(call.name, input, {list[rank_]});
    const Unit unit = unit_of(input);
    const Counts counts = counts_of(list, unit.count);
    const auto to = staging.writable(list);
    const auto from = apart(staging, input, to, (int64_t)(counts.at[rank_] / unit.count));
    return submit(call, inputs, list, staging, [=](Scope &s) {
        if (counts.equal)
            return ncclAllGather(from.const_data_ptr(), to.data_ptr(), counts.of[0], unit.type, s.comm, s.stream);
        return koloAllGatherV(from.const_data_ptr(), (size_t)from.numel() * unit.count, to.data_ptr(), counts.of.data(),
                              counts.at.data(), unit.type, s.comm, s.stream);
    });
}

/** Several gatherings as one: rows that go into rows. */
struct Rows {
    Tensors from, to;
    std::vector<Unit> units;
};

inline ncclResult_t gather_rows(const Rows &rows, Scope &s)
{
    return grouped([&] {
        for (size_t i = 0; i < rows.from.size(); i++)
            if (const ncclResult_t r = ncclAllGather(rows.from[i].const_data_ptr(), rows.to[i].data_ptr(),
                                                     (size_t)rows.from[i].numel() * rows.units[i].count,
                                                     rows.units[i].type, s.comm, s.stream))
                return r;
        return ncclSuccess;
    });
}

WorkPtr KoloBackend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                     const c10d::AllgatherOptions &opts)
{
    const Call call =
        call_of(OpType::COALESCED, "all_gather_into_tensor_coalesced", "kolo:all_gather_into_tensor_coalesced", opts);
    Staging staging;
    Rows rows;

    if (outputs.size() != inputs.size())
        bad_value(call.name, "requires input/output tensor lists to have the same length");
    check_tensors(call.name, outputs);
    check_tensors(call.name, inputs);
    for (size_t i = 0; i < inputs.size(); i++) {
        check_type(call.name, outputs[i].scalar_type(), inputs[i], i);
        if (inputs[i].numel() * size_ != outputs[i].numel())
            bad_value(call.name, "output tensor size must be equal to world_size times input tensor size");
        rows.to.push_back(staging.writable(outputs[i]));
        rows.from.push_back(apart(staging, inputs[i], rows.to.back(), rank_ * inputs[i].numel()));
        rows.units.push_back(unit_of(inputs[i]));
    }
    return submit(call, inputs, outputs, staging, [=](Scope &s) { return gather_rows(rows, s); });
}

WorkPtr KoloBackend::allgather_coalesced(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    const Call call = call_of(OpType::ALLGATHER_COALESCED, "all_gather_coalesced", "kolo:all_gather_coalesced", opts);
    Staging staging;
    Tensors flat;
    Rows rows;

    if (inputs.empty()) bad_value(call.name, "requires non-empty input tensor list");
    if (outputs.size() != (size_t)size_) bad_value(call.name, "output lists should be equal to world size");
    check_tensors(call.name, inputs);
    for (size_t i = 0; i < inputs.size(); i++) {
        Tensors of_ranks;
        for (auto &list : outputs) {
            if (list.size() != inputs.size())
                bad_value(call.name, "requires input/output tensor lists to have the same length");
            check_like(call.name, inputs[i], {list[i]});
            of_ranks.push_back(list[i]);
            flat.push_back(list[i]);
        }
        rows.to.push_back(staging.writable(of_ranks));
        rows.from.push_back(apart(staging, inputs[i], rows.to.back(), rank_ * inputs[i].numel()));
        rows.units.push_back(unit_of(inputs[i]));
    }
    return submit(call, inputs, flat, staging, [=](Scope &s) { return gather_rows(rows, s); });
}

WorkPtr KoloBackend::gather(TensorLists &outputs, Tensors &inputs, const c10d::GatherOptions &opts)
{
    const Call call = call_of(OpType::GATHER, "gather", "kolo:gather", opts);
    const int root = (int)opts.rootRank;
    Staging staging;

    const auto &input = single(call.name, inputs);
    check_root(call.name, opts.rootRank, size_);
    const Unit unit = unit_of(input);
    at::Tensor to;
    Tensors list;
    if (rank_ == root) {
        if (outputs.size() != 1 || outputs[0].size() != (size_t)size_)
            bad_value(call.name, "requires a single-element output list containing a list with " +
                                     std::to_string(size_) + " tensors");
        list = outputs[0];
        check_like(call.name, input, list);
        to = staging.writable(list);
    } else if (!outputs.empty()) {
        bad_value(call.name, "requires empty output on non-root");
    }
    const auto from = to.defined() ? apart(staging, input, to, rank_ * input.numel()) : staging.readable(input);
    return submit(call, inputs, list, staging, [=](Scope &s) {
        return ncclGather(from.const_data_ptr(), to.defined() ? to.data_ptr() : nullptr,
                          (size_t)from.numel() * unit.count, unit.type, root, s.comm, s.stream);
    });
}

#ifdef C10D_BACKEND_HAS_HOOKS
/** Off the root `output` is anything. */
WorkPtr KoloBackend::gather_single(at::Tensor &output, at::Tensor &input, const c10d::GatherOptions &opts)
{
    const Call call = call_of(OpType::GATHER, "gather_single", "kolo:gather_single", opts);
    const int root = (int)opts.rootRank;
    Staging staging;
    at::Tensor to;

    check_root(call.name, opts.rootRank, size_);
    check_tensor(call.name, input, 0);
    const Unit unit = unit_of(input);
    if (rank_ == root) {
        check_tensor(call.name, output, 0);
        check_type(call.name, output.scalar_type(), input, 0);
        if (input.numel() * size_ != output.numel())
            bad_value(call.name, "output tensor size must be equal to world_size times input tensor size");
        to = staging.writable(output);
    }
    const auto from = to.defined() ? apart(staging, input, to, rank_ * input.numel()) : staging.readable(input);
    return submit(call, {input}, to.defined() ? Tensors{output} : Tensors{}, staging, [=](Scope &s) {
        return ncclGather(from.const_data_ptr(), to.defined() ? to.data_ptr() : nullptr,
                          (size_t)from.numel() * unit.count, unit.type, root, s.comm, s.stream);
    });
}
#endif

WorkPtr KoloBackend::scatter(Tensors &outputs, TensorLists &inputs, const c10d::ScatterOptions &opts)
{
    const Call call = call_of(OpType::SCATTER, "scatter", "kolo:scatter", opts);
    const int root = (int)opts.rootRank;
    Staging staging;

    const auto &output = single(call.name, outputs);
    check_root(call.name, opts.rootRank, size_);
    const Unit unit = unit_of(output);
    at::Tensor from;
    if (rank_ == root) {
        if (inputs.size() != 1 || inputs[0].size() != (size_t)size_)
            bad_value(call.name, "requires a single-element input list containing a list with " +
                                     std::to_string(size_) + " tensors");
        check_like(call.name, output, inputs[0]);
        from = staging.readable(inputs[0]);
    } else if (!inputs.empty()) {
        bad_value(call.name, "requires empty input on non-root");
    }
    const auto to = staging.writable(output);
    if (from.defined() && overlap(from, to)) from = staging.keep(from.clone());
    return submit(call, rank_ == root ? inputs[0] : Tensors{}, outputs, staging, [=](Scope &s) {
        return ncclScatter(from.defined() ? from.const_data_ptr() : nullptr, to.data_ptr(),
                           (size_t)to.numel() * unit.count, unit.type, root, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &out_splits,
                                   std::vector<int64_t> &in_splits, const c10d::AllToAllOptions &opts)
{
    const Call call = call_of(OpType::ALLTOALL_BASE, "all_to_all_single", "kolo:all_to_all", opts);
    const bool equal = out_splits.empty() && in_splits.empty();
    Staging staging;

    check_tensor(call.name, input, 0);
    check_tensor(call.name, output, 0);
    check_type(call.name, output.scalar_type(), input, 0);
    const Unit unit = unit_of(input);
    const Counts in = counts_of_splits(
        call.name, input, in_splits.empty() ? equal_splits(call.name, input, size_) : in_splits, size_, unit.count);
    const Counts out = counts_of_splits(
        call.name, output, out_splits.empty() ? equal_splits(call.name, output, size_) : out_splits, size_, unit.count);
    if (equal && input.numel() != output.numel()) bad_value(call.name, "input and output have to be of the same size");
    const auto to = staging.writable(output);
    auto from = staging.readable(input);
    if (overlap(from, to)) from = staging.keep(from.clone());
    return submit(call, {input}, {output}, staging, [=](Scope &s) {
        if (equal) return ncclAlltoAll(from.const_data_ptr(), to.data_ptr(), in.of[0], unit.type, s.comm, s.stream);
        return koloAllToAllV(from.const_data_ptr(), in.of.data(), in.at.data(), to.data_ptr(), out.of.data(),
                             out.at.data(), unit.type, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts)
{
    const Call call = call_of(OpType::ALLTOALL, "all_to_all", "kolo:all_to_all", opts);
    Staging staging;
    Tensors from, to;

    if (inputs.size() != (size_t)size_) bad_value(call.name, "invalid input tensor list size, must be world size");
    if (outputs.size() != (size_t)size_) bad_value(call.name, "invalid output tensor list size, must be world size");
    check_tensors(call.name, inputs);
    check_tensors(call.name, outputs);
    for (int i = 0; i < size_; i++) {
        check_type(call.name, inputs[0].scalar_type(), inputs[i], i);
        check_type(call.name, inputs[0].scalar_type(), outputs[i], i);
        from.push_back(staging.readable(inputs[i]));
        to.push_back(staging.writable(outputs[i]));
    }
    check_like(call.name, inputs[rank_], {outputs[rank_]});
    for (auto &f : from)
        for (auto &t : to)
            if (overlap(f, t)) f = staging.keep(f.clone());
    const Unit unit = unit_of(inputs[0]);
    return submit(call, inputs, outputs, staging, [=](Scope &s) {
        return grouped([&] {
            for (size_t i = 0; i < from.size(); i++) {
                const int peer = (int)i;
                ncclResult_t r = ncclSuccess;
                if (from[i].numel())
                    r = ncclSend(from[i].const_data_ptr(), (size_t)from[i].numel() * unit.count, unit.type, peer,
                                 s.comm, s.stream);
                if (r == ncclSuccess && to[i].numel())
                    r = ncclRecv(to[i].data_ptr(), (size_t)to[i].numel() * unit.count, unit.type, peer, s.comm,
                                 s.stream);
                if (r != ncclSuccess) return r;
            }
            return ncclSuccess;
        });
    });
}

} // namespace kolo
