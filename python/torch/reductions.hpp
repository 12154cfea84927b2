// SPDX-License-Identifier: Apache-2.0
/**
 * reductions.hpp - the collectives that reduce: all-reduce, reduce, reduce-scatter.
 */
#pragma once

#include "counts.hpp"
#include "submit.hpp"

namespace kolo
{

WorkPtr KoloBackend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    if (tensors.size() == 1 && tensors[0].layout() == at::kSparse) return allreduce_sparse(tensors, opts);
    const Call call = call_of(OpType::ALLREDUCE, "all_reduce", "kolo:all_reduce", opts);
    Staging staging;

    const auto buffer = reducible(call.name, staging.updatable(single(call.name, tensors)), opts.reduceOp);
    const Operator op(call.name, opts.reduceOp, buffer);
    return submit(call, tensors, tensors, staging, [=](Scope &s) {
        ncclRedOp_t o;
        if (const ncclResult_t r = op.get(s, &o)) return r;
        void *p = buffer.data_ptr();
        return ncclAllReduce(p, p, (size_t)buffer.numel(), op.type, o, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    const Call call{OpType::_ALLREDUCE_SPARSE, "all_reduce_sparse", "kolo:all_reduce_sparse", options_->timeout, true};

    check_alive(call);
    if (size_ == 1) return finished(call, ++seq_, tensors);
    return messages().allreduce(tensors, opts);
}

WorkPtr KoloBackend::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts)
{
    const Call call = call_of(OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced", "kolo:all_reduce_coalesced", opts);
    Staging staging;
    Tensors buffers;
    std::vector<Operator> ops;

    if (tensors.empty()) bad_value(call.name, "requires non-empty tensor list");
    check_tensors(call.name, tensors);
    for (auto &t : tensors) {
        buffers.push_back(reducible(call.name, staging.updatable(t), opts.reduceOp));
        ops.emplace_back(call.name, opts.reduceOp, buffers.back());
    }
    return submit(call, tensors, tensors, staging, [=](Scope &s) {
        return grouped([&] {
            for (size_t i = 0; i < buffers.size(); i++) {
                ncclRedOp_t o;
                if (const ncclResult_t r = ops[i].get(s, &o)) return r;
                void *p = buffers[i].data_ptr();
                if (const ncclResult_t r =
                        ncclAllReduce(p, p, (size_t)buffers[i].numel(), ops[i].type, o, s.comm, s.stream))
                    return r;
            }
            return ncclSuccess;
        });
    });
}

WorkPtr KoloBackend::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
    const Call call = call_of(OpType::REDUCE, "reduce", "kolo:reduce", opts);
    const int root = (int)opts.rootRank;
    Staging staging;

    const auto &t = single(call.name, tensors);
    check_root(call.name, opts.rootRank, size_);
    const auto buffer = reducible(call.name, rank_ == root ? staging.updatable(t) : staging.readable(t), opts.reduceOp);
    const Operator op(call.name, opts.reduceOp, buffer);
    return submit(call, tensors, tensors, staging, [=](Scope &s) {
        ncclRedOp_t o;
        if (const ncclResult_t r = op.get(s, &o)) return r;
        void *p = buffer.data_ptr();
        return ncclReduce(p, p, (size_t)buffer.numel(), op.type, o, root, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input, const c10d::ReduceScatterOptions &opts)
{
    const Call call = call_of(OpType::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor", "kolo:_reduce_scatter_base", opts);
    Staging staging;

    check_tensor(call.name, input, 0);
    check_tensor(call.name, output, 0);
    check_type(call.name, output.scalar_type(), input, 0);
    if (output.numel() * size_ != input.numel())
        bad_value(call.name, "input tensor must be the same size as output size times world size");
    const auto to = reducible(call.name, staging.writable(output), opts.reduceOp);
    auto from = reducible(call.name, staging.readable(input), opts.reduceOp);
    if (overlap(from, to)) from = staging.keep(from.clone());
    const Operator op(call.name, opts.reduceOp, to);
    return submit(call, {input}, {output}, staging, [=](Scope &s) {
        ncclRedOp_t o;
        if (const ncclResult_t r = op.get(s, &o)) return r;
        return ncclReduceScatter(from.const_data_ptr(), to.data_ptr(), (size_t)to.numel(), op.type, o, s.comm,
                                 s.stream);
    });
}

WorkPtr KoloBackend::reduce_scatter(Tensors &outputs, TensorLists &inputs, const c10d::ReduceScatterOptions &opts)
{
    const Call call = call_of(OpType::REDUCE_SCATTER, "reduce_scatter", "kolo:reduce_scatter", opts);
    Staging staging;

    const auto &output = single(call.name, outputs);
    if (inputs.size() != 1) bad_value(call.name, "requires input/output tensor lists to have the same length");
    if (inputs[0].size() != (size_t)size_) bad_value(call.name, "invalid input tensor list size, must be world size");
    check_tensors(call.name, inputs[0]);
    for (size_t i = 0; i < inputs[0].size(); i++) check_type(call.name, output.scalar_type(), inputs[0][i], i);
    check_like(call.name, output, {inputs[0][rank_]});
    const Counts counts = counts_of(inputs[0], output.is_complex() ? 2 : 1);
    const auto to = reducible(call.name, staging.writable(output), opts.reduceOp);
    auto from = reducible(call.name, staging.readable(inputs[0]), opts.reduceOp);
    if (overlap(from, to)) from = staging.keep(from.clone());
    const Operator op(call.name, opts.reduceOp, to);
    return submit(call, inputs[0], outputs, staging, [=](Scope &s) {
        ncclRedOp_t o;
        if (const ncclResult_t r = op.get(s, &o)) return r;
        if (counts.equal)
            return ncclReduceScatter(from.const_data_ptr(), to.data_ptr(), counts.of[0], op.type, o, s.comm, s.stream);
        return koloReduceScatterV(from.const_data_ptr(), to.data_ptr(), counts.of.data(), op.type, o, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                     const c10d::ReduceScatterOptions &opts)
{
    const Call call = call_of(OpType::REDUCE_SCATTER_TENSOR_COALESCED, "reduce_scatter_tensor_coalesced",
                              "kolo:reduce_scatter_tensor_coalesced", opts);
    Staging staging;
    Tensors from, to;
    std::vector<Operator> ops;

    if (outputs.size() != inputs.size())
        bad_value(call.name, "requires input/output tensor lists to have the same length");
    check_tensors(call.name, outputs);
    check_tensors(call.name, inputs);
    for (size_t i = 0; i < inputs.size(); i++) {
        check_type(call.name, outputs[i].scalar_type(), inputs[i], i);
        if (outputs[i].numel() * size_ != inputs[i].numel())
            bad_value(call.name, "input tensor must be the same size as output size times world size");
        to.push_back(reducible(call.name, staging.writable(outputs[i]), opts.reduceOp));
        from.push_back(reducible(call.name, staging.readable(inputs[i]), opts.reduceOp));
        if (overlap(from[i], to[i])) from[i] = staging.keep(from[i].clone());
        ops.emplace_back(call.name, opts.reduceOp, to[i]);
    }
    return submit(call, inputs, outputs, staging, [=](Scope &s) {
        return grouped([&] {
            for (size_t i = 0; i < from.size(); i++) {
                ncclRedOp_t o;
                if (const ncclResult_t r = ops[i].get(s, &o)) return r;
                if (const ncclResult_t r = ncclReduceScatter(from[i].const_data_ptr(), to[i].data_ptr(),
                                                             (size_t)to[i].numel(), ops[i].type, o, s.comm, s.stream))
                    return r;
            }
            return ncclSuccess;
        });
    });
}

} // namespace kolo
