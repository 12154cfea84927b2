// SPDX-License-Identifier: Apache-2.0
/**
 * kolo_backend.cc - PyTorch's process group backend "kolo": c10d::Backend on a Kolo communicator. Here: its Python module.
 *
 * Every collective becomes calls of kolo.h, issued in order under one lock (submit.hpp). Synchronous ones run inside the call, on an inline stream;
 * others are queued, and a KoloWork stands for them (work.hpp). Tensors that Kolo cannot use where they lie are staged (tensors.hpp). Messages with
 * tags are another backend's (tagged.hpp, or gloo), made with the group: a receive may be started before its sender has anything to say.
 *
 * One translation unit: users compile it (python -m kolocc.torch), and each unit would read the headers of PyTorch again.
 */
#include "barriers.hpp"
#include "groups.hpp"
#include "life.hpp"
#include "messages.hpp"
#include "moves.hpp"
#include "reconfigure.hpp"
#include "reductions.hpp"

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

namespace kolo
{

namespace py = pybind11;

/** A Python function, callable and destroyable without the interpreter's lock. */
static MessagesFactory factory_of(py::object function)
{
    if (function.is_none()) return nullptr;
    std::shared_ptr<py::object> held(new py::object(std::move(function)), [](py::object *f) {
        py::gil_scoped_acquire lock;
        delete f;
    });
    return [held](const intrusive_ptr<Store> &store, int rank, int size, milliseconds timeout) {
        py::gil_scoped_acquire lock;
        return (*held)(store, rank, size, timeout).cast<intrusive_ptr<Backend>>();
    };
}

static intrusive_ptr<Backend> create_from_python(const intrusive_ptr<Store> &store, int rank, int size,
                                                 milliseconds timeout, const std::string &group,
                                                 const std::vector<uint64_t> &global_ranks, bool ordered_messages,
                                                 bool tagged_messages, bool run_inline, bool as_nccl,
                                                 bool enable_reconfigure, py::object make_messages)
{
    auto options = c10::make_intrusive<Options>(as_nccl ? "nccl" : "kolo", timeout);
    Manner manner{ordered_messages, tagged_messages, run_inline, as_nccl, factory_of(std::move(make_messages))};

    options->group_name = group;
    options->global_ranks_in_group = global_ranks;
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    options->enable_reconfigure = enable_reconfigure;
#else
    (void)enable_reconfigure;
#endif
    py::gil_scoped_release unlocked;
    return KoloBackend::create(store, rank, size, std::move(options), std::move(manner));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    using namespace pybind11::literals;

    py::class_<KoloBackend, Backend, intrusive_ptr<KoloBackend>>(m, "KoloBackend")
        .def("flight_record", &KoloBackend::flight_record, "file"_a, py::call_guard<py::gil_scoped_release>())
        .def("get_error", &KoloBackend::getError, py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("options", &KoloBackend::getBackendOptions)
        // Methods of ProcessGroupNCCL that torch.distributed calls. Groups need none of the first three.
        .def("_group_start", [](KoloBackend &) {})
        .def("_group_end", [](KoloBackend &) {})
        .def(
            "perform_nocolor_split", [](KoloBackend &, at::Device) {}, "device"_a)
        .def("_set_default_timeout", &KoloBackend::setTimeout, "timeout"_a)
        .def_property_readonly("comm", &KoloBackend::handle);
    m.def(
        "dump_fr_trace",
        [](bool collectives, bool stack_traces, bool only_active) {
            std::string dump;
            {
                py::gil_scoped_release unlocked;
                dump = FlightRecorder::get().dump(collectives, stack_traces, only_active);
            }
            return py::bytes(dump);
        },
        "collectives"_a, "stack_traces"_a, "only_active"_a);
    m.def(
        "reset_fr_trace", [] { FlightRecorder::get().reset(); }, py::call_guard<py::gil_scoped_release>());
    m.def(
        "allocate", [](int64_t bytes) { return allocate(bytes, at::TensorOptions(at::kByte)); }, "bytes"_a);
    m.def("create", &create_from_python, "store"_a, "rank"_a, "size"_a, "timeout"_a, "group"_a, "global_ranks"_a,
          "ordered_messages"_a, "tagged_messages"_a, "run_inline"_a, "as_nccl"_a, "enable_reconfigure"_a,
          "make_messages"_a);
}

} // namespace kolo
