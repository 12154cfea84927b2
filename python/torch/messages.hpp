// SPDX-License-Identifier: Apache-2.0
/**
 * messages.hpp - messages between two ranks: over Kolo's own layer, over gloo, or in the order of the group's calls.
 */
#pragma once

#include "submit.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace kolo
{

void KoloBackend::begin_messages()
{
    if (manner_.tagged_messages) tagged_ = c10::make_intrusive<TaggedBackend>(link_, options_, rank_, size_);
    if (!manner_.tagged_messages && !manner_.ordered_messages) make_messages();
}

void KoloBackend::make_messages()
{
    std::lock_guard hold(messages_guard_);
    if (!messages_ && manner_.make_messages && size_ > 1)
        messages_ = manner_.make_messages(c10::make_intrusive<c10d::PrefixStore>("messages/", store_), rank_, size_,
                                          options_->timeout);
}

/** gloo: where Kolo carries messages itself, only sums of sparse tensors need it. */
Backend &KoloBackend::messages()
{
    if (manner_.tagged_messages) make_messages();
    TORCH_CHECK(!manner_.as_nccl, "kolo: group ", link_->group, ": sparse tensors are not supported in place of NCCL");
    TORCH_CHECK(messages_, "kolo: group ", link_->group, " of ", size_, " was made without a backend for messages");
    return *messages_;
}

void KoloBackend::check_peer(const char *op, int peer) const
{
    if (peer < 0 || peer >= size_ || peer == rank_)
        bad_value(op, "rank " + std::to_string(peer) + " is not another rank of the group, which has 0 to " +
                          std::to_string(size_ - 1));
}

/** `start` hands a ready buffer to the backend for messages. */
template <class Start>
WorkPtr KoloBackend::message(const Call &call, const Tensors &tensors, Staging &staging, Start start)
{
    check_alive(call);
    const Records records = record(call, 0, call.type == OpType::SEND ? tensors : Tensors(),
                                   call.type == OpType::SEND ? Tensors() : tensors);
    auto started = start(tagged_ ? *tagged_ : messages());
    if (auto *batch = own_batch()) {
        put_into_batch(
            *batch, call, tensors, tensors, staging, [](Scope &) { return ncclSuccess; }, records);
        batch->issues.pop_back();
        batch->parts.push_back(started);
        return started;
    }
    auto work = c10::make_intrusive<KoloWork>(link_, call, 0, tensors, tensors);
    work->staging = std::move(staging);
    work->parts.push_back(std::move(started));
    work->follow(records);
    return work;
}

inline ncclResult_t issue_message(Scope &s, bool sends, const at::Tensor &t, int peer)
{
    const Unit unit = unit_of(t);
    const size_t count = (size_t)t.numel() * unit.count;

    if (!count) return ncclSuccess;
    return sends ? ncclSend(t.const_data_ptr(), count, unit.type, peer, s.comm, s.stream)
                 : ncclRecv(t.data_ptr(), count, unit.type, peer, s.comm, s.stream);
}

WorkPtr KoloBackend::ordered_message(const Call &call, const Tensors &tensors, Staging &staging, const at::Tensor &t,
                                     int peer)
{
    const bool sends = call.type == OpType::SEND;

    return submit(call, tensors, tensors, staging, [=](Scope &s) { return issue_message(s, sends, t, peer); });
}

WorkPtr KoloBackend::send(Tensors &tensors, int peer, int tag)
{
    const Call call{OpType::SEND, "send", "kolo:send", options_->timeout, true, true, peer};
    Staging staging;

    check_peer(call.name, peer);
    const auto t = staging.readable(single(call.name, tensors));
    if (manner_.ordered_messages) return ordered_message(call, tensors, staging, t, peer);
    return message(call, tensors, staging, [&](Backend &b) {
        Tensors one{t};
        return b.send(one, peer, tag);
    });
}

WorkPtr KoloBackend::recv(Tensors &tensors, int peer, int tag)
{
    const Call call{OpType::RECV, "recv", "kolo:recv", options_->timeout, true, true, peer};
    Staging staging;

    check_peer(call.name, peer);
    const auto t = staging.writable(single(call.name, tensors));
    if (manner_.ordered_messages) return ordered_message(call, tensors, staging, t, peer);
    return message(call, tensors, staging, [&](Backend &b) {
        Tensors one{t};
        return b.recv(one, peer, tag);
    });
}

WorkPtr KoloBackend::recvAnysource(Tensors &tensors, int tag)
{
    const Call call{OpType::RECVANYSOURCE, "recv_any_source", "kolo:recvAnySource", options_->timeout, true, true};
    Staging staging;

    TORCH_CHECK(!manner_.as_nccl, "kolo: recv: ProcessGroupNCCL does not support recvAnysource");
    TORCH_CHECK(!manner_.ordered_messages,
                "kolo: recv: a receive from any source needs messages with tags: KOLO_TORCH_MESSAGES=tagged, not kolo");
    const auto t = staging.writable(single(call.name, tensors));
    return message(call, tensors, staging, [&](Backend &b) {
        Tensors one{t};
        return b.recvAnysource(one, tag);
    });
}

} // namespace kolo
