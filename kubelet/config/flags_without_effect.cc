#include "kubelet/config/flags_without_effect.h"

#include <algorithm>
#include <iterator>

namespace keelson::kubelet {

namespace {

using Form = FlagWithoutEffect::Form;

constexpr std::string_view kCadvisor = "usage is read from cgroups: there is no cAdvisor",
                           kStorage = "there is no cAdvisor, and no storage of its own for statistics",
                           kLog = "each line is written to standard error at once",
                           kNetwork = "pods' networks are the CNI plugins'",
                           kCgroups = "daemons stay in the cgroups that the init system gave them",
                           kGone = "upstream has removed it", kWindows = "this kubelet runs on Linux";

constexpr FlagWithoutEffect kFlags[] = {
    // cAdvisor's
    {"application-metrics-count-limit", Form::kNumber, kCadvisor},
    {"boot-id-file", Form::kText, kCadvisor},
    {"container-hints", Form::kText, kCadvisor},
    {"containerd", Form::kText, "the runtime is found by containerRuntimeEndpoint alone"},
    {"containerd-namespace", Form::kText, "the runtime is asked over CRI, which has a namespace of its own"},
    {"enable-load-reader", Form::kSwitch, kCadvisor},
    {"event-storage-age-limit", Form::kText, kCadvisor},
    {"event-storage-event-limit", Form::kText, kCadvisor},
    {"global-housekeeping-interval", Form::kDuration, kCadvisor},
    {"housekeeping-interval", Form::kDuration, kCadvisor},
    {"log-cadvisor-usage", Form::kSwitch, kCadvisor},
    {"machine-id-file", Form::kText, kCadvisor},
    {"max-housekeeping-interval", Form::kDuration, kCadvisor},
    {"storage-driver-buffer-duration", Form::kDuration, kStorage},
    {"storage-driver-db", Form::kText, kStorage},
    {"storage-driver-host", Form::kText, kStorage},
    {"storage-driver-password", Form::kText, kStorage},
    {"storage-driver-secure", Form::kSwitch, kStorage},
    {"storage-driver-table", Form::kText, kStorage},
    {"storage-driver-user", Form::kText, kStorage},
    // Logs
    {"log-flush-frequency", Form::kDuration, kLog},
    {"log-json-info-buffer-size", Form::kText, kLog},
    {"log-json-split-stream", Form::kSwitch, kLog},
    {"log-text-info-buffer-size", Form::kText, kLog},
    {"log-text-split-stream", Form::kSwitch, kLog},
    {"vmodule", Form::kText, "verbosity is one for the whole program (--v)"},
    // Fields of KubeletConfiguration that decide nothing
    {"contention-profiling", Form::kSwitch, "there are no profiles"},
    {"hairpin-mode", Form::kText, kNetwork},
    {"iptables-drop-bit", Form::kNumber, kNetwork},
    {"iptables-masquerade-bit", Form::kNumber, kNetwork},
    {"kernel-memcg-notification", Form::kSwitch, "the kernel is asked to tell of memory in any case"},
    {"kube-api-content-type", Form::kText, "protobuf is spoken wherever the API has it"},
    {"kubelet-cgroups", Form::kText, kCgroups},
    {"make-iptables-util-chains", Form::kSwitch, kNetwork},
    {"runtime-cgroups", Form::kText, kCgroups},
    {"show-hidden-metrics-for-version", Form::kText, "there are no hidden metrics"},
    {"streaming-connection-idle-timeout", Form::kDuration, "the runtime's streaming server has its own"},
    {"system-cgroups", Form::kText, kCgroups},
    {"volume-plugin-dir", Form::kText, "FlexVolumes are not served"},
    // Of earlier releases: installers still pass them.
    {"experimental-mounter-path", Form::kText, kGone},
    {"keep-terminated-pod-volumes", Form::kSwitch, kGone},
    {"register-schedulable", Form::kSwitch, kGone},
    {"windows-priorityclass", Form::kText, kWindows},
    {"windows-service", Form::kSwitch, kWindows},
};

}  // namespace

std::span<const FlagWithoutEffect> FlagsWithoutEffect() { return kFlags; }

const FlagWithoutEffect* FindFlagWithoutEffect(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFlags), std::end(kFlags), [&](const auto& flag) { return flag.name == name; });
  return found == std::end(kFlags) ? nullptr : found;
}

}  // namespace keelson::kubelet
