#include "proxy/config/flags_without_effect.h"

namespace keelson::proxy {
namespace {

using Kind = component::FlagWithoutEffect::Kind;
using component::kAnyValue;

constexpr char kLog[] = "each line is written to standard error at once";
constexpr char kCadvisor[] = "there is no cAdvisor";
constexpr char kRequests[] = "a few watches are all that is asked of the API server";

constexpr component::FlagWithoutEffect kFlags[] = {
    {"boot-id-file", Kind::kText, kAnyValue, kCadvisor},
    {"config-sync-period", Kind::kDuration, kAnyValue,
     "watches tell of changes; nothing is read again by the clock"},
    {"iptables-localhost-nodeports", Kind::kSwitch, kAnyValue,
     "NodePorts are not served on loopback addresses"},
    {"kube-api-burst", Kind::kNumber, kAnyValue, kRequests},
    {"kube-api-content-type", Kind::kText, kAnyValue, "protobuf is spoken wherever the API has it"},
    {"kube-api-qps", Kind::kNumber, kAnyValue, kRequests},
    {"log-flush-frequency", Kind::kDuration, kAnyValue, kLog},
    {"log-json-info-buffer-size", Kind::kText, kAnyValue, kLog},
    {"log-json-split-stream", Kind::kSwitch, kAnyValue, kLog},
    {"log-text-info-buffer-size", Kind::kText, kAnyValue, kLog},
    {"log-text-split-stream", Kind::kSwitch, kAnyValue, kLog},
    {"machine-id-file", Kind::kText, kAnyValue, kCadvisor},
    {"profiling", Kind::kSwitch, kAnyValue, "there are no profiles"},
    {"proxy-port-range", Kind::kText, kAnyValue, "there is no mode userspace"},
    {"show-hidden-metrics-for-version", Kind::kText, kAnyValue, "there are no hidden metrics"},
    {"vmodule", Kind::kText, kAnyValue, "verbosity is one for the whole program (-v)"},
};

}  // namespace

component::FlagsWithoutEffect FlagsWithoutEffect() { return kFlags; }

}  // namespace keelson::proxy
