// SPDX-License-Identifier: Apache-2.0
/**
 * record.hpp - an operation's entry in the flight record, by the names of PyTorch's analyser.
 */
#pragma once

#include "backend.hpp"

#include <cstring>
#include <map>
#include <numeric>

namespace kolo
{

RecordedGroup KoloBackend::recorded_group() const
{
    auto ranks = options_->global_ranks_in_group;
    if (ranks.size() != (size_t)size_) {
        ranks.resize((size_t)size_);
        std::iota(ranks.begin(), ranks.end(), 0);
    }
    return {number_, getGroupUid().empty() ? link_->group : getGroupUid(), getGroupDesc(), std::move(ranks)};
}

/** The name by which PyTorch's analyser of flight records knows an operation. */
inline std::string recorded_name(const Call &call, const Tensors &parts, int rank)
{
    static const std::map<std::string, std::string> others = {
        {"all_reduce_coalesced", "allreduce_coalesced"},
        {"all_gather_coalesced", "ALLGATHER_coalesced"},
    };
    const std::string name = std::string(call.title).substr(std::strlen("kolo:"));
    const std::string me = std::to_string(rank), peer = std::to_string(call.peer);

    if (call.message) return call.type == OpType::SEND ? "send " + me + "->" + peer : "recv " + me + "<-" + peer;
    const bool unequal =
        std::any_of(parts.begin(), parts.end(), [&](auto &t) { return t.sizes() != parts[0].sizes(); });
    if (unequal && (call.type == OpType::ALLGATHER || call.type == OpType::REDUCE_SCATTER)) return name + "_v";
    const auto found = others.find(name);
    return found == others.end() ? name : found->second;
}

/** Takes the interpreter's lock for the stack trace: call it without others. */
Records KoloBackend::record(const Call &call, uint64_t seq, const Tensors &inputs, const Tensors &outputs)
{
    auto &recorder = FlightRecorder::get();
    if (!recorder.enabled()) return {};
    Recorded r;
    r.is_message = call.message;
    r.message = call.message ? ++message_seq_ : message_seq_.load();
    r.collective = call.message ? seq_.load() : seq;
    r.timeout = call.timeout;
    r.flat_inputs = call.type == OpType::REDUCE_SCATTER || call.type == OpType::ALLTOALL;
    r.flat_outputs = call.type == OpType::ALLGATHER || call.type == OpType::ALLTOALL;
    r.name = recorded_name(call, r.flat_inputs ? inputs : outputs, rank_);
    r.inputs = inputs;
    r.outputs = outputs;
    return {recorder.record(recorded_group(), r)};
}

} // namespace kolo
