// Probes and lifecycle hooks of containers.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

// Probes have grpc where hooks have sleep.
struct Handler {
  const corev1::ExecAction* exec = nullptr;
  const corev1::HTTPGetAction* http_get = nullptr;
  const corev1::TCPSocketAction* tcp_socket = nullptr;
  const corev1::GRPCAction* grpc = nullptr;
  const corev1::SleepAction* sleep = nullptr;
};

template <typename H>
Handler CommonHandler(const H& handler) {
  Handler out;
  if (handler.has_exec()) out.exec = &handler.exec();
  if (handler.has_http_get()) out.http_get = &handler.http_get();
  if (handler.has_tcp_socket()) out.tcp_socket = &handler.tcp_socket();
  return out;
}

void CheckHttpGet(const corev1::HTTPGetAction& action, const Path& path, FieldErrors& errors) {
  if (action.path().empty()) errors.push_back(Required(path.Child("path")));
  CheckPortNumberOrName(action.port(), path.Child("port"), errors);
  if (action.scheme() != "HTTP" && action.scheme() != "HTTPS") {
    errors.push_back(NotSupported(path.Child("scheme"), action.scheme(), {"HTTP", "HTTPS"}));
  }
  for (const corev1::HTTPHeader& header : action.http_headers()) {
    AddProblems(CheckHttpHeaderName(header.name()), header.name(), path.Child("httpHeaders"), errors);
  }
}

void CheckSleep(const corev1::SleepAction& action, std::optional<int64_t> grace, const Path& path,
                FieldErrors& errors) {
  if (!grace || (action.seconds() >= 0 && action.seconds() <= *grace)) return;
  errors.push_back(
      Invalid(path, action.seconds(),
              fmt::format("must be non-negative and less than terminationGracePeriodSeconds ({})", *grace)));
}

void CheckHandler(const Handler& handler, std::optional<int64_t> grace, const Path& path,
                  FieldErrors& errors) {
  int count = 0;
  const auto first = [&](const void* action, std::string_view field) {
    if (!action) return false;
    if (count++ == 0) return true;
    errors.push_back(Forbidden(path.Child(field), "may not specify more than 1 handler type"));
    return false;
  };
  if (first(handler.exec, "exec") && handler.exec->command().empty()) {
    errors.push_back(Required(path.Child("exec").Child("command")));
  }
  if (first(handler.http_get, "httpGet")) CheckHttpGet(*handler.http_get, path.Child("httpGet"), errors);
  if (first(handler.tcp_socket, "tcpSocket")) {
    CheckPortNumberOrName(handler.tcp_socket->port(), path.Child("tcpSocket").Child("port"), errors);
  }
  if (first(handler.grpc, "grpc")) {
    CheckRange(handler.grpc->port(), 1, 65535, path.Child("grpc").Child("port"), errors);
  }
  if (first(handler.sleep, "sleep")) CheckSleep(*handler.sleep, grace, path.Child("sleep"), errors);
  if (count == 0) errors.push_back(Required(path, "must specify a handler type"));
}

void CheckProbe(const corev1::Probe& probe, const Path& path, FieldErrors& errors) {
  Handler handler = CommonHandler(probe.handler());
  if (probe.handler().has_grpc()) handler.grpc = &probe.handler().grpc();
  CheckHandler(handler, std::nullopt, path, errors);
  CheckNonNegative(probe.initial_delay_seconds(), path.Child("initialDelaySeconds"), errors);
  CheckNonNegative(probe.timeout_seconds(), path.Child("timeoutSeconds"), errors);
  CheckNonNegative(probe.period_seconds(), path.Child("periodSeconds"), errors);
  CheckNonNegative(probe.success_threshold(), path.Child("successThreshold"), errors);
  CheckNonNegative(probe.failure_threshold(), path.Child("failureThreshold"), errors);
  if (probe.has_termination_grace_period_seconds() && probe.termination_grace_period_seconds() <= 0) {
    errors.push_back(Invalid(path.Child("terminationGracePeriodSeconds"),
                             probe.termination_grace_period_seconds(), "must be greater than 0"));
  }
}

// successThreshold of liveness and startup probes must be 1.
void CheckOneSuccess(const corev1::Probe& probe, const Path& path, FieldErrors& errors) {
  CheckProbe(probe, path, errors);
  if (probe.success_threshold() == 1) return;
  errors.push_back(Invalid(path.Child("successThreshold"), int64_t{probe.success_threshold()}, "must be 1"));
}

void CheckHook(const corev1::LifecycleHandler& hook, std::optional<int64_t> grace, const Path& path,
               FieldErrors& errors) {
  Handler handler = CommonHandler(hook);
  if (hook.has_sleep()) handler.sleep = &hook.sleep();
  CheckHandler(handler, grace, path, errors);
}

// In the order of upstream's messages.
const std::vector<std::string_view> kLinuxSignals = {
    "SIGABRT",     "SIGALRM",     "SIGBUS",      "SIGCHLD",     "SIGCLD",      "SIGCONT",     "SIGFPE",
    "SIGHUP",      "SIGILL",      "SIGINT",      "SIGIO",       "SIGIOT",      "SIGKILL",     "SIGPIPE",
    "SIGPOLL",     "SIGPROF",     "SIGPWR",      "SIGQUIT",     "SIGRTMAX",    "SIGRTMAX-1",  "SIGRTMAX-10",
    "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13", "SIGRTMAX-14", "SIGRTMAX-2",  "SIGRTMAX-3",  "SIGRTMAX-4",
    "SIGRTMAX-5",  "SIGRTMAX-6",  "SIGRTMAX-7",  "SIGRTMAX-8",  "SIGRTMAX-9",  "SIGRTMIN",    "SIGRTMIN+1",
    "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+2",
    "SIGRTMIN+3",  "SIGRTMIN+4",  "SIGRTMIN+5",  "SIGRTMIN+6",  "SIGRTMIN+7",  "SIGRTMIN+8",  "SIGRTMIN+9",
    "SIGSEGV",     "SIGSTKFLT",   "SIGSTOP",     "SIGSYS",      "SIGTERM",     "SIGTRAP",     "SIGTSTP",
    "SIGTTIN",     "SIGTTOU",     "SIGURG",      "SIGUSR1",     "SIGUSR2",     "SIGVTALRM",   "SIGWINCH",
    "SIGXCPU",     "SIGXFSZ"};
const std::vector<std::string_view> kWindowsSignals = {"SIGKILL", "SIGTERM"};

void CheckStopSignal(std::string_view signal, const corev1::PodSpec& spec, const Path& path,
                     FieldErrors& errors) {
  if (!spec.has_os()) {
    errors.push_back(Forbidden(path, "may not be set for containers with empty `spec.os.name`"));
    return;
  }
  const std::vector<std::string_view>* signals = nullptr;
  if (spec.os().name() == "windows") signals = &kWindowsSignals;
  if (spec.os().name() == "linux") signals = &kLinuxSignals;
  if (!signals || std::find(signals->begin(), signals->end(), signal) != signals->end()) return;
  errors.push_back(NotSupported(path, signal, *signals));
}

}  // namespace

void CheckLifecycle(const corev1::Container& container, const corev1::PodSpec& spec, const Path& path,
                    FieldErrors& errors) {
  if (!container.has_lifecycle()) return;
  const Path here = path.Child("lifecycle");
  const corev1::Lifecycle& lifecycle = container.lifecycle();
  std::optional<int64_t> grace;
  if (spec.has_termination_grace_period_seconds()) grace = spec.termination_grace_period_seconds();
  if (lifecycle.has_post_start()) CheckHook(lifecycle.post_start(), grace, here.Child("postStart"), errors);
  if (lifecycle.has_pre_stop()) CheckHook(lifecycle.pre_stop(), grace, here.Child("preStop"), errors);
  if (lifecycle.has_stop_signal()) {
    CheckStopSignal(lifecycle.stop_signal(), spec, here.Child("stopSignal"), errors);
  }
}

void CheckProbes(const corev1::Container& container, const Path& path, FieldErrors& errors) {
  if (container.has_liveness_probe()) {
    CheckOneSuccess(container.liveness_probe(), path.Child("livenessProbe"), errors);
  }
  if (container.has_readiness_probe()) {
    const corev1::Probe& probe = container.readiness_probe();
    const Path here = path.Child("readinessProbe");
    CheckProbe(probe, here, errors);
    if (probe.has_termination_grace_period_seconds()) {
      errors.push_back(Invalid(here.Child("terminationGracePeriodSeconds"),
                               probe.termination_grace_period_seconds(),
                               "must not be set for readinessProbes"));
    }
  }
  if (container.has_startup_probe()) {
    CheckOneSuccess(container.startup_probe(), path.Child("startupProbe"), errors);
  }
}

}  // namespace keelson::k8s
