#include "kubelet/config/flags_without_effect.h"

namespace keelson::kubelet {

namespace {

using Kind = component::FlagWithoutEffect::Kind;
using component::kAnyValue;

constexpr std::string_view kCadvisor = "usage is read from cgroups: there is no cAdvisor",
                           kStorage = "there is no cAdvisor, and no storage of its own for statistics",
                           kLog = "each line is written to standard error at once",
                           kNetwork = "pods' networks are the CNI plugins'",
                           kCgroups = "daemons stay in the cgroups that the init system gave them",
                           kGone = "upstream has removed it", kWindows = "this kubelet runs on Linux";

constexpr component::FlagWithoutEffect kFlags[] = {
    // cAdvisor's
    {"application-metrics-count-limit", Kind::kNumber, kAnyValue, kCadvisor},
    {"boot-id-file", Kind::kText, kAnyValue, kCadvisor},
    {"container-hints", Kind::kText, kAnyValue, kCadvisor},
    {"containerd", Kind::kText, kAnyValue, "the runtime is found by containerRuntimeEndpoint alone"},
    {"containerd-namespace", Kind::kText, kAnyValue,
     "the runtime is asked over CRI, which has a namespace of its own"},
    {"enable-load-reader", Kind::kSwitch, kAnyValue, kCadvisor},
    {"event-storage-age-limit", Kind::kText, kAnyValue, kCadvisor},
    {"event-storage-event-limit", Kind::kText, kAnyValue, kCadvisor},
    {"global-housekeeping-interval", Kind::kDuration, kAnyValue, kCadvisor},
    {"housekeeping-interval", Kind::kDuration, kAnyValue, kCadvisor},
    {"log-cadvisor-usage", Kind::kSwitch, kAnyValue, kCadvisor},
    {"machine-id-file", Kind::kText, kAnyValue, kCadvisor},
    {"max-housekeeping-interval", Kind::kDuration, kAnyValue, kCadvisor},
    {"storage-driver-buffer-duration", Kind::kDuration, kAnyValue, kStorage},
    {"storage-driver-db", Kind::kText, kAnyValue, kStorage},
    {"storage-driver-host", Kind::kText, kAnyValue, kStorage},
    {"storage-driver-password", Kind::kText, kAnyValue, kStorage},
    {"storage-driver-secure", Kind::kSwitch, kAnyValue, kStorage},
    {"storage-driver-table", Kind::kText, kAnyValue, kStorage},
    {"storage-driver-user", Kind::kText, kAnyValue, kStorage},
    // Logs
    {"log-flush-frequency", Kind::kDuration, kAnyValue, kLog},
    {"log-json-info-buffer-size", Kind::kText, kAnyValue, kLog},
    {"log-json-split-stream", Kind::kSwitch, kAnyValue, kLog},
    {"log-text-info-buffer-size", Kind::kText, kAnyValue, kLog},
    {"log-text-split-stream", Kind::kSwitch, kAnyValue, kLog},
    {"vmodule", Kind::kText, kAnyValue, "verbosity is one for the whole program (--v)"},
    // Fields of KubeletConfiguration that decide nothing
    {"contention-profiling", Kind::kSwitch, kAnyValue, "there are no profiles"},
    {"hairpin-mode", Kind::kText, kAnyValue, kNetwork},
    {"iptables-drop-bit", Kind::kNumber, kAnyValue, kNetwork},
    {"iptables-masquerade-bit", Kind::kNumber, kAnyValue, kNetwork},
    {"kernel-memcg-notification", Kind::kSwitch, kAnyValue,
     "the kernel is asked to tell of memory in any case"},
    {"kube-api-content-type", Kind::kText, kAnyValue, "protobuf is spoken wherever the API has it"},
    {"kubelet-cgroups", Kind::kText, kAnyValue, kCgroups},
    {"make-iptables-util-chains", Kind::kSwitch, kAnyValue, kNetwork},
    {"runtime-cgroups", Kind::kText, kAnyValue, kCgroups},
    {"show-hidden-metrics-for-version", Kind::kText, kAnyValue, "there are no hidden metrics"},
    {"streaming-connection-idle-timeout", Kind::kDuration, kAnyValue,
     "the runtime's streaming server has its own"},
    {"system-cgroups", Kind::kText, kAnyValue, kCgroups},
    {"volume-plugin-dir", Kind::kText, kAnyValue, "FlexVolumes are not served"},
    // Of earlier releases: installers still pass them.
    {"experimental-mounter-path", Kind::kText, kAnyValue, kGone},
    {"keep-terminated-pod-volumes", Kind::kSwitch, kAnyValue, kGone},
    {"register-schedulable", Kind::kSwitch, kAnyValue, kGone},
    {"windows-priorityclass", Kind::kText, kAnyValue, kWindows},
    {"windows-service", Kind::kSwitch, kAnyValue, kWindows},
};

}  // namespace

component::FlagsWithoutEffect FlagsWithoutEffect() { return kFlags; }

}  // namespace keelson::kubelet
